{#-
    What a build would change in the stored table, row by row. Rows that are equal in every column cancel out, as many
    as there are on both sides; the rest is paired by key and start, so that a version that stays is one update.

    stored  id | valid_from | name      candidate  id | valid_from | name
            1  | 2024-01-01 | Ann                  1  | 2024-01-01 | Ann
            1  | 2024-02-01 | Bea                  1  | 2024-02-01 | Eve
                                                   2  | 2024-03-01 | Dan

    key_1 | start      | stored_row | candidate_row
    1     | 2024-02-01 | Bea        | Eve
    2     | 2024-03-01 | NULL       | Dan

    `sides` is what _sides() makes of both tables; its `kept` the table that holds these rows already, or none.
-#}
{% macro _difference(sides) -%}
{%- if sides.kept is not none -%}
with difference as (
    select * from {{ sides.kept }}
)
{%- else -%}
{{ healing_tables._unequal(sides) }},
difference as (
    select {{ sides.key_names }}, start,
        max(if(before > after, compared, null)) as stored_row,
        max(if(after > before, compared, null)) as candidate_row,
        coalesce(bool_or(is_current) filter (where before > after), false) as was_current,
        coalesce(bool_or(is_current) filter (where after > before), false) as is_current,
        {#- only where the check no_overlaps is off, or someone else has written #}
        sum(before) > 1 or sum(after) > 1 as is_repeated
    from unequal
    group by {{ sides.key_names }}, start
    {%- if sides.touched is not none %}
    having bool_or(before <> after)
    {%- endif %}
)
{%- endif -%}
{%- endmacro %}

{#- The rows of which one side has more than the other, each with how many both have. A heal has few: it keeps those that are
    equal, which tell whether a start has several rows. -#}
{% macro _unequal(sides) -%}
with sides as (
    select {{ sides.stored }}, true as is_stored
    from {{ sides.stored_rows }}
    union all
    select {{ sides.candidate }}, false as is_stored
    from {{ sides.candidate_rows }}
),
unequal as (
    select {{ sides.key_names }}, start, is_current, compared, count_if(is_stored) as before, count_if(not is_stored) as after
    from sides
    group by {{ sides.key_names }}, start, is_current, compared
    {%- if sides.touched is none %}
    having count_if(is_stored) <> count_if(not is_stored)
    {%- endif %}
)
{%- endmacro %}

{#- The difference in figures: one row. `stored_versions` are those of all keys, also where a few are healed. -#}
{% macro _figures(sides, existing) -%}
{{ healing_tables._difference(sides) }},
differing_keys as (
    select {{ sides.key_names }},
        count_if(stored_row is null) as inserted,
        count_if(stored_row is not null and candidate_row is not null) as updated,
        count_if(candidate_row is null) as deleted,
        bool_or(was_current) and not bool_or(is_current) as ends,
        {#- also one that would be current again: its end is history, but where a key has one row that shows no gaps #}
        count_if(stored_row is not null and not was_current and (candidate_row is null{{ ' or is_current' if sides.is_versioned }})) as lost_versions,
        bool_or(is_repeated) as is_repeated
    from difference
    group by {{ sides.key_names }}
),
changes as (
    select
        coalesce(sum(inserted), 0) as inserted,
        coalesce(sum(updated), 0) as updated,
        coalesce(sum(deleted), 0) as deleted,
        count_if(ends) as ended_keys,
        coalesce(sum(lost_versions), 0) as lost_versions,
        count_if(is_repeated) as repeated,
        {%- if sides.has_buckets %}
        if(count(*) <= 2000, array_join(collect_set({{ healing_tables._bucket(sides.key_names.split(', ')) }}), ', '), '') as buckets,
        {%- endif %}
        count(*) as differing_keys
    from differing_keys
)
select *, (select count(*) from {{ existing }}) as stored_versions, (select count(*) from {{ sides.candidate_rows }}) as candidate_versions
from changes
{%- endmacro %}

{#- What is stored, over all keys: only a build that takes something away has to ask. -#}
{% macro _stored_figures(sides, existing) -%}
select count(distinct if(is_current, struct({{ sides.key_names }}), null)) as current_keys, count_if(not is_current) as closed_versions
from (select {{ sides.stored }} from {{ existing }})
{%- endmacro %}

{#- Keys by number, the same for equal keys: a short list of these stands for a few keys of any type. -#}
{% macro _bucket(keys) -%} pmod(xxhash64({{ keys | join(', ') }}), 65536) {%- endmacro %}

{#-
    The difference as one MERGE. In a rebuild, a row that is not as it was compared stays: another of its start, or another
    writer was there. A heal knows that no start has several rows, and asks for key and start only: so Delta does not read
    all columns of the target again, and a row that another writer has made meanwhile becomes what this build says. Either
    way the build that another writer has overtaken begins again (retries.sql).
    Delta would compute the difference of a rebuild twice, once to find the files and once to write them: kept for the
    statement, it is computed once. That of a heal is a table already.
    Where few keys differ, rows of other buckets are left out on both sides: else all of the target would be shuffled.
-#}
{% macro _merge_difference(target, change) -%}
{%- set sides = change.sides -%}
{%- set is_kept = sides.kept is not none -%}
{%- do healing_tables._set('spark.databricks.delta.merge.materializeSource', 'none' if is_kept else 'all') -%}
{%- set names = [] -%}
{%- set values = [] -%}
{%- set assignments = [] -%}
{%- set target_keys = [] -%}
{%- for key in sides.key_columns -%} {%- do target_keys.append('t.' ~ healing_tables._id(key)) -%} {%- endfor -%}
{%- set same_start = [] -%}
{%- for key in target_keys -%} {%- do same_start.append(key ~ ' <=> d.key_' ~ loop.index) -%} {%- endfor -%}
{%- if sides.valid_from is not none -%} {%- do same_start.append('t.' ~ healing_tables._id(sides.valid_from) ~ ' <=> d.start') -%} {%- endif -%}
{%- for column in sides.columns -%}
    {%- set name = healing_tables._id(column) -%}
    {%- do names.append(name) -%}
    {%- do values.append('d.candidate_row.' ~ name) -%}
    {%- do assignments.append('t.' ~ name ~ ' = d.candidate_row.' ~ name) -%}
{%- endfor -%}
{%- set same_row = '' if is_kept else ' and struct(t.' ~ (names | join(', t.')) ~ ') <=> d.stored_row' -%}
merge into {{ target }} as t
using (
{{ healing_tables._difference(sides) }}
select * from difference
{%- if change.buckets %}
where {{ healing_tables._bucket(sides.key_names.split(', ')) }} in ({{ change.buckets }})
{%- endif %}
) as d
on {% if change.buckets %}{{ healing_tables._bucket(target_keys) }} in ({{ change.buckets }})
and {% endif -%}
{{ same_start | join(' and ') }}{{ ' and d.stored_row is not null' if not is_kept }}
when matched and d.candidate_row is null{{ same_row }} then delete
when matched{{ same_row }} then update set {{ assignments | join(', ') }}
{%- if not is_kept %}
{#- without a clause for all, Delta would read all columns to find the files to change #}
when matched then update set {{ target_keys[0] }} = {{ target_keys[0] }}
{%- endif %}
when not matched and d.candidate_row is not null then insert ({{ names | join(', ') }}) values ({{ values | join(', ') }})
{%- endmacro %}

{#-
    How to read both tables so that they can be compared: the keys, the start, whether a row is current, and `compared`, all columns that both have in one type. `rows` is
    a select of the candidate, `was` and `will` are their columns.
-#}
{% macro _sides(about, existing, rows, was, will) -%}
    {%- set shared = [] -%}
    {%- for name, type in will.items() if was.get(name) == type and not healing_tables._has_no_equality(type) -%}
        {%- do shared.append(name) -%}
    {%- endfor -%}
    {%- set read = {} -%}
    {%- for side in ['stored', 'candidate'] -%}
        {%- set parts = [] -%}
        {%- for key in about.key_columns -%} {%- do parts.append(healing_tables._side_by_side(key, was, will)[side] ~ ' as key_' ~ loop.index) -%} {%- endfor -%}
        {%- do parts.append(
            ('cast(null as bigint)' if about.valid_from is none else healing_tables._side_by_side(about.valid_from, was, will)[side]) ~ ' as start') -%}
        {%- set known = dict(about, is_current=about.is_current if about.is_current in shared else none) -%}
        {%- do parts.append(
            (healing_tables._current_condition(known) if known.is_current is not none or about.valid_to in shared else 'true') ~ ' as is_current') -%}
        {%- set compared = [] -%}
        {%- for name in shared -%} {%- do compared.append(healing_tables._id(name)) -%} {%- endfor -%}
        {%- do parts.append('struct(' ~ (compared | join(', ') or 'true as nothing') ~ ') as compared') -%}
        {%- do read.update({side: parts | join(', ')}) -%}
    {%- endfor -%}
    {%- set keys = [] -%}
    {%- for key in about.key_columns -%} {%- do keys.append('key_' ~ loop.index) -%} {%- endfor -%}
    {#- equal keys have one hash: not so for floats and collated text #}
    {%- set simple = [] -%}
    {%- for key in about.key_columns
        if modules.re.match('^(tinyint|smallint|int|bigint|string|date|timestamp|timestamp_ntz|boolean|decimal.*)$', was.get(key, '')) and key in shared -%}
        {%- do simple.append(key) -%}
    {%- endfor -%}
    {%- set touched = about.build.touched if about.build is defined else none -%}
    {%- set stored_keys = [] -%}
    {%- for key in about.key_columns -%} {%- do stored_keys.append(healing_tables._id(key)) -%} {%- endfor -%}
    {{- return(dict(
        read, key_names=keys | join(', '), key_columns=about.key_columns, valid_from=about.valid_from, columns=shared, touched=touched, kept=none,
        has_buckets=simple | length == about.key_columns | length, is_versioned=about.get('versioned') | select | list | length > 0,
        stored_rows=existing | string if touched is none
            else '(select * from ' ~ existing ~ ' where ' ~ healing_tables._is_touched(stored_keys, touched) ~ ')',
        candidate_rows='(\n' ~ rows ~ '\n)')) -}}
{%- endmacro %}

{#- A column on both sides, so that it compares by value if it has two types: {stored, candidate, type ('micros': moments)}. -#}
{% macro _side_by_side(column, was, will) -%}
    {%- set name = healing_tables._id(column) -%}
    {%- set types = {'stored': was[healing_tables._find(column, was)], 'candidate': will[healing_tables._find(column, will)]} -%}
    {%- set is_moment = types.values() | reject('in', ['date', 'timestamp', 'timestamp_ntz']) | list | length == 0 -%}
    {%- set common = healing_tables._common_type(types.values() | list) -%}
    {%- set sides = {'type': types.stored if types.stored == types.candidate else 'micros' if is_moment else 'string' if common == 'mixed' else common} -%}
    {%- for side, type in types.items() -%}
        {%- do sides.update({side: name if type == sides.type
            else healing_tables._micros(name, type) if is_moment
            else 'cast(' ~ name ~ ' as string)' if common == 'mixed'
            else healing_tables._cast(name, type, common)}) -%}
    {%- endfor -%}
    {{- return(sides) -}}
{%- endmacro %}
