-- The file of social media accounts at each of its commits.
select
    snapshot_at,
    row_no,
    bioguide,
    nullif(twitter, '') as twitter,
    nullif(facebook, '') as facebook,
    nullif(youtube, '') as youtube,
    nullif(instagram, '') as instagram
from {{ source('congress', 'social_media_snapshots') }}
