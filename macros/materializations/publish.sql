{#-
    Publishing in one step. Delta: the target is replaced in one commit. Parquet and ORC have no commits: the
    candidate is written to a folder of its own, and one ALTER TABLE ... SET LOCATION points the target to it. The
    folder before it stays until the publish after next, for readers that still hold it.
-#}

{% macro _file_format() -%}
    {{- return(config.get('file_format') or 'delta') -}}
{%- endmacro %}

{% macro _has_commits() -%}
    {{- return(healing_tables._file_format() in ['delta', 'iceberg']) -}}
{%- endmacro %}

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

{% macro _create_candidate(candidate, folder, sql) -%}
    {%- if folder is not none and config.get('partition_by') is not none -%}
        {#- partitions kept in the metastore would stay behind when the table moves to another folder; not set back,
            since other threads of this session may be at the same point -#}
        {%- do run_query('set spark.sql.hive.manageFilesourcePartitions = false') -%}
    {%- endif -%}
    {%- set query = sql -%}
    {%- if config.get('contract').enforced -%}
        {%- do get_assert_columns_equivalent(sql) -%}
        {%- set query = get_select_subquery(sql) -%}
    {%- endif -%}
    {{ healing_tables._create_table(candidate, query, folder) }}
{%- endmacro %}

{#- `create table` with what dbt's own table materialization honours. `folder` none: the format's own place. -#}
{% macro _create_table(relation, query, folder, is_target=false) -%}
    create {{ 'or replace ' if healing_tables._has_commits() }}table {{ relation }}
    using {{ healing_tables._file_format() }}
    {{ options_clause() }}
    {{ healing_tables._tblproperties(query) }}
    {{ partition_cols(label='partitioned by') if is_target or folder is not none }}
    {{ clustered_cols(label='clustered by') if is_target or folder is not none }}
    {% if folder is not none -%} location {{ healing_tables._text(folder) }} {%- elif is_target -%} {{ location_clause() }} {%- endif %}
    {{ comment_clause() if is_target }}
    as
    {{ query }}
{%- endmacro %}

{#- The configured properties; column names that Delta cannot write as they are need column mapping. -#}
{% macro _tblproperties(query) -%}
    {%- set properties = dict(config.get('tblproperties') or {}) -%}
    {%- if healing_tables._file_format() == 'delta' and 'delta.columnMapping.mode' not in properties -%}
        {%- for column in healing_tables._query_columns(query) if modules.re.search('[ ,;{}()\n\t=]', column) -%}
            {%- do properties.update({'delta.columnMapping.mode': 'name'}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if properties -%}
        tblproperties (
        {%- for name, value in properties.items() -%}
            {{ healing_tables._text(name) }} = {{ healing_tables._text(value) }}{{ ', ' if not loop.last }}
        {%- endfor -%}
        )
    {%- endif -%}
{%- endmacro %}

{% macro _query_columns(query) -%}
    {%- call statement('healing_tables_query_columns', fetch_result=true, auto_begin=false) -%}
        describe query {{ query }}
    {%- endcall -%}
    {%- set columns = [] -%}
    {%- for row in load_result('healing_tables_query_columns')['table'].rows -%}
        {%- do columns.append('null' if row[0] is none else row[0] | string) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The one statement that readers see. -#}
{% macro _publish(target, candidate, folder, existing, stored) -%}
    {%- if folder is none -%}
        {%- if existing is not none and stored.get('provider') != healing_tables._file_format() -%}
            {%- do healing_tables._drop_other(target, existing) -%}
        {%- endif -%}
        {{ healing_tables._create_table(target, 'select * from ' ~ candidate, none, is_target=true) }}
    {%- else -%}
        {{ healing_tables._point_to(target, candidate, folder, existing, stored) }}
    {%- endif -%}
{%- endmacro %}

{#- What stands at the target's name cannot be replaced in one step: a view, or a table of another kind. -#}
{% macro _drop_other(target, existing) -%}
    {%- do healing_tables._progress(
        target, 'the ' ~ existing.type ~ ' that has this name cannot become this table in one step: dropped, then created') -%}
    {%- do adapter.drop_relation(existing) -%}
{%- endmacro %}

{% macro _point_to(target, candidate, folder, existing, stored) -%}
    {%- set wanted = healing_tables._columns_of(candidate) -%}
    {%- set swappable = stored.get('provider') == healing_tables._file_format() and stored.get('type') == 'EXTERNAL' -%}
    {%- if swappable and not flags.FULL_REFRESH and healing_tables._columns_of(existing).items() | list == wanted.items() | list -%}
        alter table {{ target }} set location {{ healing_tables._text(folder) }}
    {%- else -%}
        {%- if existing is not none -%} {%- do healing_tables._drop_other(target, existing) -%} {%- endif -%}
        create table {{ target }} (
        {%- for name, type in wanted.items() -%}
            {{ healing_tables._id(name) }} {{ type }}{{ ', ' if not loop.last }}
        {%- endfor -%}
        )
        using {{ healing_tables._file_format() }}
        {{ options_clause() }}
        {{ healing_tables._tblproperties('select 1') }}
        {{ partition_cols(label='partitioned by') }}
        {{ clustered_cols(label='clustered by') }}
        location {{ healing_tables._text(folder) }}
        {{ comment_clause() }}
    {%- endif -%}
{%- endmacro %}

{#- {provider, type, location, previous} of a stored table; nothing for a view, or where nothing is stored. -#}
{% macro _details(relation) -%}
    {%- set found = {} -%}
    {%- if relation is none or not relation.is_table -%} {{ return(found) }} {%- endif -%}
    {%- for row in run_query('describe table extended ' ~ relation).rows -%}
        {%- if row[0] in ['Provider', 'Type', 'Location'] -%} {%- do found.update({row[0] | lower: row[1]}) -%} {%- endif -%}
        {%- if row[0] == 'Table Properties' -%}
            {%- set match = modules.re.search('healing_tables[.]previous_location=([^],]+)', row[1]) -%}
            {%- do found.update({'previous': match.group(1) if match else none}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- The candidate has done its work. Without commits its files are the target's; the folder before last is emptied. -#}
{% macro _after_publish(target, candidate, folder, stored) -%}
    {%- if folder is none -%}
        {%- set commit = run_query('describe history ' ~ target ~ ' limit 1').rows if healing_tables._file_format() == 'delta' else [] -%}
        {%- do healing_tables._progress(target, 'published' ~ (' in one commit, version ' ~ commit[0]['version'] if commit else '')) -%}
    {%- else -%}
        {%- do run_query('refresh table ' ~ target) -%}
        {%- do healing_tables._progress(target, 'published from ' ~ folder) -%}
        {%- set own = '/' ~ target.identifier ~ '__versions/' -%}
        {%- if own in stored.get('location', '') -%}
            {%- do run_query(
                'alter table ' ~ target ~ " set tblproperties ('healing_tables.previous_location' = "
                ~ healing_tables._text(stored.location) ~ ')') -%}
        {%- endif -%}
        {%- set before_last = stored.get('previous') or '' -%}
        {%- if own in before_last and before_last not in [folder, stored.get('location')] -%}
            {%- do run_query(
                'insert overwrite directory ' ~ healing_tables._text(before_last) ~ ' using ' ~ healing_tables._file_format()
                ~ ' select 1 as emptied where false') -%}
        {%- endif -%}
    {%- endif -%}
    {%- do run_query('drop table if exists ' ~ candidate) -%}
{%- endmacro %}

{#- dbt writes column comments only where file_format is spelled out. -#}
{% macro _persist_docs(target) -%}
    {%- do persist_docs(target, model) -%}
    {%- if config.get('file_format') is none and config.persist_column_docs() -%}
        {%- set columns = healing_tables._columns_of(target) -%}
        {%- for name, column in model.columns.items() if healing_tables._find(name, columns) is not none and column.description -%}
            {%- do run_query(
                'alter table ' ~ target ~ ' alter column ' ~ healing_tables._id(name) ~ ' comment '
                ~ healing_tables._text(column.description)) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
