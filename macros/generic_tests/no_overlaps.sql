{#- A failing row is a pair of rows of one key that share a moment; each pair once. -#}
{% test no_overlaps(
    model, key_columns=none, valid_from='(not given)', valid_to='(not given)', is_current='(not given)',
    column_name=none
) %}
{%- set check_request = healing_tables._check_request('no_overlaps', model, {
    'key_columns': key_columns or column_name, 'valid_from': valid_from, 'valid_to': valid_to}, {'no_overlaps': {}}) %}
select
    {%- for key in check_request.key_columns %}
    key_{{ loop.index }} as {{ healing_tables._quoted(key) }},
    {%- endfor %}
    a_from, a_to, b_from, b_to
from (
{{ healing_tables._violations(check_request) }}
)
{% endtest %}
