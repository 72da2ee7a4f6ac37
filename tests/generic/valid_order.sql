{#- A failing row is one whose valid_from < valid_to is not true; NULL only passes as the configured open end. -#}
{% test valid_order(
    model, valid_from='valid_from', valid_to='valid_to', valid_to_current='(not given)', key_columns=none, is_current='is_current',
    column_name=none
) %}
select *
from {{ model }}
where not coalesce({{ healing_tables._ordered(valid_from, valid_to, valid_to_current) }}, false)
{% endtest %}
