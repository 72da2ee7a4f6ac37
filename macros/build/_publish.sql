{#-
    Publish in one step, whose result readers see. The ways:

    merge     the rows that differ, in a format with commits: one MERGE
    branch    all rows, in a format with branches: an INSERT into an empty branch, which then becomes main
    replace   all rows, in a format with commits: CREATE OR REPLACE TABLE, also where nothing has the name
    swap      a table of files, all rows or the buckets that differ: its location becomes a folder of this run; also a
              new one
    folders   a merge in a format without commits: one commit names the folders of all its tables (_publish_folders.sql)
    beside    a table that one statement cannot make of what has the name, or a new one in key buckets: created under
              another name, then renamed (swap/_replace.sql)
-#}
{% macro _publishing_way(run, candidate, change) -%}
    {%- if run.commit is not none -%} {{ return('folders') }} {%- endif -%}
    {%- if run.location is none -%}
        {%- if change.how == 'merge' -%} {{ return('merge') }} {%- endif -%}
        {%- if healing_tables._can_use_branch(run, candidate) -%} {{ return('branch') }} {%- endif -%}
        {%- set can_replace = run.existing is none
            or (not run.keeps_foreign and run.stored.get('provider') == run.format.name) -%}
        {{- return('replace' if can_replace else 'beside') -}}
    {%- endif -%}
    {%- set is_in_buckets = healing_tables._stored_buckets(candidate.location).buckets is not none -%}
    {%- set can_swap = healing_tables._can_swap_location(run.format, candidate.columns, run.stored)
        or (run.existing is none and not is_in_buckets) -%}
    {{- return('swap' if can_swap else 'beside') -}}
{%- endmacro %}

{#- Returns {conflicts (as _run_or_conflict does), created (the table that the statement has made, perhaps beside the
    target), is_created (a table was created or replaced, and not only its rows), candidate, version (of the commit, if
    it is known)}. -#}
{% macro _publish(run, candidate, change, sequence) -%}
    {%- if change.how == 'merge' and run.location is not none -%}
        {%- set candidate = healing_tables._with_changed_rows(run, candidate, change.inputs) -%}
    {%- endif -%}
    {%- set way = healing_tables._publishing_way(run, candidate, change) -%}
    {%- if way == 'folders' -%} {{ return(healing_tables._publish_folders(run, candidate, change, sequence)) }}
    {%- endif -%}
    {%- set created = healing_tables._table_beside(run) if way == 'beside' else run.target -%}
    {%- set conflicts = healing_tables._publish_merge(run, change) if way == 'merge'
        else healing_tables._publish_branch(run, candidate) if way == 'branch'
        else healing_tables._publish_files(run, candidate, created, way) if run.location is not none
        else healing_tables._publish_table(run, candidate, created) -%}
    {{- return({'conflicts': conflicts, 'created': created, 'candidate': candidate,
        'version': none, 'is_created': change.how == 'overwrite' and way != 'branch'}) -}}
{%- endmacro %}

{#- `statement_name`: dbt stores the statement 'main' as the SQL of a model, and an operation has none. -#}
{% macro _publish_merge(run, change, statement_name='main') -%}
    {%- set place = run.format.commits.begin(run.target, run.version_before) -%}
    {%- set tag = healing_tables._commit_tag(run, change.row_count) if run.format.commits.has_tags else none -%}
    {%- set shown = tag if run.format.commits.shows_predicates else none -%}
    {#- in a table clustered by key, the list lets Delta skip files; elsewhere it would only make Spark compile new code
        in each heal -#}
    {%- set listed_keys = run.listed_keys if healing_tables._cluster_by()
        | map('lower') | first == run.settings.key_columns[0] | lower else none -%}
    {{- return(healing_tables._run_or_conflict(run, statement_name,
        healing_tables._merge_row_diff(place, change, shown, listed_keys))
        or run.format.commits.end(run.target, run.version_before, tag)) -}}
{%- endmacro %}

{% macro _publish_branch(run, candidate) -%}
    {{- return(healing_tables._run_checked(run, candidate, 'main', healing_tables._insert_candidate(
        candidate, healing_tables._empty_branch(run), healing_tables._checked_select(run, candidate)))
        or run.format.commits.end(run.target, run.version_before, healing_tables._commit_tag(run, none))) -}}
{%- endmacro %}

{% macro _publish_files(run, candidate, created, way) -%}
    {%- set is_in_buckets = healing_tables._stored_buckets(candidate.location).buckets is not none -%}
    {%- do healing_tables._create_for_buckets(run.format, created, candidate) if is_in_buckets and way == 'beside' -%}
    {%- set conflicts = healing_tables._changes_of_files(run) -%}
    {%- if conflicts -%} {{ return(conflicts) }} {%- endif -%}
    {%- set is_there = is_in_buckets or (way == 'swap' and run.existing is not none) -%}
    {{- return(healing_tables._run_or_conflict(run, 'main', healing_tables._swap_location(
        run.format, created, candidate.columns, candidate.location, is_there))) -}}
{%- endmacro %}

{% macro _publish_table(run, candidate, created) -%}
    {%- set properties = dict(run.notes, **{'healing_tables.spec': run.settings.property}) -%}
    {#- an INSERT of another writer must conflict with a merge of the library, too -#}
    {%- do properties.update(run.format.properties.change_log) if run.mode == 'merge' -%}
    {%- do properties.update(healing_tables._tag_properties(run, is_of_target=created == run.target)) -%}
    {{- return(healing_tables._run_checked(run, candidate, 'main', healing_tables._create_table(
        run.format, created, healing_tables._checked_select(run, candidate), candidate.columns, none, true,
        properties))) -}}
{%- endmacro %}

{#-
    Finish a build whose rows are published: insert its row into the log and drop the candidate. `published`: see
    _publish(); `version`: that of the build's commit, none if it is not known; `written_rows`: by it, or none.
-#}
{% macro _after_publish(run, change, published, version, written_rows=none) -%}
    {%- set target, candidate = run.target, published.candidate -%}
    {%- do healing_tables._rename_into_place(run, published.created) -%}
    {%- set is_unchanged = change.how == 'unchanged' -%}
    {%- set is_swapped = run.location is not none and run.commit is none -%}
    {%- do healing_tables._after_swap(run, candidate, is_unchanged) if is_swapped -%}
    {%- set version = run.format.commits.newest_version(target) if version is none and not is_unchanged else version -%}
    {%- if is_unchanged -%} {%- set what = 'unchanged, nothing to publish' -%}
    {%- elif is_swapped -%}
        {%- set what = 'published ' ~ (candidate.written or 'from ' ~ candidate.location) -%}
    {%- elif version is not none -%}
        {%- set what = 'published in one commit, version ' ~ version ~ (', by a merge' if change.how == 'merge'
            else ', as a whole') -%}
    {%- endif -%}
    {%- set table_id = run.table_id -%}
    {%- if run.format.commits.has_tags -%}
        {#- rows of another writer, or rows without a tag: this build has found them equal to those of the query. News
            that changed nothing would be read again by the next heal. -#}
        {%- set is_retagged = is_unchanged and (not run.is_as_left or (run.mode != 'sample'
            and healing_tables._kept_marks(run.marks) != run.last.marks)) -%}
        {%- do healing_tables._run('alter table ' ~ target ~ ' set ' ~ healing_tables._properties_clause(
            healing_tables._tag_properties(run, change.row_count, version=run.version_before))) if is_retagged -%}
        {%- set table_id = invocation_id if is_retagged or not is_unchanged else table_id -%}
    {%- elif healing_tables._can_heal() and (table_id is none or change.how == 'overwrite'
        or (run.location is not none and not is_unchanged)) -%}
        {%- set table_id = run.format.table_id(target, {
            'location': run.location if candidate is none else candidate.location}) -%}
    {%- endif -%}
    {%- do healing_tables._log_progress(target, (what or 'published') ~ (': ' ~ change.summary if change.summary)) -%}
    {%- set is_new = 'rows_added' not in change.figures -%}
    {%- set figures = dict(candidate.figures if candidate is not none else {}, publish=none if is_unchanged
        else run.publish or change.how, version_after=version, table_id=table_id, **change.figures) -%}
    {%- do figures.update(healing_tables._count_rows(run, candidate, written_rows)) if is_new -%}
    {%- do healing_tables._end_run(run, 'unchanged' if is_unchanged else 'published', figures,
        target if is_new else none) -%}
    {%- do healing_tables._run('drop table if exists ' ~ candidate.table)
        if candidate is not none and candidate.table is not none -%}
    {%- do healing_tables._drop_parts_of_others(run) if healing_tables._is_sharded(run) -%}
{%- endmacro %}

{#- The number of rows and keys of a dimension built for the first time: a number, or an aggregate of its rows. -#}
{% macro _count_rows(run, candidate, written_rows) -%}
    {%- set keys = healing_tables._quoted_list(run.settings.key_columns) -%}
    {%- set version = run.settings.metadata.names.version if candidate.is_pure_call else none -%}
    {{- return({
        'rows_added': 'count(*)' if written_rows is none else written_rows,
        'keys_affected': 'count_if(' ~ healing_tables._quoted(version) ~ ' = 1)' if version is not none
            else 'count(distinct struct(' ~ (keys | join(', ')) ~ '))'}) -}}
{%- endmacro %}
