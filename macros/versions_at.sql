{#-
    The rows of a dimension that are valid at a moment.

    id | city | valid_from | valid_to        at 2024-02-01:  id | city | valid_from | valid_to
    7  | Oslo | 2024-01-01 | 2024-03-01  ->                  7  | Oslo | 2024-01-01 | 2024-03-01
    7  | Rome | 2024-03-01 | (open)
-#}
{% macro versions_at(relation, at, valid_from='valid_from', valid_to='valid_to', valid_to_current='(not given)') -%}
{%- set instead = healing_tables._placeholder_select('versions_at', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes = [] -%}
{%- set columns = healing_tables._columns_of_existing(mistakes, 'relation', relation) -%}
{%- set period = healing_tables._period(mistakes, relation, columns, valid_from, valid_to, valid_to_current) -%}
{%- do healing_tables._check_moment(mistakes, 'at', at) -%}
{%- do healing_tables._raise_mistakes('versions_at', mistakes) -%}
select *
from {{ relation }}
where {{ healing_tables._compare_instant(valid_from, period.from_type, '<=', at) }}
    and ({{ period.is_open }} or {{ healing_tables._compare_instant(valid_to, period.to_type, '>', at) }})
{%- endmacro %}

{#- Check a moment in the arguments of a call. -#}
{% macro _check_moment(mistakes, argument, value) -%}
    {%- if value is none or healing_tables._parse_instant(value) is none -%}
        {%- do healing_tables._mistake(
            mistakes, argument, "a moment in UTC such as '2024-01-31' or '2024-01-31 10:00:00'", value | string,
            'correct the text') -%}
    {%- endif -%}
{%- endmacro %}
