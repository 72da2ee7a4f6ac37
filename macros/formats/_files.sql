{#-
    Parquet and ORC: tables without commits. Each build writes its files to a folder of its own, and one ALTER TABLE ...
    SET LOCATION points the table to it. A replaced folder is kept until the next publication, for readers that still
    use it.
-#}

{% macro _format_parquet() -%} {{ return(healing_tables._files_format('parquet')) }} {%- endmacro %}

{% macro _format_orc() -%} {{ return(healing_tables._files_format('orc')) }} {%- endmacro %}

{% macro _files_format(name) -%}
    {{- return({
        'name': name, 'staging_format': name, 'check_session': healing_tables._check_not_iceberg,
        'table_id': healing_tables._buckets_table_id, 'part_obstacle': healing_tables._buckets_obstacle,
        'files': {'new_location': healing_tables._new_location}, 'commits': {'names_folders': true}}) -}}
{%- endmacro %}

{#- A folder for the files of this attempt, in location_root or else in the location of the schema. -#}
{% macro _new_location(target, attempt) -%}
    {{- return(healing_tables._versions_folder(target) ~ '/' ~ invocation_id | replace('-', '') ~ ('_' ~ attempt
        if attempt > 1)) -}}
{%- endmacro %}

{% macro _versions_folder(target) -%}
    {%- set folder = target.identifier ~ '__versions' -%}
    {%- set root = config.get('location_root') -%}
    {%- if root is none -%}
        {%- for row in run_query('describe schema ' ~ target.without_identifier()).rows if row[0] == 'Location' -%}
            {{- return(row[1] ~ '/' ~ folder) -}}
        {%- endfor -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'location_root', 'a location for the files of ' ~ target, 'none, and the schema has no location',
            'set location_root, or file_format: delta') -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
    {{- return(root ~ '/' ~ folder) -}}
{%- endmacro %}

{#- Whether the stored table can be switched to the candidate's folder: an external table of this format with the same
    columns and partitions. -#}
{% macro _can_swap_location(format, columns, stored) -%}
    {{- return(
        stored.get('provider') == format.name and stored.get('type') == 'EXTERNAL' and not flags.FULL_REFRESH
        and stored.columns.items() | list == columns.items() | list
        and stored.partitions | map('lower') | list == healing_tables._as_list(config.get('partition_by'))
            | map('lower') | list) -}}
{%- endmacro %}

{#- Create an empty table, then switch it to its buckets: Hive would create a folder named like their pattern. -#}
{% macro _create_for_buckets(format, created, candidate) -%}
    {%- do healing_tables._run(healing_tables._swap_location(format, created, candidate.columns,
        healing_tables._folders_of(candidate.location)[0].rpartition('/')[0] ~ '_empty', false)) -%}
{%- endmacro %}

{#- The description of a column in the model's yml, if persist_docs wants it in the table; else none. -#}
{% macro _column_comment(name) -%}
    {%- set described = healing_tables._find_column(name, model.columns) if config.persist_column_docs() else none -%}
    {{- return(model.columns[described].description if described is not none else none) -}}
{%- endmacro %}

{#- The statement that makes a table read the candidate's folder. `unless`: 'if not exists ', or nothing. -#}
{% macro _swap_location(format, table, columns, location, can_swap, unless='') -%}
    {%- if can_swap -%}
        alter table {{ table }} set location {{ healing_tables._string_literal(location) }}
    {%- else -%}
        create table {{ unless }}{{ table }} (
        {%- for name, type in columns.items() -%}
            {%- set comment = healing_tables._column_comment(name) -%}
            {{ healing_tables._quoted(name) }} {{ type }}{{ ' comment ' ~ healing_tables._string_literal(comment)
                if comment }}
            {{- ', ' if not loop.last }}
        {%- endfor -%}
        )
        using {{ format.name }}
        {{ options_clause() }}
        {{ healing_tables._tblproperties(format, {}, {}) }}
        {{ partition_cols(label='partitioned by') }}
        {{ clustered_cols(label='clustered by') }}
        location {{ healing_tables._string_literal(location) }}
        {{ comment_clause() }}
    {%- endif -%}
{%- endmacro %}

{#- Refresh the table, and empty the folders of the state before last; if nothing has changed, empty the folders of
    this run instead. -#}
{% macro _after_swap(run, candidate, is_unchanged) -%}
    {%- set target, stored = run.target, run.stored -%}
    {%- set kept = healing_tables._folders_of(stored.get('location')) -%}
    {%- if is_unchanged -%}
        {%- do healing_tables._empty_folders(run.format, candidate.location, kept)
            if candidate is not none and candidate.table is not none -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._run('refresh table ' ~ target) -%}
    {%- set own = '/' ~ target.identifier ~ '__versions/' -%}
    {#- a comma in the value of a property would end it, see _property -#}
    {%- if own in stored.get('location', '') -%}
        {%- do healing_tables._run(
            'alter table ' ~ target ~ ' set ' ~ healing_tables._properties_clause({
                'healing_tables.previous_location': stored.location | replace(',', '|')})) -%}
    {%- endif -%}
    {%- set before_last = healing_tables._property(stored, 'healing_tables.previous_location') or '' -%}
    {%- if own in before_last -%}
        {%- do healing_tables._empty_folders(run.format, before_last | replace('|', ','),
            kept + healing_tables._folders_of(candidate.location)) -%}
    {%- endif -%}
{%- endmacro %}

{#- Empty the folders of a location, except those that are still in use. -#}
{% macro _empty_folders(format, location, kept) -%}
    {%- for folder in healing_tables._folders_of(location) if folder not in kept -%}
        {%- do healing_tables._empty_folder(format, folder) -%}
    {%- endfor -%}
{%- endmacro %}

{#- Spark SQL cannot delete a folder; a file without rows replaces all others. -#}
{% macro _empty_folder(format, location) -%}
    {%- do healing_tables._write_folder(format, location, 'select 1 as emptied where false') -%}
{%- endmacro %}

{% macro _write_folder(format, folder, query) -%}
    {%- do healing_tables._run('insert overwrite directory ' ~ healing_tables._string_literal(folder) ~ ' using '
        ~ format.name ~ '\n' ~ query) -%}
{%- endmacro %}

{#- The files at a location as `path time size`, sorted, as SQL. Spark lists them and opens none. -#}
{% macro _files_in(location) -%}
    {{- return("(select sort_array(collect_list(concat_ws(' ', path, unix_micros(modificationTime), length))) from "
        ~ healing_tables._files_at('binaryFile', location) ~ ')') -}}
{%- endmacro %}

{% macro _id_of_files(location) -%}
    {{- return(run_query('select md5(array_join(' ~ healing_tables._files_in(location) ~ ", '|')) as id").rows[0]['id'])
        -}}
{%- endmacro %}

{#- Whether two texts are one location: file:/x, file:///x and /x are. -#}
{% macro _is_same_place(one, other) -%}
    {%- set places = [] -%}
    {%- for place in [one, other] -%} {%- do places.append(modules.re.sub('^file:/+', '/', place.rstrip('/'))) -%}
    {%- endfor -%}
    {{- return(places[0] == places[1]) -}}
{%- endmacro %}

{#- Whether the partitions of new tables are in the metastore, where a merge adds them, or are found by listing. -#}
{% macro _keep_partitions_in_metastore(are_there) -%}
    {%- do healing_tables._set_session_conf('spark.sql.hive.manageFilesourcePartitions', are_there | string | lower) -%}
{%- endmacro %}
