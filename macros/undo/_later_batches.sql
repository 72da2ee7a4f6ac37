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
    The rows of a change log whose merges have published after a moment; none if there are none.

    log, table   the log; where the rows go, <dimension>__withdrawn
    merges       the ids of these merges
    condition    on the rows of the log, as SQL. If the log began after that moment, with the versions that were stored
                 by then, all of it goes, and the next merge begins it again.
    rows         their number
-#}
{% macro _later_batches(run, known, known_at) -%}
    {%- set log = healing_tables._change_log_relation(run.target, {
        'change_log': healing_tables._option('change_log', none)}) -%}
    {%- if healing_tables._option('change_log', none) is sameas false or not healing_tables._table_exists(log) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set later = healing_tables._compare_instant('logged_at', 'timestamp', '>', known_at) -%}
    {%- set published = '(select batch_id, min(published_at) as first_at from ' ~ known.audit
        ~ ' where published_at is not null group by batch_id)' -%}
    {%- set rows = run_query("select merge_id, max(is_seed and " ~ later ~ ") as has_seeds, count(*) as number, "
        ~ 'max(not is_seed and (' ~ later ~ ' or coalesce(' ~ healing_tables._compare_instant(
            'first_at', 'timestamp', '>', known_at) ~ ', false))) as is_later from ' ~ log ~ ' left join '
        ~ published ~ " on batch_id = replace(merge_id, 'sql-', '') group by merge_id order by merge_id").rows -%}
    {%- set begins_later = rows | selectattr('has_seeds') | list | length > 0 -%}
    {%- set gone = rows if begins_later else rows | selectattr('is_later') | list -%}
    {%- if not gone -%} {{ return(none) }} {%- endif -%}
    {%- set merges, listed = gone | map(attribute='merge_id') | list, [] -%}
    {%- for id in merges -%} {%- do listed.append(healing_tables._string_literal(id)) -%} {%- endfor -%}
    {%- set condition = 'true' if begins_later else 'not is_seed and merge_id in (' ~ (listed | join(', ')) ~ ')' -%}
    {{- return({'log': log, 'table': healing_tables._beside(run.target, '__withdrawn'), 'merges': merges,
        'condition': condition, 'rows': gone | sum(attribute='number') | int}) -}}
{%- endmacro %}

{#- Move them. Killed in between, the rows are in both tables, and the next undo removes them from the log. -#}
{% macro _withdraw_batches(undone, reason) -%}
    {%- set withdrawn, run, names, mistakes = undone.withdrawn, undone.run, [], [] -%}
    {%- set columns = healing_tables._columns_of(withdrawn.log) -%}
    {%- do healing_tables._ensure_table_beside(run.format, mistakes, withdrawn.table, 'table of withdrawn batches',
        dict(columns, withdrawn_at='timestamp', withdrawn_by='string'), ['merge_id', 'withdrawn_at'], {}) -%}
    {%- do healing_tables._raise_mistakes('undo', mistakes) -%}
    {%- for name in healing_tables._quoted_list(columns) -%} {%- do names.append(name) -%} {%- endfor -%}
    {%- do healing_tables._run('insert into ' ~ withdrawn.table ~ ' (' ~ (names | join(', '))
        ~ ', withdrawn_at, withdrawn_by) select ' ~ (names | join(', ')) ~ ', now(), '
        ~ healing_tables._string_literal(reason) ~ ' from ' ~ withdrawn.log ~ ' as logged where '
        ~ withdrawn.condition ~ ' and not exists (select 1 from ' ~ withdrawn.table
        ~ ' as kept where kept.merge_id = logged.merge_id and kept.is_seed = logged.is_seed)') -%}
    {%- do healing_tables._run('delete from ' ~ withdrawn.log ~ ' where ' ~ withdrawn.condition) -%}
{%- endmacro %}
