{#- A failing row is a period between a key's first and last moment that no row covers. -#}
{% test no_gaps(
    model, key_columns=none, valid_from='(not given)', valid_to='(not given)', allowed_gaps=[], tolerance=none,
    is_current='(not given)',
    column_name=none
) %}
{%- set check_request = healing_tables._check_request('no_gaps', model, {
    'key_columns': key_columns or column_name, 'valid_from': valid_from, 'valid_to': valid_to},
    {'no_gaps': {'allowed_gaps': allowed_gaps, 'tolerance': tolerance}}) %}
select
    {%- for key in check_request.key_columns %}
    key_{{ loop.index }} as {{ healing_tables._quoted(key) }},
    {%- endfor %}
    gap_start, gap_end
from (
{{ healing_tables._violations(check_request) }}
)
{% endtest %}
