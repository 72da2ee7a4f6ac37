{% snapshot products_snapshot %}
{{ config(target_schema='acme', unique_key='product_id', strategy='check', check_cols=['product_name', 'category'], file_format='delta') }}
select product_id, max_by(product_name, changed_at) as product_name, max_by(category, changed_at) as category
from {{ ref('stg_products') }}
group by product_id
{% endsnapshot %}
