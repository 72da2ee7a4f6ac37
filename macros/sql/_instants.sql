{#- Moments: inside the package an instant is a bigint, microseconds since 1970-01-01 00:00 UTC, so that the
    session time zone does not affect it. -#}

{% macro _to_micros(expression, type) -%}
    {%- if type == 'date' -%} {{ return('unix_date(' ~ expression ~ ') * 86400000000') }}
    {%- elif type == 'timestamp' -%} {{ return('unix_micros(' ~ expression ~ ')') }}
    {%- elif type == 'timestamp_ntz' -%}
        {{- return('unix_micros(cast(concat(cast(' ~ expression ~ " as string), 'Z') as timestamp_ltz))") -}}
    {%- endif -%}
    {#- the type is unknown until Spark plans the query and evaluates typeof() -#}
    {{- return(
        'case typeof(' ~ expression ~ ')'
        ~ " when 'date' then unix_date(cast(" ~ expression ~ ' as date)) * 86400000000'
        ~ " when 'timestamp' then unix_micros(cast(" ~ expression ~ ' as timestamp_ltz))'
        ~ " when 'timestamp_ntz' then unix_micros(cast(concat(cast(" ~ expression
        ~ " as string), 'Z') as timestamp_ltz))"
        ~ " else cast(raise_error(concat('healing_tables: a moment must be a date or a timestamp, not ', typeof("
        ~ expression ~ "), '; cast it')) as bigint) end"
    ) -}}
{%- endmacro %}

{#- The inverse of _to_micros(). `type` none: a date if the column moment_type is one, else a timestamp. -#}
{% macro _from_micros(expression, type) -%}
    {%- if type == 'timestamp' -%} {{ return('timestamp_micros(' ~ expression ~ ')') }} {%- endif -%}
    {%- set days = '(' ~ expression ~ ' - pmod(' ~ expression ~ ', 86400000000)) div 86400000000' -%}
    {%- if type == 'date' -%} {{ return('date_from_unix_date(cast(' ~ days ~ ' as int))') }} {%- endif -%}
    {#- the epoch in the wanted type, plus days or seconds: the type is known only when Spark resolves typeof() -#}
    {%- set is_date = "typeof(moment_type) = 'date'" -%}
    {{- return(
        healing_tables._instant_constant('1970-01-01') ~ ' + make_interval(0, 0, 0, if(' ~ is_date ~ ', cast(' ~ days
        ~ ' as int), 0), 0, 0, if(' ~ is_date ~ ', 0, cast(' ~ expression ~ ' as decimal(20,0)) / 1000000))'
    ) -}}
{%- endmacro %}

{#- A constant moment in the type of the column moment_type. -#}
{% macro _instant_constant(text) -%}
    {{- return(
        "from_json('{\"at\":\"" ~ text ~ "\"}', if(typeof(moment_type) = 'date', 'at date', 'at timestamp_ltz'), "
        ~ "map('timeZone', 'UTC')).at"
    ) -}}
{%- endmacro %}

{#-
    A moment from a configuration, as [date, time] in UTC; none if the text is not a valid moment. Python accepts the
    same texts (sql/instants.py); tests/shared/instant_examples.py lists some.

    '2024-01-01', '2024-01-01 10:00', '2024-01-01T10:00:00.5Z' and '2024-01-01 10:00:00+01:00' (here 09:00:00)
-#}
{% macro _parse_instant(value) -%}
    {%- set match = modules.re.match(
        '^([0-9]{4})-(0[1-9]|1[0-2])-([0-9]{2})(?:[ T]([01][0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])([.][0-9]{1,6})?)?'
        ~ '(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?)?$', value | string | trim) -%}
    {%- if match is none -%} {{ return(none) }} {%- endif -%}
    {%- set year, month, day, hour, minute, second, fraction, offset = match.groups() -%}
    {%- set year, month, day = year | int, month | int, day | int -%}
    {%- set february = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28 -%}
    {%- set days = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] -%}
    {%- if year == 0 or not 1 <= day <= days -%} {{ return(none) }} {%- endif -%}
    {%- set text = '%04d-%02d-%02d' | format(year, month, day) -%}
    {%- set time = (hour or '00') ~ ':' ~ (minute or '00') ~ ':' ~ (second or '00') -%}
    {%- if offset in [none, 'Z', '+00:00', '-00:00'] -%} {{ return([text, time ~ (fraction or '')]) }} {%- endif -%}
    {%- if year in [1, 9999] -%} {{ return(none) }} {%- endif -%}
    {%- set shift = modules.datetime.timedelta(hours=offset[1:3] | int, minutes=offset[4:6] | int) -%}
    {%- set local = modules.datetime.datetime(year, month, day, hour | int, minute | int, (second or 0) | int) -%}
    {%- set utc = local - shift if offset[0] == '+' else local + shift -%}
    {{- return([utc.date().isoformat(), utc.time().isoformat() ~ (fraction or '')]) -}}
{%- endmacro %}

{#- A configured moment as microseconds: a constant, whatever the session time zone. -#}
{% macro _micros_constant(value) -%}
    {{- return("unix_micros(timestamp '" ~ (healing_tables._parse_instant(value) | join(' ')) ~ "Z')") -}}
{%- endmacro %}

{#- From this instant on, an end is open and a row that starts is set aside: the configured end, or 9999-12-31 if
    earlier. -#}
{% macro _end_of_time(valid_to_current) -%}
    {{- return(healing_tables._micros_constant(healing_tables._end_of_time_text(valid_to_current))) -}}
{%- endmacro %}

{% macro _end_of_time_text(valid_to_current) -%}
    {%- if valid_to_current is not none and healing_tables._parse_instant(valid_to_current)[0] < '9999-12-31' -%}
        {{- return(valid_to_current) -}}
    {%- endif -%}
    {{- return('9999-12-31') -}}
{%- endmacro %}

{#- In a stored dimension, an end from this moment on is open: the open end if it is before 9999-12-31, or else
    2200-01-01. Nobody plans an end after that, and another program may have used another open end. -#}
{% macro _open_from_text(valid_to_current) -%}
    {%- set end = healing_tables._end_of_time_text(valid_to_current) -%}
    {{- return('2200-01-01' if end == '9999-12-31' else end) -}}
{%- endmacro %}

{#- A moment column compared with a configured moment. If its type is known, the column is compared directly, so that
    files and partitions can be skipped. A column of dates is compared with the day of the moment. -#}
{% macro _compare_instant(name, type, operator, value) -%}
    {%- set column = healing_tables._quoted(name) -%}
    {%- if type in ['date', 'timestamp'] -%}
        {{- return(column ~ ' ' ~ operator ~ ' ' ~ healing_tables._open_end(value, type)) -}}
    {%- endif -%}
    {{- return(healing_tables._to_micros(column, type) ~ ' ' ~ operator ~ ' '
        ~ healing_tables._micros_constant(value)) -}}
{%- endmacro %}

{#- The open end as a value of the dimension. -#}
{% macro _open_end(valid_to_current, type) -%}
    {%- if valid_to_current is none -%} {{ return('null') }} {%- endif -%}
    {%- set parts = healing_tables._parse_instant(valid_to_current) -%}
    {%- if type == 'date' -%} {{ return("date '" ~ parts[0] ~ "'") }} {%- endif -%}
    {%- if type == 'timestamp' -%} {{ return("timestamp '" ~ (parts | join(' ')) ~ "Z'") }} {%- endif -%}
    {{- return(
        "from_json(if(typeof(moment_type) = 'date', '{\"at\":\"" ~ parts[0] ~ "\"}', '{\"at\":\"" ~ (parts | join('T'))
        ~ "Z\"}'), if(typeof(moment_type) = 'date', 'at date', 'at timestamp_ltz'), map('timeZone', 'UTC')).at"
    ) -}}
{%- endmacro %}

{#- Seconds of an interval such as '1 day', as text: '86400.000000'. Units of variable length are refused. -#}
{% macro _interval_seconds(mistakes, argument, text) -%}
    {%- set match = modules.re.match('^([0-9]+(?:[.][0-9]+)?) *(second|minute|hour|day|week)s?$',
        text | string | trim | lower) -%}
    {%- if match is none -%}
        {%- do healing_tables._mistake(
            mistakes, argument, "an interval of fixed length such as '86400 seconds' or '1 day'", text,
            'write a number and one unit, from seconds to weeks') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set unit = {'second': 1, 'minute': 60, 'hour': 3600, 'day': 86400, 'week': 604800}[match.group(2)] -%}
    {{- return('%.6f' | format((match.group(1) | float) * unit)) -}}
{%- endmacro %}

{#- Microseconds as text in UTC, the same in every session. -#}
{% macro _utc_text(micros) -%}
    {{- return("cast(timestamp_ntz '1970-01-01 00:00:00' + " ~ micros ~ " * interval '0.000001' second as string)") -}}
{%- endmacro %}

{#- Microseconds as text in UTC, and back; none where there is none. -#}
{% macro _instant_text(micros) -%}
    {%- if micros is none -%} {{ return(none) }} {%- endif -%}
    {%- set days = (micros | int) // 86400000000 -%}
    {%- set rest = (micros | int) % 86400000000 -%}
    {%- set day = modules.datetime.date(1970, 1, 1) + modules.datetime.timedelta(days=days) -%}
    {%- set seconds = rest // 1000000 -%}
    {{- return(day.isoformat() ~ ' %02d:%02d:%02d.%06dZ' | format(seconds // 3600, seconds % 3600 // 60, seconds % 60,
        rest % 1000000)) -}}
{%- endmacro %}

{% macro _instant_micros(text) -%}
    {{- return(none if text is none else healing_tables._micros_constant(text)) -}}
{%- endmacro %}

{#- Check a moment in the arguments of a call. -#}
{% macro _check_moment(mistakes, argument, value) -%}
    {%- if value is none or healing_tables._parse_instant(value) is none -%}
        {%- do healing_tables._mistake(
            mistakes, argument, "a moment in UTC such as '2024-01-31' or '2024-01-31 10:00:00'", value | string,
            'correct the text') -%}
    {%- endif -%}
{%- endmacro %}
