{#- A failing row is a pair of rows of one key that share a moment; each pair once. -#}
{% test no_overlaps(
    model, key_columns=none, valid_from='valid_from', valid_to='valid_to', is_current='is_current', column_name=none
) %}
{%- set key_columns = key_columns or column_name %}
select
    {%- for key in healing_tables._list(key_columns) %}
    key_{{ loop.index }} as {{ healing_tables._id(key) }},
    {%- endfor %}
    a_from, a_to, b_from, b_to
from (
{{ healing_tables._violations(healing_tables._test_about(
    'no_overlaps', model, key_columns, valid_from, valid_to, {'is_current': none}, {'no_overlaps': {}})) }}
)
{% endtest %}
