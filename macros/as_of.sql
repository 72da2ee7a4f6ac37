{#-
    Every fact once, with columns of the version of its key that was valid at its moment. A fact without such a version
    gets the unknown member.

    facts                  dimension                                sale | id | sold_on    | city
    sale | id | sold_on    id | city | valid_from | valid_to        1    | 7  | 2024-02-01 | Oslo
    1    | 7  | 2024-02-01 7  | Oslo | 2024-01-01 | 2024-03-01  ->  2    | 7  | 2024-03-01 | Rome
    2    | 7  | 2024-03-01 7  | Rome | 2024-03-01 | (open)          3    | 8  | 2024-03-01 | (unknown)
    3    | 8  | 2024-03-01

    With `known_at`, the dimension is as it was at that moment; see known_versions().
-#}
{% macro as_of(facts, dimension, key_columns, at, columns, unknown=none, valid_from='valid_from', valid_to='valid_to',
    valid_to_current='(not given)', versions_per_key=none, known_at=none, audit=none, null_keys=none) -%}
{%- set instead = healing_tables._placeholder_select('as_of', {'facts': facts, 'dimension': dimension}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set as_of_request = healing_tables._as_of_request(
    facts, dimension, key_columns, at, columns, unknown, valid_from, valid_to, valid_to_current, versions_per_key,
    known_at=known_at, audit=audit, null_keys=null_keys) -%}
select
    fact.*,
    {%- for column in as_of_request.columns %}
    case when at < version.until then version.row.{{ healing_tables._quoted(column.name) }}{{ ' else ' ~ column.unknown
        if column.unknown != 'null' }} end as {{ healing_tables._quoted(column.name) }}{{ ',' if not loop.last }}
    {%- endfor %}
from (
{{ healing_tables._as_of_join(as_of_request) if as_of_request.versions_per_key == 'few'
    else healing_tables._as_of_window(as_of_request) }}
)
{%- endmacro %}
