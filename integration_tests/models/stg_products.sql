select * from values
    (1, timestamp '2024-01-01 08:00:00Z', 'Tea', 'drinks', false),
    (1, timestamp '2024-02-01 08:00:00Z', 'Green tea', 'drinks', false),
    (1, timestamp '2024-02-15 08:00:00Z', 'Green tea', 'drinks', false),
    (2, timestamp '2024-01-05 08:00:00Z', 'Mug', 'kitchen', false),
    (2, timestamp '2024-03-01 08:00:00Z', 'Mug', 'kitchen', true)
as products(product_id, changed_at, product_name, category, is_deleted)
