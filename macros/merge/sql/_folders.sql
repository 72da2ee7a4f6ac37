{#-
    A merge into a dimension in parquet or ORC: one commit has the rows of the dimension, and the new rows of all tables
    beside it (build/_publish_folders.sql). So there is nothing that a killed merge leaves to the next one but the steps
    after its commit.
-#}

{#- Finish the newest commit if a merge was killed after it; of other formats, nothing. Returns whether it has. -#}
{% macro _finish_last_commit(format, target) -%}
    {%- if not format.commits.names_folders -%} {{ return(false) }} {%- endif -%}
    {%- do healing_tables._keep_partitions_in_metastore(true) -%}
    {%- set newest = healing_tables._newest_commit(healing_tables._commit_table(target)) -%}
    {%- set is_open = newest is not none and not newest.is_finished -%}
    {%- do healing_tables._finish_commit(format, target, newest) if is_open -%}
    {%- do healing_tables._run('refresh table ' ~ target) if healing_tables._table_exists(target) -%}
    {{- return(is_open) -}}
{%- endmacro %}

{#- The run with what its commit is based on. -#}
{% macro _with_commit(run, attempt) -%}
    {%- set table, stored, mistakes = healing_tables._commit_table(run.target), run.stored, [] -%}
    {%- do healing_tables._ensure_commit_table(run.format, table) -%}
    {%- set base = healing_tables._newest_commit(table) -%}
    {%- set location = stored.get('location') -%}
    {%- set is_known = stored and base is not none and healing_tables._is_same_place(base.location, location) -%}
    {%- do healing_tables._check_can_be_switched(mistakes, run) if stored -%}
    {%- do healing_tables._check_no_late_files(mistakes, run.target, base)
        if is_known and base.base_id is not none and not base.is_old -%}
    {%- do healing_tables._note_change_log(mistakes, run, table) if not mistakes -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {%- set stored_buckets = healing_tables._stored_buckets(location).buckets -%}
    {%- set buckets = healing_tables._key_buckets() if not stored
        else base.key_buckets if is_known and healing_tables._folders_of(location) != [location] else stored_buckets -%}
    {{- return(dict(run, version_before=base.version if stored and base is not none else none, undo=none,
        key_buckets=buckets, partitions=healing_tables._quoted_list(stored.partitions) if stored else none,
        location=run.format.files.new_location(run.target, attempt) ~ '/rows',
        commit={'base': base, 'merge_id': healing_tables._merge_id() ~ ('-' ~ attempt if attempt > 1), 'folders': [],
            'files': healing_tables._id_of_files(location) if stored and buckets is none else none})) -}}
{%- endmacro %}

{#- A table that one ALTER TABLE .. SET LOCATION can switch to a new folder. -#}
{% macro _check_can_be_switched(mistakes, run) -%}
    {%- set got = 'a managed table, whose files belong to the metastore' if run.stored.get('type') != 'EXTERNAL'
        else 'a table whose partitions each have a location' if run.stored.partitions
            and run.stored.get('partition provider') == 'Catalog' else none -%}
    {%- do healing_tables._mistake(mistakes, run.target | string,
        'an external table that one ALTER TABLE ... SET LOCATION can switch to a new folder', got,
        'dbt run-operation healing_tables.convert_table --args \'{dimension: ' ~ healing_tables._plain_names(run.target)
        ~ '}\': it copies the table to an external one of this name, and keeps the old one under another name')
        if got is not none -%}
{%- endmacro %}

{#- Rows that another writer has added to the folder from which the last merge has switched. -#}
{% macro _check_no_late_files(mistakes, target, base) -%}
    {%- if not healing_tables._is_same_place(base.base_location, base.location)
        and healing_tables._id_of_files(base.base_location) != base.base_id -%}
        {%- do healing_tables._mistake(mistakes, target | string,
            'no other writer in ' ~ base.base_location ~ ', the folder before the last merge',
            'files that were added or removed since', 'a merge with the library takes over added rows; or insert them '
            'again, and remove their files') -%}
    {%- endif -%}
{%- endmacro %}

{#- Note the log beside the commits: from then on, every merge uses it. -#}
{% macro _note_change_log(mistakes, run, table) -%}
    {%- set noted = healing_tables._property(healing_tables._table_details(table), 'healing_tables.change_log') -%}
    {%- set named = run.notes['healing_tables.change_log'] -%}
    {%- if noted is none or (noted != named and not run.stored) -%}
        {%- do healing_tables._run('alter table ' ~ table ~ ' set ' ~ healing_tables._properties_clause(run.notes)) -%}
    {%- else -%} {%- do healing_tables._check_named_log(mistakes, noted, named) -%}
    {%- endif -%}
{%- endmacro %}

{#- The run with the new rows of the log, and those that are set aside. -#}
{% macro _with_folders(run, merge, spec, figures) -%}
    {%- set layout, folders, found = merge.layout, [], healing_tables._is_logged(merge.layout) -%}
    {%- do folders.append({'table': merge.change_log | string, 'query':
        healing_tables._rows_for_log_folder(layout, merge.events) ~ ' as s left anti join ' ~ merge.change_log
        ~ ' as t on ' ~ found.same ~ (' and ' ~ found.equal if spec.get('on_tie') == 'greatest')})
        if figures.news > 0 -%}
    {%- if figures.aside > 0 -%}
        {%- set table = healing_tables._ensure_set_aside(run, layout, figures.aside) -%}
        {%- do folders.append({'table': table | string, 'query': 'select s.* from (\n'
            ~ healing_tables._rows_set_aside(layout, merge.batch) ~ '\n) as s left anti join ' ~ table
            ~ ' as t on t.set_aside_row_id = s.set_aside_row_id'}) -%}
    {%- endif -%}
    {{- return(dict(run, commit=dict(run.commit, folders=folders))) -}}
{%- endmacro %}

{#- Rows for the log as a select, without the column of its partitions; more can follow. -#}
{% macro _rows_for_log_folder(layout, events, is_seed=false) -%}
    {%- set columns = [] -%}
    {%- for name in healing_tables._columns_of_change_log(layout) if name != 'merge_id' -%}
        {%- do columns.append(healing_tables._quoted(name)) -%}
    {%- endfor -%}
    {{- return('select ' ~ (columns | join(', ')) ~ ' from (\n' ~ healing_tables._rows_for_log(layout, events, is_seed)
        ~ '\n)') -}}
{%- endmacro %}

{#- Begin the log of a stored dimension with these rows, once. -#}
{% macro _seed_in_folder(run, layout, seeds, change_log) -%}
    {%- set folder = run.location ~ '_seed' -%}
    {%- do healing_tables._write_folder(run.format, folder, healing_tables._rows_for_log_folder(layout, seeds, true))
        -%}
    {%- do healing_tables._take_folder(run.format, change_log | string, 'seed', folder) -%}
{%- endmacro %}

{#- The causes that the rows of the batch give, which are not in the log yet. -#}
{% macro _said_by_events(layout, events) -%}
    {{- return(healing_tables._said_causes(layout, '(select *, ' ~ healing_tables._string_literal(
        healing_tables._merge_id()) ~ ' as merge_id from ' ~ events ~ ')', [healing_tables._merge_id()])) -}}
{%- endmacro %}
