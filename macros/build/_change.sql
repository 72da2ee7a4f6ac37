{#-
    A `change`: what a build is about to publish.

    how         'unchanged' (nothing), 'merge' (the rows that differ) or 'overwrite' (the whole table)
    obstacle    why it cannot be a merge, or none
    summary     the figures as text
    log_row     the figures as columns of the log
    row_count   the rows of the table afterwards, if known
    inputs      see _diff_inputs; buckets: see _key_bucket; staged: the table of changes. Only for a merge.
-#}

{#-
    The change to publish. If the candidate can be compared with the stored table, one pass finds the
    rows that differ. A heal that cannot be merged into the stored table, for example because a column has a new type,
    becomes a rebuild.
-#}
{% macro _compute_change(build, sequence) -%}
    {%- set is_heal = build.log_row.mode == 'heal' -%}
    {%- do healing_tables._prepare_query(build, sequence) -%}
    {%- set is_comparable = healing_tables._is_comparable(build) -%}
    {%- set obstacle = healing_tables._merge_obstacle(build, is_comparable) -%}
    {%- if is_heal and obstacle is not none -%}
        {%- do healing_tables._rebuild_instead(build, obstacle) -%}
        {{- return(healing_tables._compute_change(build, sequence)) -}}
    {%- endif -%}
    {%- set counts = healing_tables._set_aside_counts(build, not is_comparable) if not is_heal else none -%}
    {%- set has_rows = healing_tables._look_for_rows(build, counts) if not is_comparable else none -%}
    {%- set needs_table = build.location is not none or sequence is not none -%}
    {%- set is_written = obstacle is not none and needs_table -%}
    {%- do healing_tables._write_candidate(build) if is_written -%}
    {%- if not is_comparable -%} {{ return(healing_tables._all_rows_as_new(build, obstacle, has_rows)) }} {%- endif -%}
    {%- set change = healing_tables._compute_difference(build, obstacle, counts) -%}
    {%- if change.how == 'overwrite' and is_heal -%}
        {%- do healing_tables._rebuild_instead(build, change.obstacle) -%}
        {{- return(healing_tables._compute_change(build, sequence)) -}}
    {%- endif -%}
    {%- do healing_tables._write_candidate(build)
        if change.how == 'overwrite' and needs_table and not is_written -%}
    {{- return(change) -}}
{%- endmacro %}

{#- Find the rows that differ, in one pass [see _difference.sql]. They are stored in a table if they are to be merged;
    otherwise only figures are computed. `counts`: see _set_aside_counts(); none in a heal. -#}
{% macro _compute_difference(build, obstacle, counts) -%}
    {#- both sides are partitioned by key: the join by key and start needs no other shuffle -#}
    {%- do healing_tables._set_session_conf('spark.sql.requireAllClusterKeysForCoPartition', 'false',
        build.settings.session) -%}
    {%- set started = healing_tables._utc_now() -%}
    {%- set inputs = healing_tables._diff_inputs(build) -%}
    {%- set changes = healing_tables._changes(build, inputs) -%}
    {%- if healing_tables._is_sharded(build) -%} {%- do healing_tables._compute_changes_by_shard(build, inputs) -%}
    {%- elif obstacle is none -%}
        {%- do build.update({'changes': healing_tables._create_side_table(build, '_changes', changes)}) -%}
    {%- endif -%}
    {%- set figures = healing_tables._read_figures(healing_tables._change_figures(
        '(\n' ~ changes ~ '\n)' if build.changes is none else build.changes | string, inputs,
        healing_tables._stored_rows_count(build), counts)) -%}
    {%- do figures.update({'candidate_versions': figures.stored_versions + figures.inserted - figures.deleted}) -%}
    {%- do healing_tables._log_progress(
        build.target, 'computed ' ~ (healing_tables._counted(figures.candidate_versions, 'version')
            if build.changed_keys is none else healing_tables._counted(build.changed_key_count, 'key'))
        ~ ', compared with ' ~ healing_tables._counted(figures.stored_versions, 'stored row') ~ ': '
        ~ healing_tables._counted(figures.differing_keys, 'key')
        ~ (' differs (' if figures.differing_keys == 1 else ' differ (')
        ~ healing_tables._display_seconds(healing_tables._utc_now() - started) ~ ')') -%}
    {#- before the checks, so that a refused build reports these rows, too -#}
    {%- do healing_tables._report_set_aside(build, fromjson(figures.set_aside)) if counts is not none -%}
    {%- do healing_tables._refuse_violations(build) if figures.violated > 0 -%}
    {%- do healing_tables._report_passed_checks(build) -%}
    {%- set change = healing_tables._change_of_figures(build, inputs, figures, obstacle) -%}
    {%- do healing_tables._refuse_equal_keys(build, inputs) if change.how == 'merge' -%}
    {{- return(change) -}}
{%- endmacro %}

{#- The change of a heal without changed keys: the stored table still has the rows of the last build. -#}
{% macro _no_change(build) -%}
    {{- return({'how': 'unchanged', 'summary': 'no key has changed', 'row_count': build.last.row_count, 'log_row': {
        'rows_added': 0, 'rows_changed': 0, 'rows_removed': 0,
        'rows_unchanged': healing_tables._stored_rows_count(build)}}) -}}
{%- endmacro %}

{#- Whether the stored rows can be matched by key and start. A build that would lose columns is refused. -#}
{% macro _is_comparable(build) -%}
    {%- if not build.stored or build.keeps_foreign -%} {{ return(false) }} {%- endif -%}
    {%- set settings = build.settings -%}
    {%- do healing_tables._check_schema_changes(build, build.stored.columns, build.columns) -%}
    {%- set missing = healing_tables._missing_names(
        settings.key_columns + ([settings.valid_from] if settings.valid_from is not none else []),
        build.stored.columns) -%}
    {%- do healing_tables._log_progress(build.target, 'not compared: the stored table has no ' ~ (missing | join(', ')))
        if missing -%}
    {{- return(not missing) -}}
{%- endmacro %}

{#- Choose the change from the figures of a comparison. A build that would remove too much is refused. -#}
{% macro _change_of_figures(build, inputs, figures, obstacle) -%}
    {%- do figures.update({'current_keys': 0, 'closed_versions': 0}) -%}
    {%- if figures.ended_keys > 0 or figures.lost_versions > 0 -%}
        {%- do figures.update(healing_tables._read_figures(healing_tables._stored_figures(inputs, build.existing))) -%}
    {%- endif -%}
    {%- do healing_tables._check_guards(build, figures) -%}
    {%- set unchanged = figures.stored_versions - figures.updated - figures.deleted -%}
    {%- set differing = figures.inserted + figures.updated + figures.deleted -%}
    {%- set publish = build.settings.publish -%}
    {%- set is_unchanged = differing == 0 and figures.repeated == 0
        and healing_tables._overwrite_reason(build) is none -%}
    {%- set obstacle = 'several rows of a key have the same start' if figures.repeated > 0
        else 'equal keys of this type can be in different key buckets'
            if obstacle is none and build.location is not none and not inputs.has_buckets
        else obstacle -%}
    {%- set is_small = 2 * differing <= figures.stored_versions -%}
    {%- set can_merge = obstacle is none and (build.log_row.mode == 'heal' or publish == 'merge'
        or (publish == 'auto' and is_small)) -%}
    {%- do healing_tables._log_progress(build.target, 'no merge: ' ~ obstacle)
        if obstacle is not none and publish == 'merge' and not is_unchanged -%}
    {{- return({
        'how': 'unchanged' if is_unchanged else 'merge' if can_merge else 'overwrite',
        'inputs': inputs, 'buckets': figures.get('buckets'), 'staged': build.changes, 'obstacle': obstacle,
        'row_count': figures.candidate_versions,
        'summary': healing_tables._counted(figures.inserted, 'row') ~ ' inserted, ' ~ figures.updated ~ ' updated, '
        ~ figures.deleted
        ~ ' deleted, ' ~ unchanged ~ ' as they were',
        'log_row': {
            'rows_added': figures.inserted, 'rows_changed': figures.updated, 'rows_removed': figures.deleted,
            'rows_unchanged': unchanged, 'keys_affected': figures.differing_keys}}) -}}
{%- endmacro %}

{#- Report the counts of _set_aside_counts(). Returns whether one of them shows a row after which its key exists. -#}
{% macro _look_for_rows(build, counts) -%}
    {%- set rows = run_query(counts).rows if counts is not none else [] -%}
    {%- do healing_tables._report_set_aside(build, rows) -%}
    {{- return(rows | selectattr('has_rows') | list | length > 0) -}}
{%- endmacro %}

{#- The change if there is nothing to compare with. Its rows are counted when they are written. A dimension has rows if
    a source has any; the query itself runs only if that is not known. -#}
{% macro _all_rows_as_new(build, obstacle, has_rows) -%}
    {%- set has_rows = has_rows or healing_tables._has_rows('(\n' ~ healing_tables._as_subquery(build.query) ~ ')') -%}
    {%- do healing_tables._check_guards(build, {
        'candidate_versions': 1 if has_rows else 0, 'is_first': true,
        'current_keys': 0, 'ended_keys': 0, 'closed_versions': 0, 'lost_versions': 0}) -%}
    {{- return({'how': 'overwrite', 'obstacle': obstacle, 'summary': '', 'log_row': {
        'rows_changed': 0, 'rows_removed': 0, 'rows_unchanged': 0}}) -}}
{%- endmacro %}

{#- The number of stored rows, as SQL: the count of the last build if it still holds. -#}
{% macro _stored_rows_count(build) -%}
    {%- set is_known = build.last is not none and build.last.row_count is not none
        and (build.is_as_left or build.last.is_tagged) -%}
    {{- return(build.last.row_count | int if is_known else '(select count(*) from ' ~ build.existing ~ ')') -}}
{%- endmacro %}
