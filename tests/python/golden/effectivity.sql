select
    key_1 as `id`,
    `source`.`c0` as `c0`,
    timestamp_micros(at) as changed_at,
    `source` is null as is_deleted
from (
with
`source rows` as (
    select
        `id` as key_1,
        unix_micros(`at`) as at,
        case when not coalesce((gone), false) then struct(`c0` as `c0`) end as state,
        struct(`seq` as tie_1) as tie
    from lab_test_plan.log
    where coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)
),
events as (
    select key_1,
        at as at,
        1 as source_no,
        struct(state) as `source event`,
        tie as `source tie`
    from `source rows`
),
ranked as (
    select *,
        row_number() over ranking as nth,
        first_value(`source event`) over ranking as `source winner`,
        first_value(`source tie`) over ranking as `source best`
    from (select * from events distribute by key_1)
    window ranking as (
        partition by key_1, at, source_no
        order by
            `source tie` desc
        rows between unbounded preceding and current row
    )
),
moments as (
    select
        key_1,
        at,
        last_value(`source event`) ignore nulls over now as `source now`,
        last_value(`source event`) ignore nulls over before as `source before`,
        lead(at) over (partition by key_1 order by at) as next_at
    from ranked
    where case
            when `source event` is not null and `source tie` <=> `source best` and not (`source event` <=> `source winner`) then cast(raise_error(concat('healing_tables: unresolved tie in lab_test_plan.log of effectivity: key ', '', 'id = ', cast(key_1 as string), ' at ', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(at)) * interval '0.000001' second as string), ' UTC; ', 'wanted: one row per key and moment; got: rows that differ and agree in tie_break_by (seq); remedy: give the source tie_break_by, or on_tie: greatest')) as boolean)
            else nth = 1
        end
    window
        now as (partition by key_1 order by at range between unbounded preceding and current row),
        before as (partition by key_1 order by at range between unbounded preceding and 1 preceding)
),
points as (
    select
        key_1,
        at,
        `source now`.state as `source`
    from moments
    where at is distinct from next_at
        and (
            not (`source now`.state <=> `source before`.state)
        )
)
select * from points
)
