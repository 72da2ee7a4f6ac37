-- The file of sitting members at each of its commits. An empty text says as little as no text: NULL.
select
    snapshot_at,
    row_no,
    bioguide,
    id_govtrack as govtrack,
    nullif(name_first, '') as first_name,
    nullif(name_last, '') as last_name,
    nullif(name_official_full, '') as full_name,
    try_cast(birthday as date) as birthday,
    gender,
    term_type as chamber,
    term_state as state,
    term_district as district,
    term_class as senate_class,
    term_party as party,
    nullif(term_office, '') as office,
    nullif(term_address, '') as address,
    nullif(term_phone, '') as phone,
    nullif(term_url, '') as website,
    -- Not so: the president, listed for a month of 2012, once by his seat in the Senate, which he had left in 2008.
    -- New terms are entered within days of the old one's end.
    term_type in ('rep', 'sen') and datediff(snapshot_at, try_cast(term_end as date)) <= 20 as is_sitting
from {{ source('congress', 'members_snapshots') }}
