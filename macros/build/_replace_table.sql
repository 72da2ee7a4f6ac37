{#-
    Replace a table that one statement cannot turn into the target: it has another format, or this model did not build
    it. The new table is created beside it and then takes its name, so that a build that is killed in between loses no
    rows.

    name               1. create              2. rename              3. rename              4. drop, unless it is kept
    dim                old rows               -                      new rows               new rows
    dim__before_1a2b   -                      old rows               old rows               -
    dim__candidate_..  new rows               new rows               -                      -
-#}

{#- Whether this model has built the stored table, according to the log. Not every format has table ids. -#}
{% macro _is_built_by_model(build) -%}
    {%- set table_id = build.log_row.table_id -%}
    {{- return(build.last is not none and 'healing_tables.spec=' in build.stored.get('properties', '')
        and (build.last.table_id is none or table_id is none or build.last.table_id == table_id)) -}}
{%- endmacro %}

{#- Refuse to replace rows that this model has not built and cannot compare with its own, unless the run allows it; then
    the old table is kept. -#}
{% macro _check_foreign_table(build) -%}
    {%- if not build.stored or healing_tables._is_built_by_model(build) -%} {{ return(none) }} {%- endif -%}
    {%- set settings = build.settings -%}
    {%- set columns = build.stored.columns -%}
    {%- set wanted = settings.key_columns + ([settings.valid_from] if settings.valid_from is not none else []) -%}
    {%- set missing = healing_tables._missing_names(wanted, columns) -%}
    {%- if not missing or not healing_tables._has_rows(build.existing) -%} {{ return(none) }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- if not healing_tables._allows_replace() -%}
        {%- do healing_tables._foreign_table_mistake(
            mistakes, build.target, wanted, columns,
            "name its columns in meta.healing_tables.column_names, e.g. {valid_from: effective_from}") -%}
    {%- elif healing_tables._is_same_location(build.stored, build.target) -%}
        {%- do healing_tables._mistake(
            mistakes, 'location_root', 'another folder, since the existing table is kept',
            build.stored.location,
            'choose another location_root, or move the table away') -%}
    {%- else -%}
        {%- do build.update({'keeps_foreign': true}) -%}
        {%- do build.log_row.update({'reason': 'the table that had this name is kept as '
            ~ healing_tables._backup_relation(build.target)}) -%}
    {%- endif -%}
    {%- do healing_tables._refuse(build, mistakes, false) if mistakes -%}
{%- endmacro %}

{#- The mistake of a table that another program has created. `naming`: how to name its columns in the model. -#}
{% macro _foreign_table_mistake(mistakes, target, wanted, columns, naming) -%}
    {%- do healing_tables._mistake(
        mistakes, 'the table ' ~ target, 'a table that this model has built, or one with the columns '
        ~ (wanted | join(', ')),
        'a table with rows that is not in healing_log, with the columns ' ~ (columns | join(', ')),
        naming ~ "; or give the model another name (alias); or replace the table once: --vars '{allow_replace: true}', "
        "which keeps it as "
        ~ healing_tables._backup_relation(target)) -%}
{%- endmacro %}

{% macro _allows_replace() -%} {{ return(var('allow_replace', false) is sameas true) }} {%- endmacro %}

{#- The backup name of a table while it is replaced, or permanently if it is kept. -#}
{% macro _backup_relation(target) -%}
    {{- return(target.incorporate(path={'identifier': target.identifier ~ '__before_' ~ invocation_id[:8]})) -}}
{%- endmacro %}

{#- Whether the new table would have the same location as the stored one. -#}
{% macro _is_same_location(stored, target) -%}
    {%- set root = config.get('location_root') -%}
    {%- set places = [] -%}
    {%- for place in [stored.get('location') or '', (root or '') ~ '/' ~ target.identifier] -%}
        {%- do places.append(modules.re.sub('^[a-z0-9]+:/*|^/+', '', place) | string) -%}
    {%- endfor -%}
    {{- return(root is not none and places[0] == places[1]) -}}
{%- endmacro %}

{#- Let the next statement create the table under a name of this run. -#}
{% macro _create_beside(build) -%}
    {%- do build.update({'created': build.candidate.incorporate(path={'identifier': build.candidate.identifier
        ~ '_new'})}) -%}
    {%- do healing_tables._log_progress(
        build.target, 'the ' ~ build.existing.type
        ~ ' that has this name cannot become this table in one step: the new table is created beside it and then takes '
        'its name') if build.existing is not none -%}
{%- endmacro %}

{#- Rename the new table to the target. An existing view is dropped, since it has no rows to lose. -#}
{% macro _rename_into_place(build) -%}
    {%- if build.created == build.target -%} {{ return(none) }} {%- endif -%}
    {%- set backup = healing_tables._backup_relation(build.target) -%}
    {%- if build.existing is not none and build.existing.is_table -%}
        {%- do adapter.rename_relation(build.existing, backup) -%}
    {%- elif build.existing is not none -%} {%- do adapter.drop_relation(build.existing) -%}
    {%- endif -%}
    {%- do adapter.rename_relation(build.created, build.target) -%}
    {%- if build.existing is none -%} {{ return(none) }} {%- endif -%}
    {%- if build.keeps_foreign -%} {%- do healing_tables._log_progress(build.target,
        'the table that had this name is kept as ' ~ backup) -%}
    {%- elif build.existing.is_table -%} {%- do adapter.drop_relation(backup) -%}
    {%- endif -%}
{%- endmacro %}

{#- If a build was killed between the two renames, the rows are still in the backup. -#}
{% macro _warn_about_backups(target, tables) -%}
    {%- set kept = healing_tables._tables_of_other_runs(target, tables, 'before') -%}
    {%- if kept -%}
        {%- do healing_tables._log_progress(
            target, 'no table has this name, but what was there before is kept as ' ~ (kept | sort | join(', '))
            ~ '; a build may have died while it replaced it') -%}
    {%- endif -%}
{%- endmacro %}

{#-
    A full refresh of a table whose history no source has: {target, before, is_view, is_kept}, or none without
    --full-refresh. The stored table is renamed to `before` while the new one is created. Refused unless the model
    allows it. `wanted`: the columns that identify a table of this model.
-#}
{% macro _full_refresh(mistakes, target, existing, wanted) -%}
    {%- if existing is none or not should_full_refresh() -%} {{ return(none) }} {%- endif -%}
    {%- if healing_tables._option('allow_full_refresh', none, false) is not sameas true -%}
        {%- do healing_tables._mistake(
            mistakes, '--full-refresh', 'a run that keeps the history, which cannot be restored from a batch',
            'a full refresh of ' ~ target ~ ', which exists',
            'run without it; or set meta.healing_tables.allow_full_refresh: true to drop the table and start again '
            'with this batch') -%}
    {%- endif -%}
    {%- set stored = healing_tables._table_details(existing) -%}
    {%- set format = healing_tables._stored_format(stored) -%}
    {%- if stored.get('type') == 'EXTERNAL' and format is not none and format.has_commits -%}
        {#- dropping it would keep its files, and with them the rows -#}
        {%- do healing_tables._mistake(
            mistakes, '--full-refresh', 'a table that Spark manages', target ~ ', whose files stay when it is dropped',
            'drop the table, remove its files, and run without --full-refresh') -%}
    {%- endif -%}
    {%- set is_other = false -%}
    {%- if existing.is_table and not mistakes -%}
        {%- set columns = healing_tables._columns_of(existing) -%}
        {%- set is_other = healing_tables._missing_names(wanted, columns) | length > 0
            and healing_tables._has_rows(existing) -%}
        {%- if is_other and not healing_tables._allows_replace() -%}
            {%- do healing_tables._foreign_table_mistake(mistakes, target, wanted, columns,
                'correct the names of its columns') -%}
        {%- endif -%}
    {%- endif -%}
    {{- return({
        'target': target | string, 'before': healing_tables._backup_relation(target) | string,
        'is_view': existing.is_view,
        'is_kept': is_other}) -}}
{%- endmacro %}

{#- Rename the stored table to its backup name, or drop a view. -#}
{% macro _rename_to_backup(replaced) -%}
    {%- if replaced is none -%} {{ return(none) }} {%- endif -%}
    {%- do healing_tables._run('drop view if exists ' ~ replaced.target if replaced.is_view
        else 'alter table ' ~ replaced.target ~ ' rename to ' ~ replaced.before) -%}
{%- endmacro %}

{#- The new table exists: drop the backup. -#}
{% macro _drop_backup(target, replaced) -%}
    {%- if replaced is none or replaced.is_view -%} {{ return(none) }} {%- endif -%}
    {%- if replaced.is_kept -%} {%- do healing_tables._log_progress(target, 'the table that had this name is kept as '
        ~ replaced.before) -%}
    {%- else -%} {%- do healing_tables._run('drop table if exists ' ~ replaced.before) -%}
    {%- endif -%}
{%- endmacro %}
