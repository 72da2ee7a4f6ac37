{#-
    The current rows of a dimension.

    id | city | valid_from | valid_to   | is_current        id | city | valid_from | valid_to | is_current
    7  | Oslo | 2024-01-01 | 2024-03-01 | false        ->   7  | Rome | 2024-03-01 | (open)   | true
    7  | Rome | 2024-03-01 | (open)     | true
-#}
{% macro current_versions(relation, is_current='is_current', current_value='(not given)', valid_to='valid_to',
    valid_to_current='(not given)') -%}
{%- set instead = healing_tables._placeholder_select('current_versions', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes = [] -%}
{%- set columns = healing_tables._columns_of_existing(mistakes, 'relation', relation) -%}
{%- if is_current is none -%}
    {%- set condition = healing_tables._period(mistakes, relation, columns, valid_to, valid_to,
        valid_to_current).is_open -%}
{%- else -%}
    {%- do healing_tables._check_columns(mistakes, 'is_current', [is_current], relation | string, columns) -%}
    {%- set value = healing_tables._option('current_values', none, [true])[0] if current_value == '(not given)'
        else current_value -%}
    {%- set condition = healing_tables._quoted(is_current) ~ ' <=> ' ~ healing_tables._literal(value) -%}
{%- endif -%}
{%- do healing_tables._raise_mistakes('current_versions', mistakes) -%}
select *
from {{ relation }}
where {{ condition }}
{%- endmacro %}
