{#-
    The differences of a stored dimension from a rebuild or another table: for compare and matches_rebuild.

    differing  key_1 | start      | stored_row | candidate_row | how
               1     | 2024-01-01 | Ann        | Anne          | different
               1     | 2024-02-01 | Bea        | NULL          | superfluous

    Rows that are equal in every column cancel out, as many as there are on both sides. The rest is matched by key and
    start. Several rows with the same start are paired in the order of their values.
-#}
{% macro _row_differences(inputs) -%}
with sides as (
    select {{ inputs.stored }}, true as is_stored
    from {{ inputs.stored_rows }}
    union all
    select {{ inputs.other }}, false as is_stored
    from {{ inputs.rows }}
),
unequal as (
    select {{ inputs.key_names }}, start, compared, count_if(is_stored) as before, count_if(not is_stored) as after
    from sides
    group by {{ inputs.key_names }}, start, compared
    having count_if(is_stored) <> count_if(not is_stored)
),
surplus as (
    select {{ inputs.key_names }}, start,
        sort_array(flatten(collect_list(array_repeat(compared,
            cast(before - after as int))) filter (where before > after))) as stored_rows,
        sort_array(flatten(collect_list(array_repeat(compared,
            cast(after - before as int))) filter (where after > before))) as candidate_rows
    from unequal
    group by {{ inputs.key_names }}, start
),
differing as (
    select {{ inputs.key_names }}, start, pair.stored_row, pair.candidate_row,
        case when pair.stored_row is null then 'missing' when pair.candidate_row is null then 'superfluous'
        else 'different' end as how
    from surplus
    lateral view explode(transform(
        sequence(1, greatest(size(stored_rows), size(candidate_rows))),
        n -> struct(get(stored_rows, n - 1) as stored_row, get(candidate_rows, n - 1) as candidate_row))) pairs as pair
)
{%- endmacro %}

{#- The differing columns of a row: [{column, stored, other}], values as text. -#}
{% macro _differing_cells(inputs) -%}
    {%- set cells = [] -%}
    {%- for column in inputs.columns -%}
        {%- set field = '.' ~ healing_tables._quoted(column) -%}
        {%- do cells.append(
            'if(not (stored_row' ~ field ~ ' <=> candidate_row' ~ field ~ '), struct('
                ~ healing_tables._string_literal(column)
            ~ ' as column, '
            ~ healing_tables._as_text('stored_row' ~ field, inputs.types[column]) ~ ' as stored, '
            ~ healing_tables._as_text('candidate_row' ~ field, inputs.types[column]) ~ ' as other), null)') -%}
    {%- endfor -%}
    {{- return("if(how = 'different', filter(array(" ~ (cells | join(', ') or 'null')
        ~ '), cell -> cell is not null), array())') -}}
{%- endmacro %}

{#-
    The difference in one query: {stored, other, missing, superfluous, different, rows, keys (that have any), columns
    {name: rows}, examples [{how, key, start, differing}]}, up to five examples of each kind, the first by key and
    start.
-#}
{% macro _row_report(inputs) -%}
    {%- set keys = [] -%}
    {%- for type in inputs.key_types -%}
        {%- do keys.append(healing_tables._as_text('key_' ~ loop.index, type)) -%}
    {%- endfor -%}
    {%- set query -%}
{{ healing_tables._row_differences(inputs) }},
{#- the first five of each part are enough to find the first five of all, without a global sort #}
parts as (
    select *, row_number() over (partition by how, pmod(xxhash64({{ inputs.key_names }}),
        64) order by {{ inputs.key_names }}, start) as nth
    from differing
),
figures as (
    select
        count(distinct {{ inputs.key_names }}) as keys,
        {%- for how in ['missing', 'superfluous', 'different'] %}
        count_if(how = '{{ how }}') as {{ how }},
        slice(sort_array(collect_list(
            struct({{ inputs.key_names }}, start, stored_row, candidate_row,
                array({{ keys | join(', ') }}) as key, {{ inputs.start_text }} as start_text,
                {{ healing_tables._differing_cells(inputs) }} as differing)
        ) filter (where how = '{{ how }}' and nth <= 5)), 1, 5) as {{ how }}_rows,
        {%- endfor %}
        array({% for column in inputs.columns %}count_if(how = 'different'
            and not (stored_row.{{ healing_tables._quoted(column) }} <=> candidate_row.{{ healing_tables._quoted(
                column) }})){{ ', ' if not loop.last }}{% endfor %}) as per_column
    from parts
)
select
    (select count(*) from {{ inputs.stored_rows }}) as stored,
    missing, superfluous, different, keys,
    array_join(transform(per_column, n -> cast(n as string)), ',') as per_column,
    to_json(struct(
        {%- for how in ['missing', 'superfluous', 'different'] %}
        transform({{ how }}_rows, r -> struct(r.key, r.start_text as start, r.differing)) as {{ how }}{{ ','
            if not loop.last }}
        {%- endfor %}
    ), map('ignoreNullFields', 'false')) as examples
from figures
    {%- endset -%}
    {%- set row = run_query(query).rows[0] -%}
    {%- set found = {'stored': row['stored'] | int, 'keys': row['keys'] | int, 'columns': {}, 'examples': [],
        'rows': 0} -%}
    {%- set examples = fromjson(row['examples']) -%}
    {%- for how in ['missing', 'superfluous', 'different'] -%}
        {%- do found.update({how: row[how] | int, 'rows': found.rows + row[how] | int}) -%}
        {%- for example in examples[how] -%} {%- do found.examples.append(dict(example, how=how)) -%} {%- endfor -%}
    {%- endfor -%}
    {%- do found.update({'other': found.stored + found.missing - found.superfluous}) -%}
    {%- set counts = (row['per_column'] or '').split(',') -%}
    {%- for column in inputs.columns -%}
        {%- set count = counts[loop.index0] | int -%}
        {%- if count > 0 -%} {%- do found.columns.update({column: count}) -%} {%- endif -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
