{#-
    The rows that a capture appends: the current state, compared with the latest entry of each key in the log.

    log  id | name | captured_at | is_deleted      state  id | name      old_state | new_state | is_change
         1  | Ann  | 1           | false                  1  | Bea       Ann       | Bea       | true
         2  | Cid  | 1           | false                  3  | Dan       Cid       | NULL      | true
         4  | Eve  | 1           | false                  4  | Eve       NULL      | Dan       | true
                                                                       Eve       | Eve       | false
-#}
{% macro _capture_changes(candidate, settings, columns, log_table) -%}
{%- set keys = healing_tables._key_names(settings.key_columns) -%}
{%- set has_key = 'not (' ~ healing_tables._has_no_captured_key(settings) ~ ')' -%}
{%- set same_key = [] -%}
{%- for key in settings.key_columns -%}
    {%- do same_key.append('seen.key_' ~ loop.index ~ healing_tables._key_operator(settings) ~ 'known.key_'
        ~ loop.index) -%}
{%- endfor -%}
with seen as (
    select {{ healing_tables._captured_row(settings, columns, []) }}
    from {{ candidate }}
    where {{ has_key }}
),
{%- if log_table is not none %}
entries as (
    select {{ healing_tables._captured_row(settings, columns, columns.added) }}, {{ healing_tables._quoted(
        settings.captured_at) }} as at,
        coalesce({{ healing_tables._quoted(settings.deleted) }}, false) as is_deleted
    from {{ log_table }}
    where {{ has_key }}
),
newest as (
    select {{ keys }}, max_by(struct(state, is_deleted), at) as entry
    from entries
    group by {{ keys }}
),
{%- endif %}
known as (
    select {{ keys }}, {{ 'entry.state from newest where not entry.is_deleted' if log_table is not none
        else 'state from seen where false' }}
),
compared as (
    select known.state as old_state, seen.state as new_state, not (seen.state <=> known.state) as is_change
    from seen
    {{ 'full' if settings.on_absence == 'delete' else 'left' }} join known on {{ same_key | join(' and ') }}
    {%- if settings.within and settings.on_absence == 'delete' %}
    {#- the select says nothing about keys of parts that it lacks -#}
    {%- set part = healing_tables._part_of_state(settings, columns) %}
    left join (select distinct {{ part }} as part from seen) as parts
    on seen.state is null and parts.part <=> {{ part | replace('state.', 'known.state.') }}
    where seen.state is not null or parts.part is not null
    {%- endif %}
)
{%- endmacro %}

{#- Whether a row has no key: NULL in one of its columns, or with null_keys: keep in all. -#}
{% macro _has_no_captured_key(settings) -%}
    {%- set conditions = [] -%}
    {%- for key in settings.key_columns -%} {%- do conditions.append(healing_tables._quoted(key) ~ ' is null') -%}
    {%- endfor -%}
    {{- return(conditions | join(' and ' if settings.has_null_keys else ' or ')) -}}
{%- endmacro %}

{#- The keys and the whole row as columns with internal names; columns that the log does not have yet are NULL. -#}
{% macro _captured_row(settings, columns, missing) -%}
    {%- set parts = [] -%}
    {%- for key in settings.key_columns -%}
        {%- do parts.append(healing_tables._quoted(key) ~ ' as key_' ~ loop.index) -%}
    {%- endfor -%}
    {%- set fields = [] -%}
    {%- for name, type in columns.types.items() -%}
        {%- do fields.append(('cast(null as ' ~ type ~ ')' if name in missing else healing_tables._quoted(name))
            ~ ' as c_'
            ~ loop.index) -%}
    {%- endfor -%}
    {{- return((parts | join(', ')) ~ ', struct(' ~ (fields | join(', ')) ~ ') as state') -}}
{%- endmacro %}

{#- The values of `within` in a row. -#}
{% macro _part_of_state(settings, columns) -%}
    {%- set fields, within = [], settings.within | map('lower') | list -%}
    {%- for name in columns.types if name | lower in within -%}
        {%- do fields.append('state.c_' ~ ((columns.types | list).index(name) + 1)) -%}
    {%- endfor -%}
    {{- return('struct(' ~ (fields | join(', ')) ~ ')') -}}
{%- endmacro %}

{#-
    One insert-only MERGE. It compares with the log again, as this statement reads it, so that a concurrent commit is a
    conflict. A capture that committed after this run began has read a newer state than this run: then the newest moment
    of the log is a different one, and nothing is appended.
-#}
{% macro _append_changes(run, columns, at, place) -%}
{%- set settings = run.settings -%}
{%- set names = [] -%}
{%- set values = [] -%}
{%- set on = [] -%}
{%- for name in columns.types -%}
    {%- do names.append(healing_tables._quoted(name)) -%}
    {%- do values.append('d.state.c_' ~ loop.index) -%}
    {%- if name | lower in (settings.key_columns | map('lower') | list) -%}
        {%- do on.append('t.' ~ healing_tables._quoted(name) ~ healing_tables._key_operator(settings)
            ~ 'd.state.c_' ~ loop.index) -%}
    {%- endif -%}
{%- endfor -%}
{%- set captured_at = healing_tables._quoted(settings.captured_at) %}
merge into {{ place }} as t
using (
    {{ healing_tables._capture_changes(run.candidate_table, settings, columns, place) }}
    select
        coalesce(new_state, old_state) as state,
        new_state is null as is_deleted,
        timestamp_micros({{ at.moment }}) as captured_at
    from compared
    cross join (select max(unix_micros({{ captured_at }})) as newest from {{ place }})
    where is_change and newest <=> {{ 'null' if at.newest is none else at.newest }}
) as d
on t.{{ captured_at }} = d.captured_at and {{ on | join(' and ') }}
when not matched then insert ({{ names | join(', ') }}, {{ captured_at }}, {{ healing_tables._quoted(
    settings.deleted) }})
values ({{ values | join(', ') }}, d.captured_at, d.is_deleted)
{%- endmacro %}
