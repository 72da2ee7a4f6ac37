{#-
    Every version of a dimension that was ever published, with the time in which it was what the table said.

    published on   id | city | valid_from        id | city | valid_from | known_from | known_to
    2024-03-05     7  | Oslo | 2024-01-01   ->   7  | Oslo | 2024-01-01 | 2024-03-05 | 2024-04-02
    2024-04-02     7  | Rome | 2024-01-01        7  | Rome | 2024-01-01 | 2024-04-02 | (open)
-#}
{% macro known_versions(relation, valid_from='valid_from', valid_to_current='(not given)', audit=none) -%}
{%- set instead = healing_tables._placeholder_select('known_versions', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes = [] -%}
{%- set known = healing_tables._known(mistakes, 'relation', relation, valid_from, audit) -%}
{%- set end = healing_tables._checked_open_end(mistakes, valid_to_current) -%}
{%- do healing_tables._raise_mistakes('known_versions', mistakes) -%}
select
    {{ healing_tables._quoted_list(known.columns) | join(',\n    ') }},
    known_from,
    coalesce(known_to, {{ healing_tables._open_end(end, 'timestamp') }}) as known_to
from (
{{ healing_tables._select_known(known) }}
)
{%- endmacro %}
