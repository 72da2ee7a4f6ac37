{#- Values from YAML or the command line: as literals, and compared with columns. -#}

{#- A condition on key_1, key_2 .. for each key column that has a value in a map from YAML. -#}
{% macro _key_conditions(key_columns, given) -%}
    {%- set conditions = [] -%}
    {%- for key in key_columns -%}
        {%- set name = healing_tables._find_column(key, given) -%}
        {%- if name is not none -%}
            {%- do conditions.append(healing_tables._equals_given('key_' ~ loop.index, given[name])) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(conditions) -}}
{%- endmacro %}

{#-
    Whether a column is equal to a value from YAML: by its text; a number also if the column's type shows more or fewer
    digits, and a timestamp also as a moment in UTC.
-#}
{% macro _equals_given(column, value) -%}
    {%- if value is none -%} {{ return(column ~ ' is null') }} {%- endif -%}
    {%- set text = 'cast(' ~ column ~ ' as string)' -%}
    {%- set is_same = text ~ ' <=> ' ~ healing_tables._string_literal(value | string | lower
        if value is boolean else value) -%}
    {%- if value is number and value is not boolean -%}
        {{- return(
            '(' ~ is_same ~ ' or (typeof(' ~ column ~ ") rlike '^(decimal|double|float)' and try_cast(" ~ text
            ~ ' as decimal(38, 12)) <=> '
            ~ healing_tables._string_literal(value) ~ '))') -}}
    {%- elif value is not boolean and healing_tables._parse_instant(value) is not none -%}
        {{- return(
            'if(typeof(' ~ column ~ ") = 'timestamp', try_cast(" ~ text ~ ' as timestamp_ltz) <=> '
            ~ healing_tables._open_end(value, 'timestamp')
            ~ ', ' ~ is_same ~ ')') -}}
    {%- endif -%}
    {{- return(is_same) -}}
{%- endmacro %}

{#- A value of `current_values` as a SQL literal: true, 1 or 'Y'. -#}
{% macro _literal(value) -%}
    {%- if value is sameas true -%} {{ return('true') }}
    {%- elif value is sameas false -%} {{ return('false') }}
    {%- elif value is none -%} {{ return('null') }}
    {%- elif value is number -%} {{ return(value | string) }}
    {%- else -%} {{ return(healing_tables._string_literal(value)) }}
    {%- endif -%}
{%- endmacro %}

{#- A constant for a column of that type, as SQL; if the type is not known, the constant is used as it is. -#}
{% macro _typed_literal(mistakes, argument, value, type) -%}
    {%- if value is none -%} {{ return('null') }} {%- endif -%}
    {%- if type is none -%} {{ return(healing_tables._literal(value)) }} {%- endif -%}
    {%- set family = healing_tables._type_family(type) -%}
    {%- set is_number = value is number and value is not boolean -%}
    {%- if family == 'text' and (value is string or is_number) -%} {{ return(healing_tables._string_literal(value)) }}
    {%- elif family == 'boolean' and value is boolean -%} {{ return(healing_tables._literal(value)) }}
    {%- elif family == 'integer' and value is integer -%}
        {%- set limit = {'tinyint': 127, 'smallint': 32767, 'int': 2147483647, 'bigint': 9223372036854775807}[type] -%}
        {%- if -limit - 1 <= value <= limit -%} {{ return('cast(' ~ value ~ ' as ' ~ type ~ ')') }} {%- endif -%}
    {%- elif family == 'decimal' and is_number -%}
        {%- set size = healing_tables._precision_and_scale(type) -%}
        {%- if value | abs < 10 ** (size[0] - size[1]) and value | round(size[1]) == value -%}
            {{- return("cast('" ~ value ~ "' as " ~ type ~ ')') -}}
        {%- endif -%}
    {%- elif family == 'floating' and is_number -%} {{ return("cast('" ~ value ~ "' as " ~ type ~ ')') }}
    {%- elif family in ['date', 'timestamp', 'timestamp_ntz'] and healing_tables._parse_instant(value) is not none -%}
        {%- if family == 'timestamp_ntz' -%}
            {{- return("timestamp_ntz '" ~ (healing_tables._parse_instant(value) | join(' ')) ~ "'") -}}
        {%- endif -%}
        {{- return(healing_tables._open_end(value, type)) -}}
    {%- endif -%}
    {%- do healing_tables._mistake(
        mistakes, argument, 'a value of type ' ~ type ~ ', or none for NULL', value | string, 'correct the value') -%}
    {{- return('null') -}}
{%- endmacro %}
