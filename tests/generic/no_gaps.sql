{#- A failing row is a stretch between a key's first and last moment that no row covers. -#}
{% test no_gaps(
    model, key_columns=none, valid_from='valid_from', valid_to='valid_to', allowed_gaps=[], tolerance=none, is_current='is_current',
    column_name=none
) %}
{%- set key_columns = key_columns or column_name %}
select
    {%- for key in healing_tables._list(key_columns) %}
    key_{{ loop.index }} as {{ healing_tables._id(key) }},
    {%- endfor %}
    gap_start, gap_end
from (
{{ healing_tables._violations(healing_tables._test_about(
    'no_gaps', model, key_columns, valid_from, valid_to, {'is_current': none},
    {'no_gaps': {'allowed_gaps': allowed_gaps, 'tolerance': tolerance}})) }}
)
{% endtest %}
