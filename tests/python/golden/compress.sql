select
    key_1 as `id`,
    versioned.`c0`,
    versioned.`c1`,
    start.valid_from,
    valid_to,
    is_current,
    rows_so_far - start.rows_before as compressed_row_count
from (
with rows as (
    select
        `id` as key_1,
        struct(`c0`, `c1`) as versioned,
        valid_from,
        valid_to,
        is_current,
        cast(1 as bigint) as row_count
    from lab_test_plan.simple
),
neighbours as (
    select *,
        not coalesce(lag(valid_to) over in_order = valid_from and lag(versioned) over in_order <=> versioned, false) as starts,
        not coalesce(lead(valid_from) over in_order = valid_to and lead(versioned) over in_order <=> versioned, false) as ends,
        sum(row_count) over so_far as rows_so_far
    from rows
    window
        in_order as (partition by key_1 order by valid_from, valid_to),
        so_far as (partition by key_1 order by valid_from, valid_to rows between unbounded preceding and current row)
),
edges as (
    select *,
        last_value(if(starts, struct(valid_from, rows_so_far - row_count as rows_before), null)) ignore nulls over (
            partition by key_1 order by valid_from, valid_to rows between unbounded preceding and current row
        ) as start
    from neighbours
    where starts or ends
)
select * from edges where ends
)
