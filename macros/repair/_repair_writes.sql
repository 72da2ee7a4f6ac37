{#- What a repair writes: a candidate beside the table, the rows set aside, and one MERGE. -#}

{#- All rows of the keys that change, before and after the repair. -#}
{% macro _create_repair_candidate(candidate, format, stored_table) -%}
{%- set keys = healing_tables._key_names(stored_table.key_columns) -%}
create or replace table {{ candidate }}
using {{ format.name }}
as
{{ healing_tables._repair_plan(stored_table) }}
select {{ healing_tables._plan_columns(stored_table) }}
from (
    select *, bool_or(is_changed or fate is not null) over (partition by {{ keys }}) as is_affected
    from repaired
)
where is_affected
{%- endmacro %}

{#- The rows that are kept, as the table will store them: input of the checks. -#}
{% macro _rows_after(stored_table, relation) -%}
select
    {%- for column in healing_tables._kept_columns(stored_table) %}
    {{ column.after }} as {{ healing_tables._quoted(column.name) }}{{ ',' if not loop.last }}
    {%- endfor %}
from {{ relation }}
where fate is null
{%- endmacro %}

{#-
    The side table: the columns of the table, and why, when and by which run a row was removed. Columns that are new in
    the table are added.
-#}
{% macro _prepare_set_aside(mistakes, side, format, stored_table) -%}
    {%- set columns = [] -%}
    {%- for name, type in stored_table.columns.items() -%}
        {%- do columns.append('cast(null as ' ~ type ~ ') as ' ~ healing_tables._quoted(name)) -%}
    {%- endfor -%}
    {%- if load_relation(side) is none -%}
        {%- set query = 'select ' ~ (columns | join(', ')) ~ ', cast(null as string) as set_aside_reason, '
            ~ 'cast(null as timestamp_ltz) as set_aside_at, cast(null as string) as set_aside_by where false' -%}
        {%- do healing_tables._run('create table if not exists ' ~ side ~ ' using ' ~ format.name ~ ' '
            ~ healing_tables._tblproperties(format, stored_table.columns, {}) ~ ' as ' ~ query) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set there = healing_tables._columns_of(side) -%}
    {%- set new = [] -%}
    {%- for name, type in stored_table.columns.items() -%}
        {%- set stored = healing_tables._type_of_column(there, name) -%}
        {%- if stored is none -%} {%- do new.append(healing_tables._quoted(name) ~ ' ' ~ type) -%}
        {%- elif stored != type -%}
            {%- do healing_tables._mistake(
                mistakes, side ~ '.' ~ name, type ~ ', as in the table', stored,
                'rename the side table, so that a new one is created') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._check_columns(mistakes, side | string, ['set_aside_reason', 'set_aside_at', 'set_aside_by'],
        side | string, there) -%}
    {%- if new and not mistakes -%}
        {%- do healing_tables._run('alter table ' ~ side ~ ' add columns (' ~ (new | join(', ')) ~ ')') -%}
    {%- endif -%}
{%- endmacro %}

{#- A row that a killed run has already written is not written again. -#}
{% macro _merge_set_aside(side, candidate, stored_table) -%}
{%- set names = [] -%}
{%- set values = [] -%}
{%- for column in healing_tables._kept_columns(stored_table) -%}
    {%- do names.append(healing_tables._quoted(column.name)) -%}
    {%- do values.append('s.' ~ column.before) -%}
{%- endfor -%}
merge into {{ side }} as t
using (
    select row, fate from {{ candidate }} where fate <> 'exact_duplicate'
) as s
on {{ healing_tables._row_content('t.', stored_table.columns) }} <=> {{ healing_tables._row_content('s.row.',
    stored_table.columns, true) }}
when not matched then insert ({{ names | join(', ') }}, set_aside_reason, set_aside_at, set_aside_by)
values ({{ values | join(', ') }}, s.fate, now(), {{ healing_tables._string_literal(invocation_id) }})
{%- endmacro %}

{#-
    The repair as one MERGE. Rows are matched by all of their columns, so that no other row is changed. The statement
    reads the current rows of the keys and compares them with those that the plan was made from; it fails if another
    writer has changed them. A MERGE cannot distinguish exact duplicates, so all of them are deleted and one is
    inserted.
-#}
{% macro _merge_repair(target, candidate, stored_table) -%}
{%- set keys = healing_tables._key_names(stored_table.key_columns) -%}
{%- set stored_keys = [] -%}
{%- set same_key = [] -%}
{%- for key in stored_table.key_columns -%}
    {%- do stored_keys.append('t.' ~ healing_tables._quoted(key) ~ ' as key_' ~ loop.index) -%}
    {%- do same_key.append('t.' ~ healing_tables._quoted(key) ~ ' <=> s.key_' ~ loop.index) -%}
{%- endfor -%}
{%- set names = [] -%}
{%- set values = [] -%}
{%- set assignments = [] -%}
{%- set same = [] -%}
{%- for column in healing_tables._kept_columns(stored_table) -%}
    {%- do names.append(healing_tables._quoted(column.name)) -%}
    {%- do values.append('s.' ~ column.after) -%}
    {%- if column.after != column.before -%}
        {%- do assignments.append('t.' ~ healing_tables._quoted(column.name) ~ ' = s.' ~ column.after) -%}
        {%- do same.append(column.after ~ ' <=> ' ~ column.before) -%}
    {%- endif -%}
{%- endfor -%}
merge into {{ target }} as t
using (
    with planned as (
        select {{ keys }}, content, any_value(row) as row, max(if(fate is null, after, null)) as after,
            count(*) as copies
        from (
            select *, {{ healing_tables._row_content('row.', stored_table.columns, true) }} as content
            from {{ candidate }}
        )
        group by {{ keys }}, content
    ),
    stored as (
        select {{ keys }}, content, count(*) as copies
        from (
            select {{ stored_keys | join(', ') }}, {{ healing_tables._row_content('t.',
                stored_table.columns) }} as content
            from {{ target }} as t
            left semi join {{ candidate }} as s
            on {{ same_key | join(' and ') }}
        )
        group by {{ keys }}, content
    ),
    compared as (
        select planned.*, stored.copies as stored_copies
        from planned
        full outer join stored
        on planned.content <=> stored.content
    )
    select *
    from compared
    lateral view explode(case
        when not copies <=> stored_copies then array(cast(raise_error(
            'healing_tables.repair: another writer has changed these keys in between; run it again'
        ) as string))
        when after is null then array('delete')
        when copies > 1 then array('delete', 'insert')
        when {{ same | join(' and ') }} then array()
        else array('update')
    end) actions as action
) as s
on s.action <> 'insert' and {{ same_key | join(' and ') }}
and {{ healing_tables._row_content('t.', stored_table.columns) }} <=> s.content
when matched and s.action = 'delete' then delete
when matched then update set {{ assignments | join(', ') }}
when not matched then insert ({{ names | join(', ') }}) values ({{ values | join(', ') }})
{%- endmacro %}
