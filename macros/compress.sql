{#-
    Combine adjacent rows of a key with equal values. Overlapping rows are not combined, so that the checks find them.

    id | limit | valid_from | valid_to         id | limit | valid_from | valid_to   | compressed_row_count
    1  | 10    | 2024-01-01 | 2024-01-05   ->  1  | 10    | 2024-01-01 | 2024-01-09 | 2
    1  | 10    | 2024-01-05 | 2024-01-09       1  | 20    | 2024-01-09 | 2024-01-11 | 1
    1  | 20    | 2024-01-09 | 2024-01-11
-#}
{% macro compress(relation, key_columns, tracked_columns, count_column=none) -%}
{%- set instead = healing_tables._placeholder_select('compress', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set key_columns = healing_tables._as_list(key_columns) -%}
{%- set tracked_columns = healing_tables._as_list(tracked_columns) -%}
{%- do healing_tables._check_compress(relation, key_columns, tracked_columns, count_column) -%}
{%- set in_order = 'partition by ' ~ healing_tables._key_names(key_columns) ~ ' order by valid_from, valid_to' -%}
select
    {%- for key in key_columns %}
    key_{{ loop.index }} as {{ healing_tables._quoted(key) }},
    {%- endfor %}
    {%- for column in tracked_columns %}
    versioned.{{ healing_tables._quoted(column) }},
    {%- endfor %}
    start.valid_from,
    valid_to,
    is_current,
    rows_so_far - start.rows_before as compressed_row_count
from (
with rows as (
    select
        {%- for key in key_columns %}
        {{ healing_tables._quoted(key) }} as key_{{ loop.index }},
        {%- endfor %}
        struct({% for column in tracked_columns %}{{ healing_tables._quoted(column) }}{{ ', ' if not loop.last }}{%
            else %}true as present{% endfor %}) as versioned,
        valid_from,
        valid_to,
        is_current,
        cast({{ 'coalesce(' ~ healing_tables._quoted(count_column) ~ ', 1)' if count_column is not none
            else 1 }} as bigint) as row_count
    from {{ relation }}
),
neighbours as (
    select *,
        not coalesce(lag(valid_to) over in_order = valid_from and lag(versioned) over in_order <=> versioned,
            false) as starts,
        not coalesce(lead(valid_from) over in_order = valid_to and lead(versioned) over in_order <=> versioned,
            false) as ends,
        sum(row_count) over so_far as rows_so_far
    from rows
    window
        in_order as ({{ in_order }}),
        so_far as ({{ in_order }} rows between unbounded preceding and current row)
),
edges as (
    select *,
        last_value(if(starts, struct(valid_from, rows_so_far - row_count as rows_before), null)) ignore nulls over (
            {{ in_order }} rows between unbounded preceding and current row
        ) as start
    from neighbours
    where starts or ends
)
select * from edges where ends
)
{%- endmacro %}

{% macro _check_compress(relation, key_columns, tracked_columns, count_column) -%}
    {%- set mistakes = [] -%}
    {%- if not key_columns -%}
        {%- do healing_tables._mistake(mistakes, 'key_columns', 'at least one column', 'none',
            'name the key columns') -%}
    {%- endif -%}
    {%- set columns = healing_tables._columns_of(relation) -%}
    {%- for argument, names in {
        'key_columns': key_columns, 'tracked_columns': tracked_columns,
        'count_column': healing_tables._as_list(count_column),
        'relation': ['valid_from', 'valid_to', 'is_current']}.items() -%}
        {%- do healing_tables._check_columns(mistakes, argument, names, relation | string, columns) -%}
    {%- endfor -%}
    {%- for name in tracked_columns if columns is not none
        and healing_tables._find_column(name, columns) is not none -%}
        {%- do healing_tables._check_attribute_type(mistakes, 'tracked_columns.' ~ name,
            columns[healing_tables._find_column(name, columns)], none) -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes('compress', mistakes) -%}
{%- endmacro %}
