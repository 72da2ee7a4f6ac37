-- The commits of each file, with the row count of those that are snapshots.
select
    row.source,
    cast(concat(row.snapshot_at, 'Z') as timestamp) as snapshot_at,
    row.rows as row_count
from (
    select from_csv(
        if(value like 'source,%', null, value), -- the header, whatever is evaluated first
        'source string, snapshot_at string, snapshot_date date, commit string, rows int, last_of_day boolean, note string',
        map('mode', 'FAILFAST')
    ) as row
    from {{ source('congress_text', 'calendar') }}
    where value not like 'source,%'
)
