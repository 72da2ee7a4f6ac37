{#- Conversions that mean the same under every session time zone and with ANSI mode on or off. -#}

{#- Whether `type` of an attribute can convert one type to another independently of the session. -#}
{% macro _can_cast(from_type, to_type) -%}
    {%- if from_type is none or from_type == to_type -%} {{ return(true) }} {%- endif -%}
    {%- set numbers = ['integer', 'decimal', 'floating'] -%}
    {%- set moments = ['date', 'timestamp', 'timestamp_ntz'] -%}
    {%- set source = healing_tables._type_family(from_type) -%}
    {%- set target = healing_tables._type_family(to_type) -%}
    {{- return(
        target == 'text'
        or (source in numbers and target in numbers)
        or (source == 'text' and target in numbers + ['boolean', 'date'])
        or (source in moments and target in ['date', 'timestamp'])
    ) -}}
{%- endmacro %}

{#- `expression` of type `from_type` as `to_type`; a value that does not fit raises an error in every mode. -#}
{% macro _cast(expression, from_type, to_type) -%}
    {%- if to_type is none or from_type == to_type -%} {{ return(expression) }} {%- endif -%}
    {%- if from_type is none -%} {{ return('cast(' ~ expression ~ ' as ' ~ to_type ~ ')') }} {%- endif -%}
    {%- set source = healing_tables._type_family(from_type) -%}
    {%- set target = healing_tables._type_family(to_type) -%}
    {%- if target == 'text' -%} {{ return(healing_tables._as_text(expression, from_type)) }} {%- endif -%}
    {%- if target in ['date', 'timestamp'] and source in ['date', 'timestamp', 'timestamp_ntz'] -%}
        {{- return(healing_tables._from_micros(healing_tables._to_micros(expression, from_type), target)) -}}
    {%- endif -%}
    {%- if healing_tables._common_type([from_type, to_type]) == to_type -%}
        {{- return('cast(' ~ expression ~ ' as ' ~ to_type ~ ')') -}}
    {%- endif -%}
    {%- set tried = 'try_cast(' ~ expression ~ ' as ' ~ to_type ~ ')' -%}
    {{- return(
        'case when ' ~ expression ~ ' is null or ' ~ tried ~ ' is not null then ' ~ tried
        ~ " else raise_error(concat('healing_tables: ', cast(" ~ expression ~ " as string), ' does not fit "
        ~ to_type ~ "')) end"
    ) -}}
{%- endmacro %}
