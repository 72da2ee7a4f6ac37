-- Payments in cash with the threshold of their day: an old filing needs the amount that held then.
{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key='transaction_id', file_format='delta',
    post_hook="{{ healing_tables.rekey_facts(
        this, ref('dim_compliance_threshold'), 'threshold_type', 'paid_on',
        {'threshold_key': 'threshold_key', 'threshold_usd': 'amount_usd'}) }}"
) }}

{{ healing_tables.as_of(
    ref('stg_cash_transactions'), ref('dim_compliance_threshold'), 'threshold_type', 'paid_on',
    {'threshold_key': 'threshold_key', 'threshold_usd': 'amount_usd'}
) }}
