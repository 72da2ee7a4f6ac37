{{ config(materialized='healing_table', unique_key='buyer_id', file_format='parquet') }}
{{ retail_dimension('buyer') }}
