-- Change log of the runways. The file knows no NULL: a missing value is an empty text.
select
    cast(id as bigint) as runway_id,
    op,
    changed_at,
    -- A file of zero bytes was published at noon and mended twelve hours later: no runway was gone.
    op = 'D' and changed_at = timestamp'2025-01-31 12:40:18Z' as is_outage,
    cast(nullif(airport_ref, '') as bigint) as airport_ref,
    nullif(airport_ident, '') as airport_ident,
    cast(nullif(length_ft, '') as int) as length_ft,
    cast(nullif(width_ft, '') as int) as width_ft,
    nullif(surface, '') as surface,
    lighted = '1' as is_lighted,
    closed = '1' as is_closed,
    nullif(le_ident, '') as le_ident,
    cast(nullif(le_latitude_deg, '') as double) as le_latitude_deg,
    cast(nullif(le_longitude_deg, '') as double) as le_longitude_deg,
    cast(nullif(le_elevation_ft, '') as int) as le_elevation_ft,
    cast(nullif(le_heading_degT, '') as double) as le_heading_degT,
    cast(nullif(le_displaced_threshold_ft, '') as int) as le_displaced_threshold_ft,
    nullif(he_ident, '') as he_ident,
    cast(nullif(he_latitude_deg, '') as double) as he_latitude_deg,
    cast(nullif(he_longitude_deg, '') as double) as he_longitude_deg,
    cast(nullif(he_elevation_ft, '') as int) as he_elevation_ft,
    cast(nullif(he_heading_degT, '') as double) as he_heading_degT,
    cast(nullif(he_displaced_threshold_ft, '') as int) as he_displaced_threshold_ft
from {{ source('ourairports', 'runways_changes') }}
