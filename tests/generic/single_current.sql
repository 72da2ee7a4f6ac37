{#- A failing row is a key with more than one current row, or (unless at_most_one) with none. -#}
{% test single_current(
    model, key_columns=none, is_current='is_current', at_most_one=false, current_value='(not given)', valid_to='valid_to',
    valid_to_current='(not given)', valid_from='valid_from', column_name=none
) %}
{%- set key_columns = key_columns or column_name %}
select
    {%- for key in healing_tables._list(key_columns) %}
    {{ healing_tables._id(key) }},
    {%- endfor %}
    count(if({{ healing_tables._current_condition(healing_tables._test_about(
        'single_current', model, key_columns, none, valid_to if is_current is none else none,
        {'is_current': is_current, 'current_value': current_value, 'valid_to_current': valid_to_current},
        {'single_current': {}})) }}, 1, null)) as current_rows
from {{ model }}
group by {% for key in healing_tables._list(key_columns) %}{{ healing_tables._id(key) }}{{ ', ' if not loop.last }}{% endfor %}
having current_rows {{ '> 1' if at_most_one else '<> 1' }}
{% endtest %}
