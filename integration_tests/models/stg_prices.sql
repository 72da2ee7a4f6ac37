select * from values
    ('1', date '2024-01-01', date '2024-03-01', cast(3.50 as decimal(9, 2))),
    ('1', date '2024-03-01', cast(null as date), cast(3.90 as decimal(9, 2))),
    ('2', date '2024-01-01', cast(null as date), cast(8.00 as decimal(9, 2)))
as prices(sku, start_on, end_on, price)
