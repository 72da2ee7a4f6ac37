select product_id, product_key, key_of_dbt_utils
from {{ ref('dim_product') }}
where product_key is distinct from key_of_dbt_utils
