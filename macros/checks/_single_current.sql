{#- A key has one current row; with at_most_one it may have none. -#}
{% macro _check_single_current(arguments, check_request, dimension) -%}
    {{- return({
        'condition': 'n = 1 and current_rows ' ~ ('> 1' if arguments.get('at_most_one') else '<> 1'),
        'default': {'at_most_one': dimension.can_delete}, 'arguments': ['at_most_one'], 'reads': ['is_current'],
        'figures': {'current_rows': ['current_rows'] * 2}}) -}}
{%- endmacro %}
