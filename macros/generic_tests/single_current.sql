{#- A failing row is a key with more than one current row, or (unless at_most_one) with none. -#}
{% test single_current(
    model, key_columns=none, is_current='(not given)', at_most_one='(not given)', current_value='(not given)',
    valid_to='(not given)',
    valid_to_current='(not given)', valid_from='(not given)', column_name=none
) %}
{%- set check_request = healing_tables._check_request('single_current', model, {
    'key_columns': key_columns or column_name, 'is_current': is_current, 'current_value': current_value,
    'valid_to': valid_to,
    'valid_to_current': valid_to_current, 'at_most_one': at_most_one}, {'single_current': {}}) %}
select
    {%- for key in check_request.key_columns %}
    {{ healing_tables._quoted(key) }},
    {%- endfor %}
    count(if({{ healing_tables._current_condition(check_request) }}, 1, null)) as current_rows
from {{ model }}
group by {% for key in check_request.key_columns %}{{ healing_tables._quoted(key) }}{{ ', '
    if not loop.last }}{% endfor %}
having current_rows {{ '> 1' if check_request.checks.single_current.at_most_one else '<> 1' }}
{% endtest %}
