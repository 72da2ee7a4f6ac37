{#-
    Tables without commits, parquet and ORC: each candidate is written to a folder of its own, and one ALTER TABLE ...
    SET LOCATION points the target to it. The folder before it stays until the publish after next, for readers that
    still hold it.
-#}

{#- Where a table without commits puts this run's files; none for one with commits. -#}
{% macro _new_folder(target) -%}
    {%- if healing_tables._has_commits() -%} {{ return(none) }} {%- endif -%}
    {%- set root = config.get('location_root') -%}
    {%- if root is none -%}
        {%- for row in run_query('describe schema ' ~ target.without_identifier()).rows if row[0] == 'Location' -%}
            {{- return(row[1] ~ '/' ~ target.identifier ~ '__versions/' ~ invocation_id | replace('-', '')) -}}
        {%- endfor -%}
    {%- endif -%}
    {%- if root is none -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'location_root', 'a place for the files of ' ~ target, 'none, and the schema names no location',
            'set location_root, or file_format: delta') -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
    {{- return(root ~ '/' ~ target.identifier ~ '__versions/' ~ invocation_id | replace('-', '')) -}}
{%- endmacro %}

{% macro _point_to(target, candidate, folder, build, existing, stored) -%}
    {%- set wanted = healing_tables._columns_of(candidate) -%}
    {%- set swappable = stored.get('provider') == healing_tables._file_format() and stored.get('type') == 'EXTERNAL' -%}
    {%- if swappable and not flags.FULL_REFRESH and healing_tables._columns_of(existing).items() | list == wanted.items() | list -%}
        alter table {{ target }} set location {{ healing_tables._text(folder) }}
    {%- else -%}
        {%- if existing is not none -%} {%- do healing_tables._create_beside(target, candidate, build, existing) -%} {%- endif -%}
        create table {{ build.created }} (
        {%- for name, type in wanted.items() -%}
            {{ healing_tables._id(name) }} {{ type }}{{ ', ' if not loop.last }}
        {%- endfor -%}
        )
        using {{ healing_tables._file_format() }}
        {{ options_clause() }}
        {{ healing_tables._tblproperties('select 1', {}) }}
        {{ partition_cols(label='partitioned by') }}
        {{ clustered_cols(label='clustered by') }}
        location {{ healing_tables._text(folder) }}
        {{ comment_clause() }}
    {%- endif -%}
{%- endmacro %}

{#- Other sessions see the new folder; the one before last is emptied, or this run's own if nothing has changed. -#}
{% macro _after_pointing(target, folder, stored, change) -%}
    {%- if change.how == 'unchanged' -%}
        {%- do healing_tables._empty_folder(folder) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do run_query('refresh table ' ~ target) -%}
    {%- set own = '/' ~ target.identifier ~ '__versions/' -%}
    {%- if own in stored.get('location', '') -%}
        {%- do run_query(
            'alter table ' ~ target ~ " set tblproperties ('healing_tables.previous_location' = "
            ~ healing_tables._text(stored.location) ~ ')') -%}
    {%- endif -%}
    {%- set before_last = stored.get('previous') or '' -%}
    {%- if own in before_last and before_last not in [folder, stored.get('location')] -%}
        {%- do healing_tables._empty_folder(before_last) -%}
    {%- endif -%}
{%- endmacro %}

{#- Spark SQL deletes no folder; a file without rows takes the place of all others. -#}
{% macro _empty_folder(folder) -%}
    {%- do run_query(
        'insert overwrite directory ' ~ healing_tables._text(folder) ~ ' using ' ~ healing_tables._file_format()
        ~ ' select 1 as emptied where false') -%}
{%- endmacro %}
