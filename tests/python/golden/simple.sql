select
    /* healing_tables: {"key_columns": ["id"], "names": {"valid_from": "valid_from", "valid_to": "valid_to", "is_current": "is_current", "version": "version", "compressed_row_count": "compressed_row_count", "ended_by_delete": null, "last_updated": null, "change_reason": null, "change_source": null, "key_hash": "key_hash", "row_hash": "row_hash"}, "versioned": ["c0", "c1"], "valid_to_current": "9999-12-31 23:59:59", "current_value": true, "can_delete": false, "has_gaps": false, "sources": [{"name": "log", "set_aside": "select count(*) from lab_test_plan.log where not coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)", "ties": null}]} */
    key_1 as `id`,
    versioned.`c0` as `c0`,
    versioned.`c1` as `c1`,
    timestamp_micros(valid_from) as `valid_from`,
    coalesce(timestamp_micros(valid_to), timestamp '9999-12-31 23:59:59Z') as `valid_to`,
    valid_to is null as `is_current`,
    cast(version as int) as `version`,
    slice_no - start.slice_no + 1 as `compressed_row_count`,
    sha2(coalesce(cast(key_1 as string), '^^NULL^^'), 256) as `key_hash`,
    sha2(concat_ws('|', coalesce(replace(replace(replace(versioned.`c0`, r'\', r'\\'), '|', r'\|'), '^', r'\^'), '^^NULL^^'), coalesce(replace(replace(replace(versioned.`c1`, r'\', r'\\'), '|', r'\|'), '^', r'\^'), '^^NULL^^')), 256) as `row_hash`
from (
with
`log rows` as (
    select
        `id` as key_1,
        unix_micros(`at`) as at,
        struct(`c0` as `c0`, `c1` as `c1`) as state
    from lab_test_plan.log
    where coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)
),
events as (
    select key_1,
        at as at,
        1 as source_no,
        struct(state) as `log event`
    from `log rows`
),
moments as (
    select
        key_1,
        at,
        `log event`,
        last_value(`log event`) ignore nulls over now as `log now`,
        last_value(`log event`) ignore nulls over before as `log before`,
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
        `log now`.state as `log`
    from moments
    where case
            when `log event` is not null and not (`log event` <=> `log now`) then cast(raise_error(concat('healing_tables: unresolved tie in source log (lab_test_plan.log) of simple: key ', '', 'id = ', cast(key_1 as string), ' at ', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(at)) * interval '0.000001' second as string), ' UTC; ', 'wanted: one row per key and moment; got: rows that differ; remedy: give the source tie_break_by, or on_tie: greatest')) as boolean)
            else at is distinct from next_at
        end
        and (
            not (`log now`.state <=> `log before`.state)
        )
),
slices as (
    select
        key_1,
        at,
        case when `log` is not null then struct(
            `log`.`c0` as `c0`,
            `log`.`c1` as `c1`
        ) end as versioned
    from points
),
neighbours as (
    select *,
        lag(versioned) over in_order as versioned_before,
        lead(versioned) over in_order as versioned_after,
        lead(at) over in_order as valid_to,
        count(versioned) over so_far as slice_no
    from slices
    window
        in_order as (partition by key_1 order by at),
        so_far as (partition by key_1 order by at rows between unbounded preceding and current row),
        earlier as (partition by key_1 order by at rows between unbounded preceding and 1 preceding),
        whole as (partition by key_1 order by at rows between unbounded preceding and unbounded following)
),
edges as (
    select *,
        last_value(if(not (versioned <=> versioned_before), struct(at, slice_no), null)) ignore nulls over so_far as start,
        count(if(not (versioned <=> versioned_before), 1, null)) over so_far as version
    from neighbours
    where versioned is not null
        and (
            not (versioned <=> versioned_before)
            or not (versioned <=> versioned_after)
        )
    window
        so_far as (partition by key_1 order by at rows between unbounded preceding and current row)
),
versions as (
    select *,
        start.at as valid_from
    from edges
    where not (versioned <=> versioned_after)
)
select * from versions
)
