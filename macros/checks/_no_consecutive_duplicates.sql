{#- A row that touches the previous one has different values. -#}
{% macro _check_no_consecutive_duplicates(arguments, check_request, dimension) -%}
    {{- return({
        'condition': 'is_repeat', 'default': {} if dimension.has_tracked else none,
        'reads': ['valid_from', 'valid_to', 'tracked']}) -}}
{%- endmacro %}
