{#-
    A `change`: what a build is about to publish.

    how         'unchanged' (nothing), 'merge' (the rows that differ) or 'overwrite' (the whole table)
    candidate   as it is now; none if no key was computed
    summary     the figures as text
    figures     the figures as columns of the log
    row_count   the rows of the table afterwards, if known
    inputs      see _diff_inputs; buckets: see _key_bucket; staged: the changes as SQL for a `from`, a table if they are
                to be merged. Only if rows were compared.
-#}

{#- The change of a heal without changed keys: the stored table still has the rows of the last build. -#}
{% macro _no_change(run) -%}
    {{- return({'how': 'unchanged', 'candidate': none, 'summary': 'no key has changed',
        'row_count': run.last.row_count, 'figures': {
            'rows_added': 0, 'rows_changed': 0, 'rows_removed': 0,
            'rows_unchanged': healing_tables._stored_rows_count(run)}}) -}}
{%- endmacro %}

{#-
    The change to publish. If the candidate can be compared with the stored table, one pass finds the rows that differ.
    `obstacle`: why they cannot be merged, or none.
-#}
{% macro _compute_change(run, candidate, obstacle, sequence) -%}
    {%- set needs_table = run.location is not none or sequence is not none -%}
    {%- do healing_tables._report_erased(run) -%}
    {%- set counts = healing_tables._set_aside_counts(run, not candidate.is_comparable)
        if run.mode not in ['heal', 'merge'] else none -%}
    {%- set rows = run_query(counts.query).rows if not candidate.is_comparable and counts is not none
        and counts.query is not none else [] -%}
    {%- if not candidate.is_comparable -%}
        {%- set candidate = healing_tables._report_set_aside(run, candidate, counts, rows,
            healing_tables._odd_deletions(run)) if counts is not none else candidate -%}
    {%- endif -%}
    {%- if obstacle is not none and needs_table -%}
        {%- set candidate = healing_tables._written_candidate(run, candidate) -%}
    {%- endif -%}
    {%- if not candidate.is_comparable -%}
        {{- return(healing_tables._all_rows_as_new(run, candidate,
            run.mode == 'merge' or rows | selectattr('has_rows') | list | length > 0)) -}}
    {%- endif -%}
    {%- set change = healing_tables._compute_difference(run, candidate, obstacle, counts) -%}
    {%- do healing_tables._refuse_part_as_whole(run, change) -%}
    {%- if change.how == 'overwrite' and needs_table and change.candidate.table is none -%}
        {%- set change = dict(change, candidate=healing_tables._written_candidate(run, change.candidate)) -%}
    {%- endif -%}
    {{- return(change) -}}
{%- endmacro %}

{#- The change if there is nothing to compare with. Its rows are counted when they are written. A dimension has rows if
    a source has any; the query itself runs only if that is not known. -#}
{% macro _all_rows_as_new(run, candidate, has_rows) -%}
    {%- set has_rows = has_rows
        or healing_tables._has_rows('(\n' ~ healing_tables._as_subquery(candidate.query) ~ ')') -%}
    {%- do healing_tables._check_guards(run, {
        'candidate_versions': 1 if has_rows else 0, 'is_first': true,
        'current_keys': 0, 'ended_keys': 0, 'closed_versions': 0, 'lost_versions': 0}, candidate) -%}
    {{- return({'how': 'overwrite', 'candidate': candidate, 'summary': '', 'row_count': none, 'figures': {
        'rows_changed': 0, 'rows_removed': 0, 'rows_unchanged': 0}}) -}}
{%- endmacro %}

{#- Find the rows that differ, in one pass [see _difference.sql]. They are stored in a table if they are to be merged;
    otherwise only figures are computed. `counts`: see _set_aside_counts(); none in a heal. -#}
{% macro _compute_difference(run, candidate, obstacle, counts) -%}
    {#- both sides are partitioned by key: the join by key and start needs no other shuffle -#}
    {%- do healing_tables._set_session_conf('spark.sql.requireAllClusterKeysForCoPartition', 'false',
        run.settings.session) -%}
    {%- set started = healing_tables._utc_now() -%}
    {%- set inputs = healing_tables._diff_inputs(run, candidate) -%}
    {%- set changes = healing_tables._changes(run, candidate, inputs) -%}
    {%- if healing_tables._is_sharded(run) -%}
        {%- set candidate = dict(candidate, changes=healing_tables._compute_changes_by_shard(run, candidate, inputs))
            -%}
    {%- elif obstacle is none -%}
        {%- set candidate = dict(candidate, changes=healing_tables._create_side_table(run, '_changes', changes)) -%}
    {%- endif -%}
    {%- set count_query = counts.query if counts is not none else none -%}
    {%- set figures = healing_tables._read_figures(healing_tables._change_figures(
        '(\n' ~ changes ~ '\n)' if candidate.changes is none else candidate.changes | string, inputs,
        healing_tables._stored_rows_count(run), count_query)) -%}
    {%- do figures.update({'candidate_versions': figures.stored_versions + figures.inserted - figures.deleted}) -%}
    {%- do healing_tables._log_progress(
        run.target, 'computed ' ~ (healing_tables._counted(figures.candidate_versions, 'version')
            if run.changed_keys is none else 'the keys of the batch' if run.mode == 'merge'
            else healing_tables._counted(run.changed_key_count, 'key'))
        ~ ', compared with ' ~ healing_tables._counted(figures.stored_versions, 'stored row') ~ ': '
        ~ healing_tables._counted(figures.differing_keys, 'key')
        ~ (' differs (' if figures.differing_keys == 1 else ' differ (')
        ~ healing_tables._display_seconds(healing_tables._utc_now() - started) ~ ')') -%}
    {#- before the checks, so that a refused build reports these rows, too -#}
    {%- if counts is not none -%}
        {%- set candidate = healing_tables._report_set_aside(run, candidate, counts,
            fromjson(figures.set_aside) if count_query is not none else []) -%}
    {%- endif -%}
    {%- do healing_tables._refuse_violations(run, candidate) if figures.violated > 0 -%}
    {%- set candidate = healing_tables._passed_checks(run, candidate) -%}
    {%- set change = dict(healing_tables._change_of_figures(run, candidate, inputs, figures, obstacle),
        staged='(\n' ~ changes ~ '\n)' if candidate.changes is none else candidate.changes) -%}
    {%- do healing_tables._refuse_equal_keys(run, candidate, inputs) if change.how == 'merge' -%}
    {{- return(change) -}}
{%- endmacro %}

{#- Choose the change from the figures of a comparison. A build that would remove too much is refused. -#}
{% macro _change_of_figures(run, candidate, inputs, figures, obstacle) -%}
    {%- do figures.update({'current_keys': 0, 'closed_versions': 0}) -%}
    {%- if figures.ended_keys > 0 or figures.lost_versions > 0 -%}
        {%- do figures.update(healing_tables._read_figures(healing_tables._stored_figures(inputs, run.existing))) -%}
    {%- endif -%}
    {%- do healing_tables._check_guards(run, figures, candidate) -%}
    {%- set unchanged = figures.stored_versions - figures.updated - figures.deleted -%}
    {%- set differing = figures.inserted + figures.updated + figures.deleted -%}
    {%- set publish = run.settings.publish -%}
    {%- set is_unchanged = differing == 0 and figures.repeated == 0
        and healing_tables._overwrite_reason(run, candidate) is none -%}
    {%- set obstacle = 'several rows of a key have the same start' if figures.repeated > 0
        else obstacle or healing_tables._bucket_obstacle(run, candidate) -%}
    {%- set is_small = 2 * differing <= figures.stored_versions -%}
    {%- set can_merge = obstacle is none and (run.mode == 'heal' or publish == 'merge'
        or (publish == 'auto' and is_small)) -%}
    {%- do healing_tables._log_progress(run.target, 'no merge: ' ~ obstacle)
        if obstacle is not none and publish == 'merge' and not is_unchanged -%}
    {{- return({
        'how': 'unchanged' if is_unchanged else 'merge' if can_merge else 'overwrite', 'candidate': candidate,
        'inputs': inputs, 'buckets': figures.get('buckets'),
        'row_count': figures.candidate_versions,
        'summary': healing_tables._counted(figures.inserted, 'row') ~ ' inserted, ' ~ figures.updated ~ ' updated, '
        ~ figures.deleted
        ~ ' deleted, ' ~ unchanged ~ ' as they were',
        'figures': {
            'rows_added': figures.inserted, 'rows_changed': figures.updated, 'rows_removed': figures.deleted,
            'rows_unchanged': unchanged, 'keys_affected': figures.differing_keys}}) -}}
{%- endmacro %}

{#- The number of stored rows, as SQL: the count of the last build if it still holds. -#}
{% macro _stored_rows_count(run) -%}
    {%- set last = run.last -%}
    {%- set is_known = last is not none and last.row_count is not none and (run.is_as_left or last.is_tagged) -%}
    {{- return(last.row_count | int if is_known else '(select count(*) from ' ~ run.existing ~ ')') -}}
{%- endmacro %}

{#- The rows of some keys never replace the whole table. -#}
{% macro _refuse_part_as_whole(run, change) -%}
    {%- if run.changed_keys is none or change.how != 'overwrite' -%} {{ return(none) }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._mistake(mistakes, 'the stored dimension',
        'one version per key and start, in the columns of this run, in a table that can be partly rewritten',
        healing_tables._merge_obstacle(run, change.candidate) or 'several rows of a key with one start',
        'repair it first (dbt run-operation healing_tables.repair)') -%}
    {%- do healing_tables._refuse(run, mistakes, change.candidate) -%}
{%- endmacro %}
