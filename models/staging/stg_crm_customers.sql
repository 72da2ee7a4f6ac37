-- Everything the CRM ever said about a customer, as it arrived.
select row.*
from (
    select from_csv(
        if(value like 'change_no,%', null, value), -- the header, whatever is evaluated first
        'change_no int, loaded_at timestamp, customer_id int, updated_at timestamp, op string,
        customer_name string, customer_status string, email string',
        map('mode', 'FAILFAST')
    ) as row
    from {{ source('customers', 'crm_changes') }}
    where value not like 'change_no,%'
)
