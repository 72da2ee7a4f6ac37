{#- The change log of a merged dimension, when merges are undone: their batches leave it, and are kept beside it. -#}

{#- What the audit does not have, or an undo would not bring back. -#}
{% macro _check_can_undo_merges(mistakes, target) -%}
    {%- set attributes = healing_tables._option('attributes', none) -%}
    {%- do healing_tables._mistake(mistakes, 'attributes', 'none of type 4, whose old values no audit has',
        'a dimension with a history table', 'read the rows of then from that table')
        if 4 in healing_tables._scd_types({'attributes': attributes}) -%}
    {%- set outbox = healing_tables._beside(target, '__pending') -%}
    {%- do healing_tables._mistake(mistakes, outbox | string, 'no rows of a merge that was stopped',
        'at least one', 'run the merge once more: it completes that one')
        if healing_tables._table_exists(outbox) and healing_tables._has_rows(outbox) -%}
{%- endmacro %}

{#-
    What an undo moves between a change log and <dimension>__withdrawn, so that the log is as it was at a moment; none
    if there is nothing to move.

    log, table   the two relations
    gone, back   of the rows that leave the log, and of those that an undo after that moment has taken from it:
                 {merges (their ids), rows (their number), condition}; or none. If the log began after the moment, with
                 the versions that were stored by then, all of it goes, and the next merge begins it again.
-#}
{% macro _moved_batches(run, known, known_at) -%}
    {%- set log = healing_tables._change_log_relation(run.target, {
        'change_log': healing_tables._option('change_log', none)}) -%}
    {%- set table = healing_tables._beside(run.target, '__withdrawn') -%}
    {%- if healing_tables._option('change_log', none) is sameas false or not healing_tables._table_exists(log) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set found = run_query(healing_tables._merges_of_log(log, known, known_at, 'false')).rows -%}
    {%- set begins_later = found | selectattr('has_seeds') | list | length > 0 -%}
    {%- set gone = found if begins_later else found | selectattr('is_later') | list -%}
    {%- set back = run_query(healing_tables._merges_of_log(table, known, known_at, healing_tables._compare_instant(
        'withdrawn_at', 'timestamp', '<=', known_at))).rows | rejectattr('is_later') | list
        if healing_tables._table_exists(table) else [] -%}
    {%- if not gone and not back -%} {{ return(none) }} {%- endif -%}
    {{- return({'log': log, 'table': table,
        'gone': healing_tables._batches(gone, 'true' if begins_later else 'not is_seed and {}'),
        'back': healing_tables._batches(back, '{}')}) -}}
{%- endmacro %}

{#- For each merge in a log: {merge_id, number (of rows), has_seeds (first rows, of after the moment), is_later (it has
    published after the moment, or `never` holds for its rows)}. -#}
{% macro _merges_of_log(log, known, known_at, never) -%}
{%- set later = healing_tables._compare_instant('logged_at', 'timestamp', '>', known_at) -%}
select
    merge_id,
    count(*) as number,
    max(is_seed and {{ later }}) as has_seeds,
    max({{ later }} or {{ never }} or coalesce({{ healing_tables._compare_instant(
        'first_at', 'timestamp', '>', known_at) }}, false)) as is_later
from {{ log }}
left join (
    select batch_id, min(published_at) as first_at
    from {{ known.audit }}
    where published_at is not null
    group by batch_id
) on batch_id = replace(merge_id, 'sql-', '') and not is_seed
group by merge_id
order by merge_id
{%- endmacro %}

{#- `condition`: on their rows; {}: a row is of these merges. -#}
{% macro _batches(found, condition) -%}
    {%- if not found -%} {{ return(none) }} {%- endif -%}
    {%- set merges, listed = found | map(attribute='merge_id') | list, [] -%}
    {%- for id in merges -%} {%- do listed.append(healing_tables._string_literal(id)) -%} {%- endfor -%}
    {{- return({'merges': merges, 'rows': found | map(attribute='number') | sum | int,
        'condition': condition | replace('{}', 'merge_id in (' ~ (listed | join(', ')) ~ ')')}) -}}
{%- endmacro %}

{#- Move them. Killed in between, rows are in both tables, and the next undo removes them from the one. -#}
{% macro _move_batches(undone, reason) -%}
    {%- set moved, run, mistakes = undone.moved, undone.run, [] -%}
    {%- set columns = healing_tables._columns_of(moved.log) -%}
    {%- do healing_tables._ensure_table_beside(run.format, mistakes, moved.table, 'table of withdrawn batches',
        dict(columns, withdrawn_at='timestamp', withdrawn_by='string'), ['merge_id', 'withdrawn_at'], {}) -%}
    {%- do healing_tables._raise_mistakes('undo', mistakes) -%}
    {%- set names = healing_tables._quoted_list(columns) | join(', ') -%}
    {%- do healing_tables._move_rows(moved.gone, moved.log, moved.table, names,
        {'withdrawn_at': 'now()', 'withdrawn_by': healing_tables._string_literal(reason)}) if moved.gone is not none -%}
    {%- do healing_tables._move_rows(moved.back, moved.table, moved.log, names, {}) if moved.back is not none -%}
{%- endmacro %}

{#- Rows that are in the other table already are of a run that was killed. `more`: {column: SQL}. -#}
{% macro _move_rows(batches, source, target, names, more) -%}
    {%- do healing_tables._run('insert into ' ~ target ~ ' (' ~ ([names] + more | list) | join(', ') ~ ') select '
        ~ ([names] + more.values() | list) | join(', ') ~ ' from ' ~ source ~ ' as moving where ' ~ batches.condition
        ~ ' and not exists (select 1 from ' ~ target
        ~ ' as there where there.merge_id = moving.merge_id and there.is_seed = moving.is_seed)') -%}
    {%- do healing_tables._run('delete from ' ~ source ~ ' where ' ~ batches.condition) -%}
{%- endmacro %}
