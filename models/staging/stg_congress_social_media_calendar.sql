-- The snapshots of the social media file that were taken. Two commits of December 2015 are no readable file
-- (no row count): taking them for empty snapshots would end every account for a day.
select distinct snapshot_at
from {{ ref('stg_congress_calendar') }}
where source = 'social_media' and row_count is not null
