{#-
    Publish in one step. In a format with commits, one commit merges the rows that differ or replaces all rows; with
    branches, the step publishes a branch. In other formats, the location of the table is set to the folder of this
    build, see formats/_files.sql.
-#}

{#- Run the one statement whose result readers see. Returns conflicts, as _run_or_conflict does. -#}
{% macro _publish(build, change) -%}
    {%- if change.how == 'merge' and build.location is not none -%}
        {%- do healing_tables._write_changed_buckets(build, change) -%}
    {%- elif change.how == 'merge' -%}
        {%- set place = build.format.begin_commit(build.target, build.log_row.version_before) -%}
        {{- return(healing_tables._run_or_conflict(build, 'main',
            healing_tables._merge_row_diff(place, change, healing_tables._commit_tag(build, change.row_count)
                if build.format.has_commit_tags else none))
            or build.format.end_commit(build.target, build.log_row.version_before)) -}}
    {%- elif healing_tables._can_use_branch(build) -%}
        {{- return(healing_tables._run_checked(build, 'main', healing_tables._insert_candidate(
            build, healing_tables._empty_branch(build), healing_tables._checked_select(build)))
            or build.format.end_commit(build.target, build.log_row.version_before)) -}}
    {%- endif -%}
    {%- do build.update({'is_created': change.how == 'overwrite'}) -%}
    {%- set can_swap = build.location is not none
        and healing_tables._can_swap_location(build.format, build.columns, build.stored) -%}
    {%- set can_replace = build.location is none and not build.keeps_foreign
        and build.stored.get('provider') == build.format.name -%}
    {%- set is_in_buckets = healing_tables._stored_buckets(build.location).buckets is not none -%}
    {%- do healing_tables._create_beside(build) if not can_swap and not can_replace
        and (build.existing is not none or is_in_buckets) -%}
    {%- if build.location is not none -%}
        {%- do healing_tables._create_for_buckets(build) if is_in_buckets and not can_swap -%}
        {%- set conflicts = healing_tables._changes_of_files(build) -%}
        {%- if conflicts -%} {{ return(conflicts) }} {%- endif -%}
        {{- return(healing_tables._run_or_conflict(build, 'main', healing_tables._swap_location(
            build.format, build.created, build.columns, build.location, can_swap or is_in_buckets))) -}}
    {%- endif -%}
    {{- return(healing_tables._run_checked(build, 'main', healing_tables._create_table(
        build.format, build.created, healing_tables._checked_select(build), build.columns, none, true,
        dict({'healing_tables.spec': build.settings.property}, **healing_tables._tag_properties(build))))) -}}
{%- endmacro %}

{#-
    Finish a build whose rows are published: insert its row into the log and drop the candidate. `version`: that of the
    build's commit; none if it is not known. `written_rows`: by it, or none.
-#}
{% macro _after_publish(build, change, version, written_rows=none) -%}
    {%- set target = build.target -%}
    {%- do healing_tables._rename_into_place(build) -%}
    {%- set is_unchanged = change.how == 'unchanged' -%}
    {%- do healing_tables._after_swap(build, is_unchanged) if build.location is not none -%}
    {%- set version = build.format.version(target) if version is none and not is_unchanged else version -%}
    {%- if is_unchanged -%} {%- set what = 'unchanged, nothing to publish' -%}
    {%- elif build.location is not none -%}
        {%- set what = 'published ' ~ (build.written or 'from ' ~ build.location) -%}
    {%- elif version is not none -%}
        {%- set what = 'published in one commit, version ' ~ version ~ (', by a merge' if change.how == 'merge'
            else ', as a whole') -%}
    {%- endif -%}
    {%- set table_id = build.log_row.table_id -%}
    {%- if build.format.has_commit_tags -%}
        {#- rows of another writer, or rows without a tag: this build has found them equal to those of the query. News
            that changed nothing would be read again by the next heal. -#}
        {%- set is_retagged = is_unchanged and (not build.is_as_left or (build.log_row.mode == 'heal'
            and healing_tables._kept_marks(build) != build.last.marks)) -%}
        {%- do healing_tables._run('alter table ' ~ target ~ ' set ' ~ healing_tables._properties_clause(
            healing_tables._tag_properties(build, change.row_count))) if is_retagged -%}
        {%- set table_id = invocation_id if is_retagged or not is_unchanged else table_id -%}
    {%- elif healing_tables._can_heal() and (table_id is none or change.how == 'overwrite'
        or (build.location is not none and not is_unchanged)) -%}
        {%- set table_id = build.format.table_id(target, {'location': build.location}) -%}
    {%- endif -%}
    {%- do healing_tables._log_progress(target, (what or 'published') ~ (': ' ~ change.summary if change.summary)) -%}
    {%- set is_new = 'rows_added' not in change.log_row -%}
    {%- do change.log_row.update(healing_tables._count_rows(build, written_rows)) if is_new -%}
    {%- do healing_tables._end_build(build, 'unchanged' if is_unchanged else 'published', dict(
        change.log_row, publish=none if is_unchanged else change.how, version_after=version, table_id=table_id),
        target if is_new else none) -%}
    {%- do healing_tables._run('drop table if exists ' ~ build.candidate) if build.is_written -%}
    {%- do healing_tables._drop_parts_of_others(build) if healing_tables._is_sharded(build) -%}
{%- endmacro %}

{#- The number of rows and keys of a dimension built for the first time: a number, or an aggregate of its rows. -#}
{% macro _count_rows(build, written_rows) -%}
    {%- set keys = healing_tables._quoted_list(build.settings.key_columns) -%}
    {%- set version = build.settings.metadata.names.version if build.is_pure_call else none -%}
    {{- return({
        'rows_added': 'count(*)' if written_rows is none else written_rows,
        'keys_affected': 'count_if(' ~ healing_tables._quoted(version) ~ ' = 1)' if version is not none
            else 'count(distinct struct(' ~ (keys | join(', ')) ~ '))'}) -}}
{%- endmacro %}
