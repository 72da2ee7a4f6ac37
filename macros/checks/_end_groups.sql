{#-
    What the rows of a stored table show about its open end and its flag. The Python library has the same rules
    (definition/stored_end.py, stored_flags.py); tests/shared/open_end_examples.py lists the cases.

    valid_to   | is_current
    2024-03-01 | N             ->   2999-12-31 00:00:00, ['Y', 'N']
    2999-12-31 | Y

    `given`: relation, valid_to and is_current (columns, in the spelling of the table, or none) with to_type and
    flag_type; end (as valid_to_current, or '(not given)'), flags (as current_values, or none), while_deleted.
-#}

{#- {end, flags}, from one query over these two columns; as they are given if they cannot be read. -#}
{% macro _ends_and_flags(mistakes, given, repairs=false) -%}
    {%- set flags = ['boolean', 'string', 'tinyint', 'smallint', 'int', 'bigint'] -%}
    {%- if given.flag_type is not none and given.flag_type not in flags -%}
        {%- do given.update({'is_current': none}) -%}
    {%- endif -%}
    {%- set is_known = given.flags is none or (given.flags is not string and given.flags | length == 2
        and '(not known)' not in given.flags) -%}
    {%- if mistakes or not is_known or given.to_type not in ['date', 'timestamp', 'timestamp_ntz'] -%}
        {{- return({'end': given.end, 'flags': given.flags}) -}}
    {%- endif -%}
    {%- set groups = fromjson(run_query(healing_tables._end_groups(given)).rows[0][0]) -%}
    {%- set end = healing_tables._end_of_groups(mistakes, groups, given, repairs) -%}
    {%- set flags = given.flags -%}
    {%- if given.is_current is not none -%}
        {%- set flags = healing_tables._flags_of_groups(mistakes, groups, given, end, repairs) -%}
    {%- endif -%}
    {{- return({'end': end, 'flags': flags}) -}}
{%- endmacro %}

{#- Rows with equal flags and ends of one kind: [{kind, low, high, flag, rows}]. open: NULL, or from 2200-01-01 on, or
    from the end that is given; later: after now; past; none: there is no such column. Ends are texts in UTC. -#}
{% macro _end_groups(given) -%}
{%- set has_end = given.valid_to is not none -%}
{%- set until = healing_tables._to_micros(healing_tables._quoted(given.valid_to), given.to_type) if has_end
    else 'cast(null as bigint)' -%}
{%- set least = healing_tables._micros_constant(healing_tables._least_open_end(given)) -%}
select to_json(collect_list(struct(
    kind,
    {{ healing_tables._utc_text('low') }} as low,
    {{ healing_tables._utc_text('high') }} as high,
    flag,
    number as `rows`)), map('ignoreNullFields', 'false')) as found
from (
    select kind, flag, open_end, min(until) as low, max(until) as high, count(*) as number
    from (
        select *,
            {%- if has_end %}
            case when until is null or until >= {{ least }} then 'open'
                when until > unix_micros(current_timestamp()) then 'later' else 'past' end as kind,
            if(until >= {{ least }}, until, null) as open_end
            {%- else %}
            'none' as kind, until as open_end
            {%- endif %}
        from (
            select {{ until }} as until, {{ healing_tables._quoted(given.is_current) if given.is_current is not none
                else 'null' }} as flag
            from {{ given.relation }}
        )
    )
    group by kind, flag, open_end
    limit 1000
)
{%- endmacro %}

{#- From this end on, an end is open. -#}
{% macro _least_open_end(given) -%}
    {%- if given.end in [none, '(not given)'] -%} {{ return('2200-01-01') }} {%- endif -%}
    {%- set named = healing_tables._parse_instant(given.end) -%}
    {{- return('2200-01-01' if named[0] >= '2200-01-01' else named[0] if given.to_type == 'date' else given.end) -}}
{%- endmacro %}
