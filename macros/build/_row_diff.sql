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

    `inputs`: see _diff_inputs.
-#}
{% macro _row_diff(inputs) -%}
{%- if inputs.staged is not none -%}
with difference as (
    select * from {{ inputs.staged }}
)
{%- else -%}
{{ healing_tables._unequal_rows(inputs) }},
difference as (
    select {{ inputs.key_names }}, start,
        max(if(before > after, compared, null)) as stored_row,
        max(if(after > before, compared, null)) as candidate_row,
        coalesce(bool_or(is_current) filter (where before > after), false) as was_current,
        coalesce(bool_or(is_current) filter (where after > before), false) as is_current,
        {#- only where the check no_overlaps is off, or someone else has written #}
        sum(before) > 1 or sum(after) > 1 as is_repeated
    from unequal
    group by {{ inputs.key_names }}, start
    {%- if inputs.changed_keys is not none %}
    having bool_or(before <> after)
    {%- endif %}
)
{%- endif -%}
{%- endmacro %}

{#- The rows of which one side has more than the other, each with how many both have. A heal has few: it keeps those
    that are equal, which tell whether a start has several rows. -#}
{% macro _unequal_rows(inputs) -%}
with sides as (
    select {{ inputs.stored }}, true as is_stored
    from {{ inputs.stored_rows }}
    union all
    select {{ inputs.candidate }}, false as is_stored
    from {{ inputs.candidate_rows }}
),
unequal as (
    select {{ inputs.key_names }}, start, is_current, compared, count_if(is_stored) as before,
    count_if(not is_stored) as after
    from sides
    group by {{ inputs.key_names }}, start, is_current, compared
    {%- if inputs.changed_keys is none %}
    having count_if(is_stored) <> count_if(not is_stored)
    {%- endif %}
)
{%- endmacro %}

{#- The difference in figures: one row. `stored_versions` are those of all keys, also where a few are healed. -#}
{% macro _diff_figures(inputs, existing) -%}
{{ healing_tables._row_diff(inputs) }},
differing_keys as (
    select {{ inputs.key_names }},
        count_if(stored_row is null) as inserted,
        count_if(stored_row is not null and candidate_row is not null) as updated,
        count_if(candidate_row is null) as deleted,
        bool_or(was_current) and not bool_or(is_current) as ends,
        {#- also one that would be current again: its end is history, but where a key has one row that shows no gaps #}
        count_if(stored_row is not null and not was_current and (candidate_row is null{{ ' or is_current'
            if inputs.is_versioned }})) as lost_versions,
        bool_or(is_repeated) as is_repeated
    from difference
    group by {{ inputs.key_names }}
),
changes as (
    select
        coalesce(sum(inserted), 0) as inserted,
        coalesce(sum(updated), 0) as updated,
        coalesce(sum(deleted), 0) as deleted,
        count_if(ends) as ended_keys,
        coalesce(sum(lost_versions), 0) as lost_versions,
        count_if(is_repeated) as repeated,
        {%- if inputs.has_buckets %}
        if(count(*) <= 2000, array_join(collect_set({{ healing_tables._key_bucket(inputs.key_names.split(', ')) }}),
            ', '), '') as buckets,
        {%- endif %}
        count(*) as differing_keys
    from differing_keys
)
select *, (select count(*) from {{ existing }}) as stored_versions,
(select count(*) from {{ inputs.candidate_rows }}) as candidate_versions
from changes
{%- endmacro %}

{#- What is stored, over all keys: only a build that takes something away has to ask. -#}
{% macro _stored_figures(inputs, existing) -%}
select count(distinct if(is_current, struct({{ inputs.key_names }}), null)) as current_keys,
count_if(not is_current) as closed_versions
from (select {{ inputs.stored }} from {{ existing }})
{%- endmacro %}

{#- Keys by number, the same for equal keys: a short list of these stands for a few keys of any type. -#}
{% macro _key_bucket(keys) -%} pmod(xxhash64({{ keys | join(', ') }}), 65536) {%- endmacro %}

{#-
    The difference as one MERGE. In a rebuild, a row that is not as it was compared stays: another of its start, or
    another writer was there. A heal knows that no start has several rows, and asks for key and start only: so Delta
    does not read all columns of the target again, and a row that another writer has made meanwhile becomes what this
    build says. Either way the build that another writer has overtaken begins again (_retry.sql).
    Delta would compute the difference of a rebuild twice, once to find the files and once to write them: kept for the
    statement, it is computed once. That of a heal is a table already.
    Where few keys differ, rows of other buckets are left out on both sides: else all of the target would be shuffled.
-#}
{% macro _merge_row_diff(format, target, change) -%}
{%- set inputs = change.inputs -%}
{%- set is_kept = inputs.staged is not none -%}
{%- do format.before_merge(is_kept) -%}
{%- set names = [] -%}
{%- set values = [] -%}
{%- set assignments = [] -%}
{%- set target_keys = [] -%}
{%- for key in inputs.key_columns -%} {%- do target_keys.append('t.' ~ healing_tables._id(key)) -%} {%- endfor -%}
{%- set same_start = [] -%}
{%- for key in target_keys -%} {%- do same_start.append(key ~ ' <=> d.key_' ~ loop.index) -%} {%- endfor -%}
{%- if inputs.valid_from is not none -%}
    {%- do same_start.append('t.' ~ healing_tables._id(inputs.valid_from) ~ ' <=> d.start') -%}
{%- endif -%}
{%- for column in inputs.columns -%}
    {%- set name = healing_tables._id(column) -%}
    {%- do names.append(name) -%}
    {%- do values.append('d.candidate_row.' ~ name) -%}
    {%- do assignments.append('t.' ~ name ~ ' = d.candidate_row.' ~ name) -%}
{%- endfor -%}
{%- set same_row = '' if is_kept else ' and struct(t.' ~ (names | join(', t.')) ~ ') <=> d.stored_row' -%}
merge into {{ target }} as t
using (
{{ healing_tables._row_diff(inputs) }}
select * from difference
{%- if change.buckets %}
where {{ healing_tables._key_bucket(inputs.key_names.split(', ')) }} in ({{ change.buckets }})
{%- endif %}
) as d
on {% if change.buckets %}{{ healing_tables._key_bucket(target_keys) }} in ({{ change.buckets }})
and {% endif -%}
{{ same_start | join(' and ') }}{{ ' and d.stored_row is not null' if not is_kept }}
when matched and d.candidate_row is null{{ same_row }} then delete
when matched{{ same_row }} then update set {{ assignments | join(', ') }}
{%- if not is_kept %}
{#- without a clause for all, Delta would read all columns to find the files to change #}
when matched then update set {{ target_keys[0] }} = {{ target_keys[0] }}
{%- endif %}
when not matched and d.candidate_row is not null then insert ({{ names | join(', ') }}) values ({{ values
    | join(', ') }})
{%- endmacro %}

{#-
    `inputs`: how both tables are read so that they can be compared.

    stored_rows, candidate_rows   SQL for a `from`
    stored, candidate             the select lists over them: key_1.., start, is_current, and `compared`, the columns
                                  that both
                                  have in one type
    key_columns, valid_from, columns (those in `compared`); key_names: 'key_1, key_2'
    changed_keys                  the table of the keys that are healed, or none: all
    staged                        the table that holds the difference already, or none
    has_buckets                   equal keys have equal hashes: not so for floats and collated text
    is_versioned                  a key can have several rows
-#}
{% macro _diff_inputs(settings, existing, rows, stored_columns, columns, changed_keys=none) -%}
    {%- set shared = [] -%}
    {%- set compared = [] -%}
    {%- for name, type in columns.items() if stored_columns.get(name) == type
        and not healing_tables._has_no_equality(type) -%}
        {%- do shared.append(name) -%}
        {%- do compared.append(healing_tables._id(name)) -%}
    {%- endfor -%}
    {%- set check_request = dict(settings, is_current=settings.is_current if settings.is_current in shared
        else none) -%}
    {%- set is_current = healing_tables._current_condition(check_request)
        if check_request.is_current is not none or settings.valid_to in shared else 'true' -%}
    {%- set select_lists = {} -%}
    {%- for side in ['stored', 'candidate'] -%}
        {%- set parts = [] -%}
        {%- for key in settings.key_columns -%}
            {%- do parts.append(healing_tables._comparable_column(key, stored_columns, columns)[side] ~ ' as key_'
                ~ loop.index) -%}
        {%- endfor -%}
        {%- set start = 'cast(null as bigint)' if settings.valid_from is none
            else healing_tables._comparable_column(settings.valid_from, stored_columns, columns)[side] -%}
        {%- do parts.extend([start ~ ' as start', is_current ~ ' as is_current',
            'struct(' ~ (compared | join(', ') or 'true as nothing') ~ ') as compared']) -%}
        {%- do select_lists.update({side: parts | join(', ')}) -%}
    {%- endfor -%}
    {%- set stored_keys = [] -%}
    {%- set hashable = [] -%}
    {%- for key in settings.key_columns -%}
        {%- do stored_keys.append(healing_tables._id(key)) -%}
        {%- do hashable.append(key) if key in shared
            and healing_tables._type_family(stored_columns[key]) in ['integer', 'decimal', 'date', 'timestamp',
                'timestamp_ntz', 'boolean']
            or stored_columns.get(key) == 'string' and key in shared -%}
    {%- endfor -%}
    {{- return(dict(
        select_lists, key_names=healing_tables._key_names(settings.key_columns), key_columns=settings.key_columns,
        valid_from=settings.valid_from, columns=shared,
        changed_keys=changed_keys, staged=none, has_buckets=hashable | length == settings.key_columns | length,
        is_versioned=settings.tracked | select | list | length > 0,
        stored_rows=existing | string if changed_keys is none
            else '(select * from ' ~ existing ~ ' where ' ~ healing_tables._is_changed_key(stored_keys, changed_keys)
            ~ ')',
        candidate_rows='(\n' ~ rows ~ '\n)')) -}}
{%- endmacro %}

{#- A column of both tables so that it compares by value: {stored, candidate, type ('micros' for two types of
    moments)}. -#}
{% macro _comparable_column(column, stored_columns, columns) -%}
    {%- set name = healing_tables._id(column) -%}
    {%- set types = {
        'stored': stored_columns[healing_tables._find_column(column, stored_columns)],
        'candidate': columns[healing_tables._find_column(column, columns)]} -%}
    {%- set is_moment = types.values() | reject('in', ['date', 'timestamp', 'timestamp_ntz']) | list | length == 0 -%}
    {%- set common = healing_tables._common_type(types.values() | list) -%}
    {%- set found = {
        'type': types.stored if types.stored == types.candidate else 'micros' if is_moment else 'string'
        if common == 'mixed' else common} -%}
    {%- for side, type in types.items() -%}
        {%- do found.update({side: name if type == found.type
            else healing_tables._to_micros(name, type) if is_moment
            else 'cast(' ~ name ~ ' as string)' if common == 'mixed'
            else healing_tables._cast(name, type, common)}) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
