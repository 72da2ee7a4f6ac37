{{ config(materialized='healing_table', unique_key='seller_id', file_format='parquet') }}
{{ retail_dimension('seller') }}
