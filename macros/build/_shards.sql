{#-
    A sharded rebuild: one statement per shard, where a shard is the set of keys with the same hash. No statement
    shuffles and sorts more than its share of the rows. The results are collected in a table of parts beside the target.
    When it is complete, it replaces the result of a single statement: the changes, or the rows of the candidate.

    The last row of a part is written in the same commit as the others, so a part is either complete or missing. It
    reads as a row that does not differ.

    part | is_end | key_1 | start      | differs | ...       part | is_end | row
    0    | false  | 7     | 2024-02-01 | true    |           0    | false  | {7, Bea, 2024-02-01, ..}
    0    | true   | NULL  | NULL       | false   |           0    | true   | NULL
-#}

{#- The rows that differ [see _difference.sql], shard by shard: the table of changes. -#}
{% macro _compute_changes_by_shard(run, candidate, inputs) -%}
    {%- set keys, nulls = [], [] -%}
    {%- for key in inputs.key_columns -%}
        {%- do keys.append(healing_tables._comparable_column(key, run.stored.columns, candidate.columns).stored) -%}
        {%- do nulls.append('null') -%}
    {%- endfor -%}
    {%- set stored_rows = '(select * from ' ~ run.existing ~ ' where '
        ~ healing_tables._is_in_shard(keys, run.settings.shards) ~ ')' -%}
    {%- set changes = healing_tables._changes(run, healing_tables._cut_to_shard(run, candidate, run.stored.columns),
        dict(inputs, stored_rows=stored_rows)) -%}
    {%- set base = local_md5(run.version_before ~ ' ' ~ healing_tables._table_id(run.existing, run.stored)) -%}
    {{- return(healing_tables._compute_parts(run, candidate, 'changes', changes,
        (nulls | join(', ')) ~ ', null, false, null, null, false, false, false, null', base)) -}}
{%- endmacro %}

{#- The candidate, computed shard by shard: its query then reads rows that have passed the checks. -#}
{% macro _candidate_by_shard(run, candidate) -%}
    {%- set in_parts = healing_tables._without_conditions_of_all(candidate) -%}
    {%- set rows = 'select ' ~ healing_tables._row_struct(candidate.columns) ~ ' as row from (\n'
        ~ healing_tables._as_subquery(healing_tables._checked_select(run, healing_tables._cut_to_shard(run, in_parts)))
        ~ ')' -%}
    {%- set parts = healing_tables._compute_parts(run, dict(in_parts, changes=none), 'rows', rows, 'null', 'none') -%}
    {%- set columns = [] -%}
    {%- for column in healing_tables._quoted_list(candidate.columns) -%}
        {%- do columns.append('row.' ~ column ~ ' as ' ~ column) -%}
    {%- endfor -%}
    {#- rows that were compared have already passed the checks; otherwise they pass when all parts have passed -#}
    {{- return(dict(healing_tables._passed_checks(run, candidate),
        query='select ' ~ (columns | join(', ')) ~ ' from ' ~ parts ~ ' where not is_end', hashes={}, checks={},
        conditions=candidate.conditions | selectattr('of_all', 'defined') | list)) -}}
{%- endmacro %}

{#- Run a select for each shard; returns the table of parts. `kind`: changes or rows; `end`: the columns of the last row
    of a part; `base`: a string that identifies what the select reads besides the sources. -#}
{% macro _compute_parts(run, candidate, kind, select, end, base) -%}
    {%- set shards, shard = run.settings.shards, healing_tables._slot('shard', ' 0 ') -%}
    {%- set part = 'select ' ~ shard ~ ' as part, false as is_end, * from (\n' ~ select ~ '\n)\nunion all select '
        ~ shard ~ ', true, ' ~ end -%}
    {#- twice here, once for each source, and once for the stored rows -#}
    {%- set times = 2 + run.settings.metadata.scans | length + (1 if kind == 'changes' else 0) -%}
    {%- set table = healing_tables._side_table(run, '_' ~ kind ~ '_parts') -%}
    {%- set begun = healing_tables._begin_parts(run, candidate, table, kind, {
        'definition': local_md5(part ~ run.definition), 'stored table': base}) -%}
    {%- set can_fail = kind == 'rows' and healing_tables._violations_of_row(run.settings, candidate) is not none -%}
    {%- set is_script = can_fail and healing_tables._has_scripts() -%}
    {%- do healing_tables._refuse_violations(run, candidate) if can_fail and not is_script -%}
    {%- for number in range(shards) if number not in begun.parts -%}
        {%- set started = healing_tables._utc_now() -%}
        {%- set statement_text = (begun.create if loop.first and not begun.parts else 'insert into ' ~ table) ~ '\n'
            ~ healing_tables._of_shard(part, number, times) -%}
        {%- if is_script -%} {%- do healing_tables._run_checked(run, candidate, 'part', statement_text) -%}
        {%- else -%} {%- do healing_tables._run(statement_text) -%}
        {%- endif -%}
        {%- do healing_tables._log_progress(run.target, 'part ' ~ (number + 1) ~ ' of ' ~ shards ~ ' ('
            ~ healing_tables._display_seconds(healing_tables._utc_now() - started) ~ ')') -%}
    {%- endfor -%}
    {%- do healing_tables._check_parts(table, shards) -%}
    {%- do healing_tables._log_progress(
        run.target, 'a source has changed since the first part was begun: later parts may have newer rows')
        if healing_tables._state_of_sources(run).state != begun.sources -%}
    {{- return(table) -}}
{%- endmacro %}
