-- Everything the ERP ever said about a customer, as it arrived. It calls the customer cust_no.
select row.*
from (
    select from_csv(
        if(value like 'change_no,%', null, value), -- the header, whatever is evaluated first
        'change_no int, loaded_at timestamp, cust_no int, updated_at timestamp, is_deleted boolean,
        cust_name string, credit_limit int, payment_terms string',
        map('mode', 'FAILFAST')
    ) as row
    from {{ source('customers', 'erp_changes') }}
    where value not like 'change_no,%'
)
