{#- A dimension of users with at least one trade, from their states and the totals of their trades. Options as in buyer.yml. -#}
{% macro retail_dimension(side) -%}
{{ healing_tables.dimension(
    key_columns=side ~ '_id',
    sources={
        'users': {'relation': ref('user_states'), 'changed_at': 'loaded_at', 'tie_break_by': ['changed_at'],
                  'key_columns': {side ~ '_id': 'user_id'}},
        'totals': {'relation': ref(side ~ '_totals'), 'changed_at': 'loaded_at'}
    },
    attributes={
        'address': {'from': ['users']},
        'job': {'from': ['users']},
        'first_name': {'from': ['users'], 'scd_type': 1},
        'last_name': {'from': ['users'], 'scd_type': 1},
        'pseudonym': {'from': ['users'], 'scd_type': 1},
        'phone': {'from': ['users'], 'scd_type': 1},
        'trades': {'from': ['totals'], 'scd_type': 1},
        'total': {'from': ['totals'], 'scd_type': 1}
    },
    exists_in=['totals'],
    column_names={'valid_from': 'start_date', 'valid_to': 'end_date', 'is_current': 'is_active', 'key_hash': none,
                  'row_hash': none},
    surrogate_key={'name': 'id', 'strategy': 'hash'},
    valid_to_current='9999-12-31 23:59:59',
    current_values=['Y', 'N']
) }}
{%- endmacro %}
