{#-
    The rows of a batch that have no place on a timeline go to <dimension>__set_aside, each once. The library makes the
    same table (src/healing_tables/plan/set_aside.py).

    id   | name | reason                | set_aside_at     | set_aside_batch_id | set_aside_row_id
    NULL | Bo   | NULL in key column id | 2024-01-02 03:00 | 4f...              | 9c...
-#}

{#- The columns of that table {name: type}. -#}
{% macro _set_aside_columns(layout) -%}
    {%- set own = ['set_aside_at', 'set_aside_batch_id', 'set_aside_row_id'] -%}
    {%- set columns = {} -%}
    {#- these rows may come from that table, corrected -#}
    {%- for name, type in layout.given.items() if name | lower not in own -%}
        {%- do columns.update({name: healing_tables._type_set_aside(type)}) -%}
    {%- endfor -%}
    {%- do columns.update({healing_tables._reason_column(layout): 'string', 'set_aside_at': 'timestamp',
        'set_aside_batch_id': 'string', 'set_aside_row_id': 'string'}) -%}
    {{- return(columns) -}}
{%- endmacro %}

{% macro _reason_column(layout) -%}
    {{- return('reason' if healing_tables._find_column('reason', layout.given) is none else 'set_aside_reason') -}}
{%- endmacro %}

{% macro _type_set_aside(type) -%}
    {{- return(type if modules.re.fullmatch('(tiny|small|big)?int|float|double|decimal[(].*|boolean|string|binary|date|'
        'timestamp|timestamp_ntz', type) else 'string') -}}
{%- endmacro %}

{#- A row of the batch as a struct of its columns; arrays, structs and maps as JSON. -#}
{% macro _row_as_given(layout) -%}
    {%- set fields = [] -%}
    {%- for name, type in layout.given.items() -%}
        {%- set value = healing_tables._quoted(name) -%}
        {%- set is_nested = type.split('<')[0] in ['array', 'struct', 'map'] -%}
        {%- do fields.append((value if healing_tables._type_set_aside(type) == type
            else 'to_json(' ~ value ~ ', ' ~ healing_tables._json_options() ~ ')' if is_nested
            else 'cast(' ~ value ~ ' as string)') ~ ' as ' ~ value) -%}
    {%- endfor -%}
    {{- return('struct(' ~ (fields | join(', ')) ~ ')') -}}
{%- endmacro %}

{#- Add the rows that are set aside to their table, and warn. -#}
{% macro _set_batch_aside(run, layout, batch, number) -%}
    {%- if not number -%} {{ return(none) }} {%- endif -%}
    {%- set table = healing_tables._ensure_set_aside(run, layout, number) -%}
    {%- do healing_tables._run(healing_tables._set_aside_statement(run.format, layout, batch, table)) -%}
{%- endmacro %}

{#- Make the table, or give it the columns of this batch, and warn. Returns the relation. -#}
{% macro _ensure_set_aside(run, layout, number) -%}
    {%- set table = healing_tables._beside(run.target, '__set_aside') -%}
    {%- set mistakes = [] -%}
    {#- a folder becomes a part of the table as it is -#}
    {%- set found = healing_tables._ensure_table_beside(run.format, mistakes, table, 'table of the rows set aside',
        healing_tables._set_aside_columns(layout), [], run.format.properties.change_log,
        same_types=run.commit is not none) -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {%- do run.format.widen(table, found.narrower) if found.narrower -%}
    {%- do exceptions.warn(healing_tables._plain_names(run.target ~ ': ' ~ healing_tables._counted(number, 'row')
        ~ ' of the batch set aside, see ' ~ table)) -%}
    {{- return(table) -}}
{%- endmacro %}

{% macro _set_aside_statement(format, layout, batch, table) -%}
{%- set names = healing_tables._quoted_list(healing_tables._set_aside_columns(layout)) -%}
merge into {{ table }} as t
using (
{{ healing_tables._rows_set_aside(layout, batch) }}
) as s
on t.set_aside_row_id = s.set_aside_row_id
{{ healing_tables._insert_missing(format, names) }}
{%- endmacro %}

{#- The rows of a batch that are set aside, each once, as a select. -#}
{% macro _rows_set_aside(layout, batch) -%}
{%- set columns, reason = healing_tables._set_aside_columns(layout), healing_tables._reason_column(layout) -%}
select {{ healing_tables._quoted_list(columns) | join(', ') }}
from (
    select
        {%- for name, type in columns.items() if name in layout.given
            and name not in ['set_aside_at', 'set_aside_batch_id', 'set_aside_row_id', reason] %}
        cast(given.{{ healing_tables._quoted(name) }} as {{ type }}) as {{ healing_tables._quoted(name) }},
        {%- endfor %}
        reason as {{ reason }}, now() as set_aside_at,
        {{ healing_tables._string_literal(invocation_id) }} as set_aside_batch_id, set_aside_row_id,
        row_number() over (partition by set_aside_row_id order by reason) as healing_tables_place
    from (
        select healing_tables_given as given, healing_tables_reason as reason, sha2(to_json(struct(
            healing_tables_given as given, healing_tables_reason as reason), {{ healing_tables._json_options()
            }}), 256) as set_aside_row_id
        from {{ batch }}
        where healing_tables_reason is not null
    )
)
where healing_tables_place = 1
{%- endmacro %}
