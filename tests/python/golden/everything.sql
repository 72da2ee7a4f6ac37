select
    /* healing_tables: {"key_columns": ["id"], "names": {"valid_from": "valid_from", "valid_to": "valid_to", "is_current": "is_current", "version": "version", "compressed_row_count": "compressed_row_count", "ended_by_delete": "ended_by_delete", "last_updated": "last_updated", "change_reason": "change_reason", "change_source": "change_source", "key_hash": "key_hash", "row_hash": "row_hash"}, "versioned": ["c0", "c1", "c2", "c3", "c7"], "valid_to_current": "9999-12-31 23:59:59", "current_value": true, "can_delete": true, "has_gaps": true, "sources": [{"name": "log", "set_aside": "select count(*) from lab_test_plan.log where not coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)", "ties": null}, {"name": "ties", "set_aside": "select count(*) from lab_test_plan.log_with_ties where not coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)", "ties": "select count(*) from (select count(distinct struct(state)) as states from (select key_1, at, state, rank() over (partition by key_1, at order by tie desc) as place from (select `id` as key_1, unix_micros(`at`) as at, struct(`c0` as `c0`, `c1` as `c1`, `c2` as `c2`, `c3` as `c3`, `c4` as `c4`, `c5` as `c5`, `c6` as `c6`, `c7` as `c7`) as state, struct(`seq`) as tie from lab_test_plan.log_with_ties where coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false))) where place = 1 group by key_1, at) where states > 1"}, {"name": "snapshots", "set_aside": "select count(*) from lab_test_plan.snapshots where not coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)", "ties": null}, {"name": "periods", "set_aside": "select count(*) from lab_test_plan.periods where not coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z') and (`until` is null or unix_micros(`at`) < unix_micros(`until`)), false)", "ties": null}]} */
    substr(sha2(concat(sha2(coalesce(cast(key_1 as string), '^^NULL^^'), 256), '|', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(valid_from)) * interval '0.000001' second as string)), 256), 1, 32) as `sk`,
    key_1 as `id`,
    versioned.`c0` as `c0`,
    versioned.`c1` as `c1`,
    versioned.`c2` as `c2`,
    versioned.`c3` as `c3`,
    first_1_value.value as `c4`,
    newest.`c5` as `c5`,
    overwritten.`c6` as `c6`,
    move_7.previous as `previous_c6`,
    timestamp_micros(move_7.at) as `c6_changed_at`,
    versioned.`c7` as `c7`,
    newest_versioned.`c7` as `current_c7`,
    start.versioned_known.`c7` as `previous_c7`,
    timestamp_micros(valid_from) as `valid_from`,
    coalesce(timestamp_micros(valid_to), timestamp '9999-12-31 23:59:59Z') as `valid_to`,
    valid_to is null as `is_current`,
    cast(version as int) as `version`,
    slice_no - start.slice_no + 1 as `compressed_row_count`,
    valid_to is not null and versioned_after is null as `ended_by_delete`,
    timestamp_micros(greatest(start.at, valid_to, move_6.at, move_7.at, move_8.at, first_1_value.at)) as `last_updated`,
    case when version = 1 then 'new' when start.after_gap then 'returned' else 'changed' end as `change_reason`,
    start.change_source as `change_source`,
    sha2(coalesce(cast(key_1 as string), '^^NULL^^'), 256) as `key_hash`,
    sha2(concat_ws('|', coalesce(replace(replace(replace(versioned.`c0`, r'\', r'\\'), '|', r'\|'), '^', r'\^'), '^^NULL^^'), coalesce(replace(replace(replace(versioned.`c1`, r'\', r'\\'), '|', r'\|'), '^', r'\^'), '^^NULL^^'), coalesce(replace(replace(replace(versioned.`c2`, r'\', r'\\'), '|', r'\|'), '^', r'\^'), '^^NULL^^'), coalesce(replace(replace(replace(versioned.`c3`, r'\', r'\\'), '|', r'\|'), '^', r'\^'), '^^NULL^^'), coalesce(replace(replace(replace(versioned.`c7`, r'\', r'\\'), '|', r'\|'), '^', r'\^'), '^^NULL^^')), 256) as `row_hash`
from (
with
`log rows` as (
    select
        `id` as key_1,
        unix_micros(`at`) as at,
        case when not coalesce((gone), false) then struct(`c0` as `c0`, `c1` as `c1`, `c2` as `c2`, `c3` as `c3`, `c4` as `c4`, `c5` as `c5`, `c6` as `c6`, `c7` as `c7`) end as state
    from lab_test_plan.log
    where coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)
),
`ties rows` as (
    select
        `id` as key_1,
        unix_micros(`at`) as at,
        struct(`c0` as `c0`, `c1` as `c1`, `c2` as `c2`, `c3` as `c3`, `c4` as `c4`, `c5` as `c5`, `c6` as `c6`, `c7` as `c7`) as state,
        struct(`seq` as tie_1, (struct(`c0` as `c0`, `c1` as `c1`, `c2` as `c2`, `c3` as `c3`, `c4` as `c4`, `c5` as `c5`, `c6` as `c6`, `c7` as `c7`)) is null as is_deleted, struct(`c0` as `c0`, `c1` as `c1`, `c2` as `c2`, `c3` as `c3`, `c4` as `c4`, `c5` as `c5`, `c6` as `c6`, `c7` as `c7`) as state) as tie
    from lab_test_plan.log_with_ties
    where coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)
),
`snapshots rows` as (
    select
        `id` as key_1,
        unix_micros(`at`) as at,
        struct(`c0` as `c0`, `c1` as `c1`, `c2` as `c2`, `c3` as `c3`, `c4` as `c4`, `c5` as `c5`, `c6` as `c6`, `c7` as `c7`) as state
    from lab_test_plan.snapshots
    where coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), false)
),
`snapshots calendar` as (
    select inline(transform(moments, (moment, i) -> struct(moment as at, get(moments, i + 1) as until)))
    from (
        select sort_array(collect_set(at)) as moments
        from (
            select unix_micros(`at`) as at
            from lab_test_plan.snapshots
            union all
            select unix_micros(`at`) as at
            from lab_test_plan.calendar
        )
        where at < unix_micros(timestamp '9999-12-31 00:00:00Z')
    )
),
`periods rows` as (
    select
        `id` as key_1,
        unix_micros(`at`) as at,
        struct(`c0` as `c0`, `c1` as `c1`, `c2` as `c2`, `c3` as `c3`, `c4` as `c4`, `c5` as `c5`, `c6` as `c6`, `c7` as `c7`) as state,
        if(unix_micros(`until`) < unix_micros(timestamp '9999-12-31 00:00:00Z'), unix_micros(`until`), null) as until
    from lab_test_plan.periods
    where coalesce(`id` is not null and unix_micros(`at`) < unix_micros(timestamp '9999-12-31 00:00:00Z') and (`until` is null or unix_micros(`at`) < unix_micros(`until`)), false)
),
events as (
    select key_1,
        at as at,
        1 as source_no,
        struct(state) as `log event`,
        null as `ties event`,
        null as `snapshots event`,
        null as `periods event`,
        null as `ties tie`
    from `log rows`
    union all
    select key_1,
        at as at,
        2 as source_no,
        null as `log event`,
        struct(state) as `ties event`,
        null as `snapshots event`,
        null as `periods event`,
        tie as `ties tie`
    from `ties rows`
    union all
    select /*+ broadcast(taken) */ key_1,
        if(starts, source_rows.at, until) as at,
        if(starts, 3, 0) as source_no,
        null as `log event`,
        null as `ties event`,
        if(starts, struct(state, until), null) as `snapshots event`,
        null as `periods event`,
        null as `ties tie`
    from `snapshots rows` as source_rows
    join `snapshots calendar` as taken on taken.at = source_rows.at
    lateral view explode(array(true, false)) ends as starts
    where starts or until is not null
    union all
    select key_1,
        if(starts, source_rows.at, until) as at,
        if(starts, 4, 0) as source_no,
        null as `log event`,
        null as `ties event`,
        null as `snapshots event`,
        if(starts, struct(state, until), null) as `periods event`,
        null as `ties tie`
    from `periods rows` as source_rows
    lateral view explode(array(true, false)) ends as starts
    where starts or until is not null
),
ranked as (
    select *,
        row_number() over ranking as nth,
        first_value(`log event`) over ranking as `log winner`,
        first_value(`snapshots event`) over ranking as `snapshots winner`,
        first_value(`periods event`) over ranking as `periods winner`
    from (select * from events distribute by key_1)
    window ranking as (
        partition by key_1, at, source_no
        order by
            `ties tie` desc
        rows between unbounded preceding and current row
    )
),
moments as (
    select
        key_1,
        at,
        last_value(at) over before as at_before,
        last_value(`log event`) ignore nulls over now as `log now`,
        last_value(`log event`) ignore nulls over before as `log before`,
        last_value(`ties event`) ignore nulls over now as `ties now`,
        last_value(`ties event`) ignore nulls over before as `ties before`,
        last_value(`snapshots event`) ignore nulls over now as `snapshots now`,
        last_value(`snapshots event`) ignore nulls over before as `snapshots before`,
        `periods event`,
        last_value(`periods event`) ignore nulls over now as `periods now`,
        last_value(`periods event`) ignore nulls over before as `periods before`,
        lead(at) over (partition by key_1 order by at) as next_at
    from ranked
    where case
            when `log event` is not null and not (`log event` <=> `log winner`) then cast(raise_error(concat('healing_tables: unresolved tie in source log (lab_test_plan.log) of everything: key ', '', 'id = ', cast(key_1 as string), ' at ', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(at)) * interval '0.000001' second as string), ' UTC; ', 'wanted: one row per key and moment; got: rows that differ; remedy: give the source tie_break_by, or on_tie: greatest')) as boolean)
            when `snapshots event` is not null and not (`snapshots event` <=> `snapshots winner`) then cast(raise_error(concat('healing_tables: unresolved tie in source snapshots (lab_test_plan.snapshots) of everything: key ', '', 'id = ', cast(key_1 as string), ' at ', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(at)) * interval '0.000001' second as string), ' UTC; ', 'wanted: one row per key and moment; got: rows that differ; remedy: give the source tie_break_by, or on_tie: greatest')) as boolean)
            when `periods event` is not null and not (`periods event` <=> `periods winner`) then cast(raise_error(concat('healing_tables: overlapping periods in source periods (lab_test_plan.periods) of everything: key ', '', 'id = ', cast(key_1 as string), ' at ', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(at)) * interval '0.000001' second as string), ' UTC; ', 'wanted: periods of a key that touch at most; got: a period that starts before the one before it has ended; remedy: cut or remove one of them in the source')) as boolean)
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
        `log now`.state as `log`,
        `ties now`.state as `ties`,
        if(`snapshots now`.until <= at, null, `snapshots now`.state) as `snapshots`,
        if(`periods now`.until <= at, null, `periods now`.state) as `periods`,
        not (`log now`.state <=> `log before`.state) as change_1,
        not (`ties now`.state <=> `ties before`.state) as change_2,
        not (if(`snapshots now`.until <= at, null, `snapshots now`.state) <=> if(`snapshots before`.until <= at_before, null, `snapshots before`.state)) as change_3,
        not (if(`periods now`.until <= at, null, `periods now`.state) <=> if(`periods before`.until <= at_before, null, `periods before`.state)) as change_4,
        not (`log now`.state.`c3` <=> `log before`.state.`c3`) or (`log now`.state is null) <> (`log before`.state is null) as change_5,
        not (`ties now`.state.`c3` <=> `ties before`.state.`c3`) or (`ties now`.state is null) <> (`ties before`.state is null) as change_6,
        not (if(`snapshots now`.until <= at, null, `snapshots now`.state).`c3` <=> if(`snapshots before`.until <= at_before, null, `snapshots before`.state).`c3`) or (if(`snapshots now`.until <= at, null, `snapshots now`.state) is null) <> (if(`snapshots before`.until <= at_before, null, `snapshots before`.state) is null) as change_7,
        not (if(`periods now`.until <= at, null, `periods now`.state).`c3` <=> if(`periods before`.until <= at_before, null, `periods before`.state).`c3`) or (if(`periods now`.until <= at, null, `periods now`.state) is null) <> (if(`periods before`.until <= at_before, null, `periods before`.state) is null) as change_8,
        not (`log now`.state.`c7` <=> `log before`.state.`c7`) or (`log now`.state is null) <> (`log before`.state is null) as change_9,
        not (`ties now`.state.`c7` <=> `ties before`.state.`c7`) or (`ties now`.state is null) <> (`ties before`.state is null) as change_10,
        not (if(`snapshots now`.until <= at, null, `snapshots now`.state).`c7` <=> if(`snapshots before`.until <= at_before, null, `snapshots before`.state).`c7`) or (if(`snapshots now`.until <= at, null, `snapshots now`.state) is null) <> (if(`snapshots before`.until <= at_before, null, `snapshots before`.state) is null) as change_11,
        not (if(`periods now`.until <= at, null, `periods now`.state).`c7` <=> if(`periods before`.until <= at_before, null, `periods before`.state).`c7`) or (if(`periods now`.until <= at, null, `periods now`.state) is null) <> (if(`periods before`.until <= at_before, null, `periods before`.state) is null) as change_12
    from moments
    where case
            when `periods event` is not null and `periods before` is not null and coalesce(`periods before`.until > at, true) then cast(raise_error(concat('healing_tables: overlapping periods in source periods (lab_test_plan.periods) of everything: key ', '', 'id = ', cast(key_1 as string), ' at ', cast(timestamp_ntz '1970-01-01 00:00:00' + unix_micros(timestamp_micros(at)) * interval '0.000001' second as string), ' UTC; ', 'wanted: periods of a key that touch at most; got: a period that starts before the one before it has ended; remedy: cut or remove one of them in the source')) as boolean)
            else at is distinct from next_at
        end
        and (
            not (`log now`.state <=> `log before`.state)
            or not (`ties now`.state <=> `ties before`.state)
            or not (if(`snapshots now`.until <= at, null, `snapshots now`.state) <=> if(`snapshots before`.until <= at_before, null, `snapshots before`.state))
            or not (if(`periods now`.until <= at, null, `periods now`.state) <=> if(`periods before`.until <= at_before, null, `periods before`.state))
        )
),
recent as (
    select *,
        last_value(if(change_1, at, null)) ignore nulls over so_far as began_1,
        last_value(if(change_2, at, null)) ignore nulls over so_far as began_2,
        last_value(if(change_3, at, null)) ignore nulls over so_far as began_3,
        last_value(if(change_4, at, null)) ignore nulls over so_far as began_4,
        last_value(if(change_5, at, null)) ignore nulls over so_far as began_5,
        last_value(if(change_6, at, null)) ignore nulls over so_far as began_6,
        last_value(if(change_7, at, null)) ignore nulls over so_far as began_7,
        last_value(if(change_8, at, null)) ignore nulls over so_far as began_8,
        last_value(if(change_9, at, null)) ignore nulls over so_far as began_9,
        last_value(if(change_10, at, null)) ignore nulls over so_far as began_10,
        last_value(if(change_11, at, null)) ignore nulls over so_far as began_11,
        last_value(if(change_12, at, null)) ignore nulls over so_far as began_12
    from points
    window so_far as (partition by key_1 order by at rows between unbounded preceding and current row)
),
slices as (
    select
        key_1,
        at,
        case when (`log` is not null or `periods` is not null) and (`log` is not null or `ties` is not null or `snapshots` is not null or `periods` is not null) then struct(coalesce(`log`.`c4`, `ties`.`c4`, `snapshots`.`c4`, `periods`.`c4`) as value, at) end as first_1,
        case when `log` is not null or `periods` is not null then struct(
            case when `log` is not null then `log`.`c5` when `ties` is not null then `ties`.`c5` when `snapshots` is not null then `snapshots`.`c5` when `periods` is not null then `periods`.`c5` end as `c5`,
            case when `log`.`c6` is not null and (`ties`.`c6` is null or began_1 >= began_2) and (`snapshots`.`c6` is null or began_1 >= began_3) and (`periods`.`c6` is null or began_1 >= began_4) then `log`.`c6` when `ties`.`c6` is not null and (`snapshots`.`c6` is null or began_2 >= began_3) and (`periods`.`c6` is null or began_2 >= began_4) then `ties`.`c6` when `snapshots`.`c6` is not null and (`periods`.`c6` is null or began_3 >= began_4) then `snapshots`.`c6` else `periods`.`c6` end as `c6`
        ) end as overwritten,
        concat_ws(',', if(change_1, 'log', null), if(change_2, 'ties', null), if(change_3, 'snapshots', null), if(change_4, 'periods', null)) as change_source,
        case when `log` is not null or `periods` is not null then struct(
            coalesce(`log`.`c0`, `ties`.`c0`, `snapshots`.`c0`, `periods`.`c0`) as `c0`,
            case when `log` is not null then `log`.`c1` when `ties` is not null then `ties`.`c1` when `snapshots` is not null then `snapshots`.`c1` when `periods` is not null then `periods`.`c1` end as `c1`,
            case when `log`.`c2` is not null and (`ties`.`c2` is null or began_1 >= began_2) and (`snapshots`.`c2` is null or began_1 >= began_3) and (`periods`.`c2` is null or began_1 >= began_4) then `log`.`c2` when `ties`.`c2` is not null and (`snapshots`.`c2` is null or began_2 >= began_3) and (`periods`.`c2` is null or began_2 >= began_4) then `ties`.`c2` when `snapshots`.`c2` is not null and (`periods`.`c2` is null or began_3 >= began_4) then `snapshots`.`c2` else `periods`.`c2` end as `c2`,
            case when `log`.`c3` is not null and (`ties`.`c3` is null or began_5 >= began_6) and (`snapshots`.`c3` is null or began_5 >= began_7) and (`periods`.`c3` is null or began_5 >= began_8) then `log`.`c3` when `ties`.`c3` is not null and (`snapshots`.`c3` is null or began_6 >= began_7) and (`periods`.`c3` is null or began_6 >= began_8) then `ties`.`c3` when `snapshots`.`c3` is not null and (`periods`.`c3` is null or began_7 >= began_8) then `snapshots`.`c3` else `periods`.`c3` end as `c3`,
            case when `log`.`c7` is not null and (`ties`.`c7` is null or began_9 >= began_10) and (`snapshots`.`c7` is null or began_9 >= began_11) and (`periods`.`c7` is null or began_9 >= began_12) then `log`.`c7` when `ties`.`c7` is not null and (`snapshots`.`c7` is null or began_10 >= began_11) and (`periods`.`c7` is null or began_10 >= began_12) then `ties`.`c7` when `snapshots`.`c7` is not null and (`periods`.`c7` is null or began_11 >= began_12) then `snapshots`.`c7` else `periods`.`c7` end as `c7`
        ) end as versioned
    from recent
),
neighbours as (
    select *,
        lag(versioned) over in_order as versioned_before,
        lead(versioned) over in_order as versioned_after,
        lead(at) over in_order as valid_to,
        last_value(overwritten) ignore nulls over whole as newest,
        last_value(overwritten) ignore nulls over earlier as overwritten_known,
        last_value(versioned) ignore nulls over whole as newest_versioned,
        last_value(versioned) ignore nulls over earlier as versioned_known,
        first_value(first_1) ignore nulls over whole as first_1_value,
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
        last_value(if(not (versioned <=> versioned_before), struct(at, slice_no, versioned_known, versioned_before is null as after_gap, change_source), null)) ignore nulls over so_far as start,
        count(if(not (versioned <=> versioned_before), 1, null)) over so_far as version,
        last_value(if((overwritten_known is null or not (overwritten.`c5` <=> overwritten_known.`c5`)), struct(at), null)) ignore nulls over whole as move_6,
        last_value(if((overwritten_known is null or not (overwritten.`c6` <=> overwritten_known.`c6`)), struct(at, overwritten_known.`c6` as previous), null)) ignore nulls over so_far as move_7,
        last_value(if((versioned_known is null or not (versioned.`c7` <=> versioned_known.`c7`)), struct(at), null)) ignore nulls over whole as move_8
    from neighbours
    where versioned is not null
        and (
            not (versioned <=> versioned_before)
            or not (versioned <=> versioned_after)
            or (overwritten_known is null or not (overwritten.`c5` <=> overwritten_known.`c5`))
            or (overwritten_known is null or not (overwritten.`c6` <=> overwritten_known.`c6`))
            or (versioned_known is null or not (versioned.`c7` <=> versioned_known.`c7`))
        )
    window
        so_far as (partition by key_1 order by at rows between unbounded preceding and current row),
        whole as (partition by key_1 order by at rows between unbounded preceding and unbounded following)
),
versions as (
    select *,
        if(version = 1, least(unix_micros(timestamp '1900-01-01 00:00:00Z'), start.at), start.at) as valid_from
    from edges
    where not (versioned <=> versioned_after)
)
select * from versions
)
