{#- Moments: inside the package an instant is a bigint, microseconds since 1970-01-01 00:00 UTC, so that no
    session time zone can reach it. -#}

{% macro _micros(expression, type) -%}
    {%- if type == 'date' -%} {{ return('unix_date(' ~ expression ~ ') * 86400000000') }}
    {%- elif type == 'timestamp' -%} {{ return('unix_micros(' ~ expression ~ ')') }}
    {%- elif type == 'timestamp_ntz' -%}
        {{- return('unix_micros(cast(concat(cast(' ~ expression ~ " as string), 'Z') as timestamp_ltz))") -}}
    {%- endif -%}
    {#- unknown until Spark plans the query, which folds typeof() -#}
    {{- return(
        'case typeof(' ~ expression ~ ')'
        ~ " when 'date' then unix_date(cast(" ~ expression ~ ' as date)) * 86400000000'
        ~ " when 'timestamp' then unix_micros(cast(" ~ expression ~ ' as timestamp_ltz))'
        ~ " when 'timestamp_ntz' then unix_micros(cast(concat(cast(" ~ expression ~ " as string), 'Z') as timestamp_ltz))"
        ~ " else cast(raise_error(concat('healing_tables: a moment must be a date or a timestamp, not ', typeof("
        ~ expression ~ "), '; cast it')) as bigint) end"
    ) -}}
{%- endmacro %}

{#- The way back. `type` none means: a date if the column moment_type is one, else a timestamp. -#}
{% macro _moment(expression, type) -%}
    {%- if type == 'timestamp' -%} {{ return('timestamp_micros(' ~ expression ~ ')') }} {%- endif -%}
    {%- set days = '(' ~ expression ~ ' - pmod(' ~ expression ~ ', 86400000000)) div 86400000000' -%}
    {%- if type == 'date' -%} {{ return('date_from_unix_date(cast(' ~ days ~ ' as int))') }} {%- endif -%}
    {#- the epoch in the wanted type, plus days or seconds: the type is known only when Spark resolves typeof() -#}
    {%- set is_date = "typeof(moment_type) = 'date'" -%}
    {{- return(
        healing_tables._typed_moment('1970-01-01') ~ ' + make_interval(0, 0, 0, if(' ~ is_date ~ ', cast(' ~ days
        ~ ' as int), 0), 0, 0, if(' ~ is_date ~ ', 0, cast(' ~ expression ~ ' as decimal(20,0)) / 1000000))'
    ) -}}
{%- endmacro %}

{#- A constant moment in the type of the column moment_type. -#}
{% macro _typed_moment(text) -%}
    {{- return(
        "from_json('{\"at\":\"" ~ text ~ "\"}', if(typeof(moment_type) = 'date', 'at date', 'at timestamp_ltz'), "
        ~ "map('timeZone', 'UTC')).at"
    ) -}}
{%- endmacro %}

{#- '2024-01-01', '2024-01-01 10:00' and '2024-01-01 10:00:00.5' as [date, time]; none if it is no such text, or no such moment. -#}
{% macro _parse_moment(value) -%}
    {%- set match = modules.re.match(
        '^(([0-9]{4})-(0[1-9]|1[0-2])-([0-9]{2}))(?:[ T]((?:[01][0-9]|2[0-3]):[0-5][0-9])(:[0-5][0-9](?:[.][0-9]{1,6})?)?)?Z?$', value | string | trim) -%}
    {%- if match is none -%} {{ return(none) }} {%- endif -%}
    {%- set date, year, month, day, minute, second = match.groups() -%}
    {%- set year = year | int -%}
    {%- set february = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28 -%}
    {%- if not 1 <= day | int <= [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][(month | int) - 1] -%} {{ return(none) }} {%- endif -%}
    {{- return([date, (minute or '00:00') ~ (second or ':00')]) -}}
{%- endmacro %}

{#- A configured moment as microseconds: a constant, whatever the session time zone. -#}
{% macro _constant_micros(value) -%}
    {{- return("unix_micros(timestamp '" ~ (healing_tables._parse_moment(value) | join(' ')) ~ "Z')") -}}
{%- endmacro %}

{#- From this instant on an end is open and a start is set aside: the configured end, or 9999-12-31 if earlier. -#}
{% macro _end_of_time(valid_to_current) -%}
    {{- return(healing_tables._constant_micros(healing_tables._end_text(valid_to_current))) -}}
{%- endmacro %}

{% macro _end_text(valid_to_current) -%}
    {%- if valid_to_current is not none and healing_tables._parse_moment(valid_to_current)[0] < '9999-12-31' -%}
        {{- return(valid_to_current) -}}
    {%- endif -%}
    {{- return('9999-12-31') -}}
{%- endmacro %}

{#- A moment column compared with a configured moment. Where its type is known the column stands alone, so that files
    and partitions can be skipped. A column of dates is compared with the day of the moment. -#}
{% macro _compare_moment(name, type, operator, value) -%}
    {%- set column = healing_tables._id(name) -%}
    {%- if type in ['date', 'timestamp'] -%}
        {{- return(column ~ ' ' ~ operator ~ ' ' ~ healing_tables._open_end(value, type)) -}}
    {%- endif -%}
    {{- return(healing_tables._micros(column, type) ~ ' ' ~ operator ~ ' ' ~ healing_tables._constant_micros(value)) -}}
{%- endmacro %}

{#- The open end as a value of the dimension. -#}
{% macro _open_end(valid_to_current, type) -%}
    {%- if valid_to_current is none -%} {{ return('null') }} {%- endif -%}
    {%- set parts = healing_tables._parse_moment(valid_to_current) -%}
    {%- if type == 'date' -%} {{ return("date '" ~ parts[0] ~ "'") }} {%- endif -%}
    {%- if type == 'timestamp' -%} {{ return("timestamp '" ~ (parts | join(' ')) ~ "Z'") }} {%- endif -%}
    {{- return(
        "from_json(if(typeof(moment_type) = 'date', '{\"at\":\"" ~ parts[0] ~ "\"}', '{\"at\":\"" ~ (parts | join('T'))
        ~ "Z\"}'), if(typeof(moment_type) = 'date', 'at date', 'at timestamp_ltz'), map('timeZone', 'UTC')).at"
    ) -}}
{%- endmacro %}
