{#- Values that someone has written in YAML or on the command line, compared with columns. -#}

{#- A condition on key_1, key_2 .. for each key column that a map from YAML gives a value. -#}
{% macro _said_keys(key_columns, given) -%}
    {%- set conditions = [] -%}
    {%- for key in key_columns -%}
        {%- set said = healing_tables._find(key, given) -%}
        {%- if said is not none -%} {%- do conditions.append(healing_tables._is_said('key_' ~ loop.index, given[said])) -%} {%- endif -%}
    {%- endfor -%}
    {{- return(conditions) -}}
{%- endmacro %}

{#-
    Whether a column has a value that YAML gives: by its text; a number also however many digits the column's type
    shows, and a timestamp also as a moment in UTC.
-#}
{% macro _is_said(column, value) -%}
    {%- set text = 'cast(' ~ column ~ ' as string)' -%}
    {%- set is_same = text ~ ' <=> ' ~ healing_tables._text(value | string | lower if value is boolean else value) -%}
    {%- if value is number and value is not boolean -%}
        {{- return(
            '(' ~ is_same ~ ' or (typeof(' ~ column ~ ") rlike '^(decimal|double|float)' and try_cast(" ~ text ~ ' as decimal(38, 12)) <=> '
            ~ healing_tables._text(value) ~ '))') -}}
    {%- elif value is not boolean and healing_tables._parse_moment(value) is not none -%}
        {{- return(
            'if(typeof(' ~ column ~ ") = 'timestamp', try_cast(" ~ text ~ ' as timestamp_ltz) <=> ' ~ healing_tables._open_end(value, 'timestamp')
            ~ ', ' ~ is_same ~ ')') -}}
    {%- endif -%}
    {{- return(is_same) -}}
{%- endmacro %}

{#- '1 day' as '86400.000000': only units of a fixed length. -#}
{% macro _fixed_seconds(mistakes, argument, text) -%}
    {%- set match = modules.re.match('^([0-9]+(?:[.][0-9]+)?) *(second|minute|hour|day|week)s?$', text | string | trim | lower) -%}
    {%- if match is none -%}
        {%- do healing_tables._mistake(
            mistakes, argument, "an interval of fixed length such as '86400 seconds' or '1 day'", text, 'correct it') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set unit = {'second': 1, 'minute': 60, 'hour': 3600, 'day': 86400, 'week': 604800}[match.group(2)] -%}
    {{- return('%.6f' | format((match.group(1) | float) * unit)) -}}
{%- endmacro %}
