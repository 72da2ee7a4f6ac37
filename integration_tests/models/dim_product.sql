{{ config(materialized='healing_table', unique_key='product_id') }}

with dimension as (
    {{ healing_tables.dimension(
        sources={
            'shop': {'relation': ref('stg_products'), 'changed_at': 'changed_at', 'deleted_when': 'is_deleted'},
            'prices': {
                'relation': ref('stg_prices'), 'valid_from': 'start_on', 'valid_to': 'end_on',
                'key_columns': {'product_id': 'sku'}
            }
        },
        attributes={'product_name': 2, 'category': 1, 'price': {'from': ['prices']}},
        exists_in=['shop'],
        surrogate_key={'name': 'product_key', 'strategy': 'dbt_utils'}
    ) }}
)

select
    {{ dbt_utils.generate_surrogate_key(['product_id', 'valid_from']) }} as key_of_dbt_utils,
    *
from dimension
