{#- A failing row is one whose valid_from < valid_to is not true; NULL only passes as the configured open end. -#}
{% test valid_order(
    model, valid_from='(not given)', valid_to='(not given)', valid_to_current='(not given)', key_columns=none,
    is_current='(not given)',
    column_name=none
) %}
{%- set check_request = healing_tables._check_request('valid_order', model, {
    'key_columns': key_columns or column_name, 'valid_from': valid_from, 'valid_to': valid_to,
    'valid_to_current': valid_to_current},
    {'valid_order': {}}, needs_keys=false) %}
select *
from {{ model }}
where not coalesce({{ healing_tables._is_ordered(check_request.valid_from, check_request.valid_to,
    check_request.valid_to_current) }}, false)
{% endtest %}
