-- The snapshots of the members' file that were taken.
select distinct snapshot_at
from {{ ref('stg_congress_calendar') }}
where source = 'members' and row_count is not null
