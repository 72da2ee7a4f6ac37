-- The profiles of the web shop, all of them, on each day on which they were exported.
select row.*
from (
    select from_csv(
        if(value like 'snapshot_date,%', null, value), -- the header, whatever is evaluated first
        'snapshot_date date, customer_id int, email string, email_opt_in boolean, preferred_contact_method string',
        map('mode', 'FAILFAST')
    ) as row
    from {{ source('customers', 'web_snapshots') }}
    where value not like 'snapshot_date,%'
)
