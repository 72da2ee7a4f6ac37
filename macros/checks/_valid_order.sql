{#- A row starts before it ends. A NULL end is valid only if NULL is the open end. -#}
{% macro _check_valid_order(arguments, check_request, dimension) -%}
    {{- return({
        'condition': 'not coalesce(' ~ healing_tables._is_ordered('valid_from', 'valid_to',
            check_request.get('valid_to_current')) ~ ', false)', 'default': {}}) -}}
{%- endmacro %}

{% macro _is_ordered(valid_from, valid_to, valid_to_current) -%}
    {%- set valid_from = healing_tables._quoted(valid_from) -%}
    {%- set valid_to = healing_tables._quoted(valid_to) -%}
    {%- set end = healing_tables._valid_to_current(valid_to_current) -%}
    {%- if end is not none -%} {{ return(valid_from ~ ' < ' ~ valid_to) }} {%- endif -%}
    {{- return('if(' ~ valid_to ~ ' is null, ' ~ valid_from ~ ' is not null, ' ~ valid_from ~ ' < ' ~ valid_to
        ~ ')') -}}
{%- endmacro %}
