{#-
    The rows of a dimension that are valid at a moment.

    id | city | valid_from | valid_to        at 2024-02-01:  id | city | valid_from | valid_to
    7  | Oslo | 2024-01-01 | 2024-03-01  ->                  7  | Oslo | 2024-01-01 | 2024-03-01
    7  | Rome | 2024-03-01 | (open)

    With `known_at`, as the dimension was at that moment; see known_versions().
-#}
{% macro versions_at(relation, at, valid_from='valid_from', valid_to='valid_to', valid_to_current='(not given)',
    known_at=none, audit=none) -%}
{%- set instead = healing_tables._placeholder_select('versions_at', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes = [] -%}
{%- set versions = healing_tables._versions_known_at(mistakes, 'relation', relation, valid_from, known_at, audit) -%}
{%- set period = healing_tables._period(mistakes, relation, versions.columns, valid_from, valid_to,
    valid_to_current) -%}
{%- do healing_tables._check_moment(mistakes, 'at', at) -%}
{%- do healing_tables._raise_mistakes('versions_at', mistakes) -%}
select *
from {{ versions.rows }}
where {{ healing_tables._compare_instant(valid_from, period.from_type, '<=', at) }}
    and ({{ period.is_open }} or {{ healing_tables._compare_instant(valid_to, period.to_type, '>', at) }})
{%- endmacro %}
