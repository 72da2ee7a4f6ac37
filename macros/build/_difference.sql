{#-
    One pass over the sources computes the dimension, checks it and joins the stored rows. Only rows that differ or
    violate a check are written, to a table of changes beside the target.

    The select has already shuffled its rows by key, so the join shuffles only the stored rows.

    key_1 | start      | differs | stored_row | candidate_row | was_current | is_current | is_repeated | violations
    1     | 2024-02-01 | true    | Bea        | Eve           | true        | true       | false       | NULL
    2     | 2024-03-01 | true    | NULL       | Dan           | false       | true       | false       | [no_gaps]
-#}
{% macro _changes(run, candidate, inputs) -%}
{%- set candidate = healing_tables._without_conditions_of_all(candidate) -%}
{%- set keys = inputs.key_names -%}
{#- rows of dimension() are unique by key and start, which are NULL only with null_keys; rows of another select may not
    be -#}
{%- set same = '=' if candidate.is_pure_call and not run.settings.metadata.get('has_null_keys') else '<=>' -%}
{%- set pairs = [] -%}
{%- for key in inputs.key_columns -%}
    {%- do pairs.append('made.key_' ~ loop.index ~ ' ' ~ same ~ ' stored.key_' ~ loop.index) -%}
{%- endfor -%}
{%- set place = healing_tables._order_column() if inputs.is_ordered else 'start' -%}
{%- do pairs.append('made.' ~ place ~ ' ' ~ same ~ ' stored.' ~ place) if inputs.valid_from is not none -%}
{%- do pairs.append('made.nth = stored.nth') if not inputs.is_unique -%}
{%- set violations = healing_tables._violations_of_row(run.settings, candidate) -%}
{%- set differs = 'not (' ~ inputs.compared_row ~ ' <=> stored_row)' -%}
with {{ healing_tables._checked_candidate(run, candidate, inputs.is_ordered) }},
{{ 'made' if inputs.is_unique or candidate.is_pure_call else 'made_rows' }} as (
    select {{ inputs.candidate }}, row
        {%- if inputs.is_ordered %},
        {{ place }}
        {%- endif %}
        {%- if violations is not none %},
        {{ violations }} as violations
        {%- endif %}
        {%- if candidate.is_pure_call and not inputs.is_unique %},
        1 as nth, false as is_repeated
        {%- endif %}
    from checked
),
{%- if not (inputs.is_unique or candidate.is_pure_call) %}
made as (
    {{- healing_tables._number_equal_starts('made_rows', keys, inputs.compared_row) }}
),
{%- endif %}
{{ 'stored' if inputs.is_unique else 'stored_rows' }} as (
    select {{ inputs.stored }}
    from {{ inputs.stored_rows }}
),
{%- if not inputs.is_unique %}
stored as (
    {{- healing_tables._number_equal_starts('stored_rows', keys, 'stored_row') }}
),
{%- endif %}
differing as (
    select
        {%- for key in inputs.key_columns %}
        coalesce(made.key_{{ loop.index }}, stored.key_{{ loop.index }}) as key_{{ loop.index }},
        {%- endfor %}
        coalesce(made.start, stored.start) as start,
        {{ differs }} as differs,
        stored_row,
        row,
        coalesce(stored.is_current, false) as was_current,
        coalesce(made.is_current, false) as is_current,
        {{ 'false' if inputs.is_unique
            else 'coalesce(stored.is_repeated, false) or coalesce(made.is_repeated, false)' }} as is_repeated,
        {{ 'violations' if violations is not none else 'cast(null as array<string>)' }} as violations
        {%- if candidate.hidden %},
        stored_whole,
        row.{{ healing_tables._audit_column() }} as audited
        {%- endif %}
    from made
    full outer join stored on {{ pairs | join(' and ') }}
    where {{ differs }}{{ ' or violations is not null' if violations is not none }}
)
select {{ keys }}, start, differs, stored_row,
    case when row is not null then struct(
        {{- healing_tables._published_columns(candidate) | join(', ') }}) end as candidate_row,
    was_current, is_current, is_repeated, violations{{ ', stored_whole, audited' if candidate.hidden }}
from differing
{%- endmacro %}

{#-
    `inputs`: how both tables are read so that they can be compared.

    stored, candidate   the select lists over the stored table and over `checked` (see _checked_candidate): key_1..,
                        start, is_current; of the stored table also the struct `stored_row`
    stored_rows         SQL for a `from`
    compared_row        SQL over `row` of `checked`: a struct of the same columns of the candidate
    key_columns, valid_from, columns (of the candidate); key_names: 'key_1, key_2'
    changed_keys        the healed keys, as SQL after `in`; none: all keys
    has_buckets         equal keys have equal hashes; false for floats and collated text
    deleted, is_living  with deleted_rows, the column that marks a deleted key, or none; whether a stored row is current
                        and its key not deleted, which counts as ended
    is_versioned        a key can have several rows
    is_unique           no two rows, on either side, have the same key and start
    is_ordered          the rows of the candidate are in the order of _order_column(), by which both sides are joined
-#}
{% macro _diff_inputs(run, candidate) -%}
    {%- set settings, columns, stored_columns = run.settings, candidate.columns, run.stored.columns -%}
    {%- set compared = [] -%}
    {%- for name, type in columns.items() if stored_columns.get(name) == type
        and not healing_tables._has_no_equality(type) and name not in candidate.hashes -%}
        {%- do compared.append(name) -%}
    {%- endfor -%}
    {%- set has_flag = settings.is_current in columns and stored_columns.get(settings.is_current)
        == columns[settings.is_current] -%}
    {%- set is_current = healing_tables._current_condition(dict(settings, is_current=settings.is_current if has_flag
        else none)) if has_flag or settings.valid_to in stored_columns else 'true' -%}
    {%- set select_lists = {'stored': [], 'candidate': []} -%}
    {%- for key in settings.key_columns -%}
        {%- set pair = healing_tables._comparable_column(key, stored_columns, columns, 'key_' ~ loop.index) -%}
        {%- do select_lists.stored.append(pair.stored ~ ' as key_' ~ loop.index) -%}
        {%- do select_lists.candidate.append(pair.candidate ~ ' as key_' ~ loop.index) -%}
    {%- endfor -%}
    {%- set none_at_all = 'cast(null as bigint)' -%}
    {%- set is_unique = candidate.is_pure_call and run.is_as_left -%}
    {%- set is_ordered = is_unique and healing_tables._has_order(settings, candidate)
        and settings.metadata.is_start_in_order and settings.valid_from is not none -%}
    {%- set start = {'stored': none_at_all, 'candidate': none_at_all} if settings.valid_from is none
        else healing_tables._comparable_column(settings.valid_from, stored_columns, columns, 'valid_from') -%}
    {%- set deleted = healing_tables._find_column(settings.metadata.names.get('is_deleted') or '', columns) -%}
    {%- set deleted = healing_tables._quoted(deleted) if deleted in compared else none -%}
    {%- do select_lists.stored.extend([start.stored ~ ' as start', is_current ~ ' as is_current']) -%}
    {%- do select_lists.candidate.extend([start.candidate ~ ' as start', 'is_current']) -%}
    {%- do select_lists.stored.append(healing_tables._row_struct(compared) ~ ' as stored_row') -%}
    {%- do select_lists.stored.append(healing_tables._to_micros(healing_tables._quoted(settings.valid_from),
        stored_columns[settings.valid_from]) ~ ' as ' ~ healing_tables._order_column()) if is_ordered -%}
    {%- if candidate.hidden -%}
        {%- set whole = [] -%}
        {%- for name, type in columns.items() -%}
            {%- do whole.append((healing_tables._quoted(name) if name in stored_columns
                else 'cast(null as ' ~ type ~ ')') ~ ' as ' ~ healing_tables._quoted(name)) -%}
        {%- endfor -%}
        {%- do select_lists.stored.append('struct(' ~ (whole | join(', ')) ~ ') as stored_whole') -%}
    {%- endif -%}
    {#- if all columns are compared, compare the row itself: building a second struct would cost time -#}
    {%- set compared_row = 'row' if compared == healing_tables._row_columns(candidate)
        else 'case when row is not null then ' ~ healing_tables._row_struct(compared, 'row.') ~ ' end' -%}
    {%- set stored_keys = healing_tables._quoted_list(settings.key_columns) -%}
    {{- return({
        'stored': select_lists.stored | join(', '), 'candidate': select_lists.candidate | join(', '),
        'key_names': healing_tables._key_names(settings.key_columns), 'key_columns': settings.key_columns,
        'valid_from': settings.valid_from, 'columns': columns | list,
        'compared_row': compared_row,
        'changed_keys': run.changed_keys,
        'has_buckets': healing_tables._has_hashable_keys(settings, stored_columns, columns),
        'deleted': deleted, 'is_living': is_current ~ (' and not ' ~ deleted if deleted is not none else ''),
        'is_versioned': settings.tracked | select | list | length > 0,
        'is_unique': is_unique, 'is_ordered': is_ordered,
        'stored_rows': healing_tables._stored_rows(run) if run.changed_keys is none
            else '(select * from ' ~ healing_tables._stored_rows(run) ~ ' where '
                ~ healing_tables._is_changed_key(stored_keys, run.changed_keys,
                    settings.metadata.get('has_null_keys')) ~ ')'}) -}}
{%- endmacro %}

{#- The stored rows as SQL for a `from`, in the types that their columns get. -#}
{% macro _stored_rows(run) -%}
    {%- if not run.wider -%} {{ return(run.existing | string) }} {%- endif -%}
    {%- set columns = [] -%}
    {%- for name, type in run.stored.columns.items() -%}
        {%- set column = healing_tables._quoted(name) -%}
        {%- do columns.append('cast(' ~ column ~ ' as ' ~ type ~ ') as ' ~ column if name in run.wider else column) -%}
    {%- endfor -%}
    {{- return('(select ' ~ (columns | join(', ')) ~ ' from ' ~ run.existing ~ ')') -}}
{%- endmacro %}

{#- Whether equal keys have equal hashes in both tables. -#}
{% macro _has_hashable_keys(settings, stored_columns, columns) -%}
    {%- set hashable = ['integer', 'decimal', 'date', 'timestamp', 'timestamp_ntz', 'boolean'] -%}
    {%- set others = [] -%}
    {%- for key in settings.key_columns -%}
        {%- set type = stored_columns.get(key) -%}
        {%- do others.append(key) if type != columns.get(key)
            or not (type == 'string' or healing_tables._type_family(type) in hashable) -%}
    {%- endfor -%}
    {{- return(not others) -}}
{%- endmacro %}
