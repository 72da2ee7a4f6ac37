{#-
    Parquet and ORC: tables without commits. Each build writes its files to a folder of its own, and one ALTER TABLE ...
    SET LOCATION points the table to it. The folder before it stays until the publish after next, for readers that still
    hold it.
-#}

{% macro _format_parquet() -%} {{ return(healing_tables._files_format('parquet')) }} {%- endmacro %}

{% macro _format_orc() -%} {{ return(healing_tables._files_format('orc')) }} {%- endmacro %}

{% macro _files_format(name) -%}
    {%- set nothing = healing_tables._nothing_known -%}
    {{- return({
        'name': name, 'has_commits': false, 'check_session': nothing, 'version': nothing, 'table_id': nothing,
        'commits_since': nothing,
        'has_change_feed': nothing, 'change_feed': nothing, 'change_feed_gap': nothing,
        'properties': healing_tables._no_properties,
        'before_merge': nothing, 'side_table_format': name, 'log_properties': {}, 'key_map_properties': {},
        'new_location': healing_tables._new_location}) -}}
{%- endmacro %}

{% macro _no_properties(columns, merges) -%} {{ return({}) }} {%- endmacro %}

{#- A folder for this run's files, in location_root or else beside the schema's tables. -#}
{% macro _new_location(target) -%}
    {%- set root = config.get('location_root') -%}
    {%- if root is none -%}
        {%- for row in run_query('describe schema ' ~ target.without_identifier()).rows if row[0] == 'Location' -%}
            {{- return(row[1] ~ '/' ~ target.identifier ~ '__versions/' ~ invocation_id | replace('-', '')) -}}
        {%- endfor -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'location_root', 'a place for the files of ' ~ target, 'none, and the schema names no location',
            'set location_root, or file_format: delta') -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
    {{- return(root ~ '/' ~ target.identifier ~ '__versions/' ~ invocation_id | replace('-', '')) -}}
{%- endmacro %}

{#- Whether the stored table can take the candidate's folder: an external table of this format with the same
    columns. -#}
{% macro _can_swap_location(format, columns, stored) -%}
    {{- return(
        stored.get('provider') == format.name and stored.get('type') == 'EXTERNAL' and not flags.FULL_REFRESH
        and stored.columns.items() | list == columns.items() | list) -}}
{%- endmacro %}

{#- The statement that makes a table read the candidate's folder. -#}
{% macro _swap_location(format, table, columns, location, can_swap) -%}
    {%- if can_swap -%}
        alter table {{ table }} set location {{ healing_tables._text(location) }}
    {%- else -%}
        create table {{ table }} (
        {%- for name, type in columns.items() -%}
            {{ healing_tables._id(name) }} {{ type }}{{ ', ' if not loop.last }}
        {%- endfor -%}
        )
        using {{ format.name }}
        {{ options_clause() }}
        {{ healing_tables._tblproperties(format, {}, {}) }}
        {{ partition_cols(label='partitioned by') }}
        {{ clustered_cols(label='clustered by') }}
        location {{ healing_tables._text(location) }}
        {{ comment_clause() }}
    {%- endif -%}
{%- endmacro %}

{#- Other sessions see the new folder; the one before last is emptied, or this run's own if nothing has changed. -#}
{% macro _after_swap(format, target, location, stored, is_unchanged) -%}
    {%- if is_unchanged -%}
        {%- do healing_tables._empty_folder(format, location) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do run_query('refresh table ' ~ target) -%}
    {%- set own = '/' ~ target.identifier ~ '__versions/' -%}
    {%- if own in stored.get('location', '') -%}
        {%- do run_query(
            'alter table ' ~ target ~ ' set '
            ~ healing_tables._properties_clause({'healing_tables.previous_location': stored.location})) -%}
    {%- endif -%}
    {%- set before_last = healing_tables._property(stored, 'healing_tables.previous_location') or '' -%}
    {%- if own in before_last and before_last not in [location, stored.get('location')] -%}
        {%- do healing_tables._empty_folder(format, before_last) -%}
    {%- endif -%}
{%- endmacro %}

{#- Spark SQL deletes no folder; a file without rows takes the place of all others. -#}
{% macro _empty_folder(format, location) -%}
    {%- do run_query(
        'insert overwrite directory ' ~ healing_tables._text(location) ~ ' using ' ~ format.name
        ~ ' select 1 as emptied where false') -%}
{%- endmacro %}
