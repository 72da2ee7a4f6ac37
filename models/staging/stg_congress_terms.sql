-- Terms of office of legislators. Where the register cannot be taken at its word, these rules decide:
-- 1. A term ends at the latest where the next one of the same person begins. (One does not: B000243 changed
--    from the House to the Senate in 1978 and both terms are said to run on.)
-- 2. Who left the file of sitting members has no term after that. The register froze with the last look at a
--    member: a senator who resigned in 2025 would sit until 2029. (Two terms never began; the build sets them aside.)
-- 3. An end that lies after the newest snapshot is a plan, not an event: the term is open.
with taken as (
    select
        snapshot_at,
        lead(snapshot_at) over (order by snapshot_at) as next_snapshot_at
    from {{ ref('stg_congress_members_calendar') }}
),

last_seen as (
    select bioguide, max(snapshot_at) as snapshot_at
    from {{ ref('stg_congress_members') }}
    group by bioguide
),

terms as (
    select *, lead(start) over (partition by bioguide order by start, term_no) as next_start
    from {{ source('congress', 'terms') }}
    -- presidents and vice presidents are in a file of their own, four of them in both
    where source_file = 'legislators'
)

select
    terms.bioguide,
    terms.term_no,
    terms.start as term_start,
    case
        when taken.next_snapshot_at is not null
            then least(terms.`end`, terms.next_start, cast(taken.next_snapshot_at as date))
        when terms.next_start is not null or terms.`end` <= (select cast(max(snapshot_at) as date) from taken)
            then least(terms.`end`, terms.next_start)
    end as term_end,
    terms.govtrack,
    terms.name_last as last_name,
    terms.type as chamber,
    terms.state,
    terms.district,
    terms.class as senate_class,
    terms.party
from terms
left join last_seen on terms.bioguide = last_seen.bioguide
left join taken on last_seen.snapshot_at = taken.snapshot_at
