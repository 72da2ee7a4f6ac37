{#- A failing row touches its predecessor and carries equal versioned attributes. -#}
{% test no_consecutive_duplicates(
    model, key_columns=none, valid_from='valid_from', valid_to='valid_to', tracked_columns=none, row_hash='row_hash',
    is_current='is_current', column_name=none
) %}
{%- set key_columns = key_columns or column_name %}
select row.*
from (
{{ healing_tables._violations(healing_tables._test_about(
    'no_consecutive_duplicates', model, key_columns, valid_from, valid_to,
    {'is_current': none, 'tracked_columns': tracked_columns, 'row_hash': row_hash}, {'no_consecutive_duplicates': {}})) }}
)
{% endtest %}
