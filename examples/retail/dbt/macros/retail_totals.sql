{#- A change log: the number of a user's trades and their value, as each load saw them. -#}
{% macro retail_totals(side) -%}
with trades as (
    -- the stream delivers some twice
    select distinct * from parquet.`{{ var('stream') }}/*/user_trx.parquet`
),
each_load as (
    select
        {{ side }}_id,
        {{ loaded_at('traded_at') }} as loaded_at,
        count(*) as trades,
        sum(bround(amount * price, 2)) as total
    from trades
    group by 1, 2
)
select
    {{ side }}_id,
    loaded_at,
    sum(trades) over until_then as trades,
    cast(sum(total) over until_then as decimal(20, 2)) as total
from each_load
window until_then as (partition by {{ side }}_id order by loaded_at)
{%- endmacro %}
