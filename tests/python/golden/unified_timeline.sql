select
    key_1 as `id`,
    versioned.`c0`,
    timestamp_micros(at) as valid_from,
    coalesce(timestamp_micros(valid_to), timestamp '9999-12-31 23:59:59Z') as valid_to,
    valid_to is null as is_current
from (
with
`a rows` as (
    select
        `id` as key_1,
        unix_micros(`changed_at`) as at,
        case when not coalesce((is_deleted), false) then struct(`c0` as `c0`) end as state
    from lab_test_plan.effectivity
    where coalesce(`id` is not null and unix_micros(`changed_at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)
),
`b rows` as (
    select
        `id` as key_1,
        unix_micros(`changed_at`) as at,
        case when not coalesce((is_deleted), false) then struct(`c0` as `c0`) end as state
    from lab_test_plan.effectivity
    where coalesce(`id` is not null and unix_micros(`changed_at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)
),
events as (
    select key_1,
        at as at,
        1 as source_no,
        struct(state) as `a event`,
        null as `b event`
    from `a rows`
    union all
    select key_1,
        at as at,
        2 as source_no,
        null as `a event`,
        struct(state) as `b event`
    from `b rows`
),
moments as (
    select
        key_1,
        at,
        `a event`,
        last_value(`a event`) ignore nulls over now as `a now`,
        last_value(`a event`) ignore nulls over before as `a before`,
        `b event`,
        last_value(`b event`) ignore nulls over now as `b now`,
        last_value(`b event`) ignore nulls over before as `b before`,
        lead(at) over (partition by key_1 order by at) as next_at
    from events
    window
        now as (partition by key_1 order by at range between unbounded preceding and current row),
        before as (partition by key_1 order by at range between unbounded preceding and 1 preceding)
),
points as (
    select
        key_1,
        at,
        `a now`.state as `a`,
        `b now`.state as `b`
    from moments
    where case
            when `a event` is not null and not (`a event` <=> `a now`) then cast(raise_error(concat('healing_tables: unresolved tie in source a (lab_test_plan.effectivity) of unified_timeline: key ', '', 'id = ', cast(key_1 as string), ' at ', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(at)) * interval '0.000001' second as string), ' UTC; ', 'wanted: one row per key and moment; got: rows that differ; remedy: give the source tie_break_by, or on_tie: greatest')) as boolean)
            when `b event` is not null and not (`b event` <=> `b now`) then cast(raise_error(concat('healing_tables: unresolved tie in source b (lab_test_plan.effectivity) of unified_timeline: key ', '', 'id = ', cast(key_1 as string), ' at ', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(at)) * interval '0.000001' second as string), ' UTC; ', 'wanted: one row per key and moment; got: rows that differ; remedy: give the source tie_break_by, or on_tie: greatest')) as boolean)
            else at is distinct from next_at
        end
        and (
            not (`a now`.state <=> `a before`.state)
            or not (`b now`.state <=> `b before`.state)
        )
),
slices as (
    select
        key_1,
        at,
        case when `a` is not null or `b` is not null then struct(
            coalesce(`a`.`c0`, `b`.`c0`) as `c0`
        ) end as versioned
    from points
)
select *, lead(at) over (partition by key_1 order by at) as valid_to
from slices
)
where versioned is not null
