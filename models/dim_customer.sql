-- Who owns which attribute:
--   attribute                  owner    stands in    rule
--   customer_name              crm      erp          the CRM wins whenever it has the customer, also with no name
--   customer_status            crm
--   credit_limit               erp                   nobody else speaks about credit
--   payment_terms              erp
--   email                      web, crm              the newest statement wins; overwritten, no versions (type 1)
--   email_opt_in               web                   a consent is versioned
--   preferred_contact_method   web                   overwritten (type 1)
{{ config(materialized='healing_table', unique_key='customer_id') }}

{{ healing_tables.dimension(
    sources={
        'crm': {
            'relation': ref('stg_crm_customers'), 'changed_at': 'updated_at', 'tie_break_by': 'change_no',
            'deleted_when': "op = 'D'", 'loaded_at': 'loaded_at'
        },
        'erp': {
            'relation': ref('stg_erp_customers'), 'changed_at': 'updated_at', 'tie_break_by': 'change_no',
            'key_columns': {'customer_id': 'cust_no'}, 'deleted_when': 'is_deleted', 'loaded_at': 'loaded_at'
        },
        'web': {'relation': ref('stg_web_profiles'), 'snapshot_at': 'snapshot_date', 'on_absence': 'ignore'}
    },
    attributes={
        'customer_name': {'from': ['crm', 'erp.cust_name'], 'rule': 'first_present'},
        'customer_status': {'from': ['crm']},
        'credit_limit': {'from': ['erp']},
        'payment_terms': {'from': ['erp']},
        'email': {'from': ['web', 'crm'], 'rule': 'most_recent_row', 'scd_type': 1},
        'email_opt_in': {'from': ['web']},
        'preferred_contact_method': {'from': ['web'], 'scd_type': 1}
    },
    exists_in=['crm', 'erp']
) }}
