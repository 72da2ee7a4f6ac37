{#- A failing row is adjacent to the row before it and has equal versioned attributes. -#}
{% test no_consecutive_duplicates(
    model, key_columns=none, valid_from='(not given)', valid_to='(not given)', tracked_columns=none,
    row_hash='(not given)',
    is_current='(not given)', column_name=none
) %}
select row.*
from (
{{ healing_tables._violations(healing_tables._check_request('no_consecutive_duplicates', model, {
    'key_columns': key_columns or column_name, 'valid_from': valid_from, 'valid_to': valid_to,
    'tracked_columns': tracked_columns,
    'row_hash': row_hash}, {'no_consecutive_duplicates': {}})) }}
)
{% endtest %}
