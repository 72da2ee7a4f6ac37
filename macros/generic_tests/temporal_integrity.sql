{#-
    All checks in one scan; on a model of this package, the checks that its builds make. A failing row is that of the
    single test, with the name of the check. `checks` sets the arguments of a check or turns it off, as for the
    materialization: {no_gaps: false}.
-#}
{% test temporal_integrity(
    model, key_columns=none, valid_from='(not given)', valid_to='(not given)', is_current='(not given)',
    current_value='(not given)',
    at_most_one='(not given)', allowed_gaps=[], tolerance=none, tracked_columns=none, row_hash='(not given)',
    valid_to_current='(not given)', checks={}, column_name=none
) %}
{%- set check_request = healing_tables._check_request('temporal_integrity', model, {
    'key_columns': key_columns or column_name, 'valid_from': valid_from, 'valid_to': valid_to, 'is_current': is_current,
    'current_value': current_value, 'at_most_one': at_most_one, 'allowed_gaps': allowed_gaps, 'tolerance': tolerance,
    'tracked_columns': tracked_columns, 'row_hash': row_hash, 'valid_to_current': valid_to_current,
    'checks': checks}) -%}
select
    failed_check,
    {%- for key in check_request.key_columns %}
    key_{{ loop.index }} as {{ healing_tables._quoted(key) }},
    {%- endfor %}
    row.{{ healing_tables._quoted(check_request.valid_from) }},
    row.{{ healing_tables._quoted(check_request.valid_to) }},
    {{ healing_tables._all_figures() | join(', ') }}
from (
{{ healing_tables._violations(check_request) }}
)
{% endtest %}
