{#- No two rows of a key overlap. -#}
{% macro _check_no_overlaps(arguments, check_request, dimension) -%}
    {{- return({
        'condition': 'is_proper and (is_covered_for_ever or coalesce(furthest > valid_from, false))', 'default': {},
        'has_pairs': true, 'figures': {
            'a_from': ['a.valid_from', 'valid_from'], 'a_to': ['a.valid_to', 'valid_to'],
            'b_from': ['valid_from'] * 2, 'b_to': ['valid_to'] * 2}}) -}}
{%- endmacro %}
