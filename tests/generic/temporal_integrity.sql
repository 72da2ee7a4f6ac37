{#-
    All five checks in one scan. A failing row is what it is in the single test, with the name of the check; `checks`
    gives arguments to a check or turns it off, as for the materialization: {no_gaps: false}.
-#}
{% test temporal_integrity(
    model, key_columns=none, valid_from='valid_from', valid_to='valid_to', is_current='is_current', current_value='(not given)',
    at_most_one=false, allowed_gaps=[], tolerance=none, tracked_columns=none, row_hash='row_hash',
    valid_to_current='(not given)', checks={}, column_name=none
) %}
{%- set key_columns = key_columns or column_name %}
{%- set defaults = {
    'single_current': {'at_most_one': at_most_one}, 'no_overlaps': {},
    'no_gaps': {'allowed_gaps': allowed_gaps, 'tolerance': tolerance}, 'valid_order': {}, 'no_consecutive_duplicates': {}
} -%}
select
    failed_check,
    {%- for key in healing_tables._list(key_columns) %}
    key_{{ loop.index }} as {{ healing_tables._id(key) }},
    {%- endfor %}
    row.{{ healing_tables._id(valid_from) }}, row.{{ healing_tables._id(valid_to) }},
    current_rows, a_from, a_to, b_from, b_to, gap_start, gap_end
from (
{{ healing_tables._violations(healing_tables._test_about(
    'temporal_integrity', model, key_columns, valid_from, valid_to,
    {'is_current': is_current, 'current_value': current_value, 'tracked_columns': tracked_columns,
     'row_hash': row_hash, 'valid_to_current': valid_to_current},
    healing_tables._wanted_checks('temporal_integrity', checks, defaults))) }}
)
{% endtest %}
