-- Payments in cash as the cage books them, one file a load.
select row.*
from (
    select from_csv(
        if(value like 'transaction_id,%', null, value), -- the header, whatever is evaluated first
        'transaction_id int, threshold_type string, paid_on date, amount_usd decimal(12,2)',
        map('mode', 'FAILFAST')
    ) as row
    from {{ source('facts', 'cash_transactions') }}
    where value not like 'transaction_id,%'
)
