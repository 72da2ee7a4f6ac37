{#-
    Publishing in one step. Delta: the rows that differ are merged, or the target is replaced, in one commit. For
    parquet and ORC see folders.sql.
-#}

{% macro _file_format() -%}
    {{- return(config.get('file_format') or 'delta') -}}
{%- endmacro %}

{% macro _has_commits() -%}
    {{- return(healing_tables._file_format() == 'delta') -}}
{%- endmacro %}

{% macro _create_candidate(candidate, folder, sql) -%}
    {%- if folder is not none and config.get('partition_by') is not none -%}
        {#- partitions kept in the metastore would stay behind when the table moves to another folder; not set back,
            since other threads of this session may be at the same point -#}
        {%- do healing_tables._set('spark.sql.hive.manageFilesourcePartitions', 'false') -%}
    {%- endif -%}
    {%- set query = sql -%}
    {%- if config.get('contract').enforced -%}
        {%- do get_assert_columns_equivalent(sql) -%}
        {%- set query = get_select_subquery(sql) -%}
    {%- endif -%}
    {{ healing_tables._create_table(candidate, query, folder) }}
{%- endmacro %}

{#-
    `create table` with what dbt's own table materialization honours. `folder` none: the format's own place. `replace`
    false: a table that is there stays.
-#}
{% macro _create_table(relation, query, folder, is_target=false, properties={}, replace=true) -%}
    create {{ 'or replace ' if healing_tables._has_commits() and replace }}table {{ 'if not exists ' if not replace }}{{ relation }}
    using {{ healing_tables._file_format() }}
    {{ options_clause() }}
    {{ healing_tables._tblproperties(query, properties) }}
    {{ partition_cols(label='partitioned by') if is_target or folder is not none }}
    {{ clustered_cols(label='clustered by') if is_target or folder is not none }}
    {% if folder is not none -%} location {{ healing_tables._text(folder) }} {%- elif is_target -%} {{ location_clause() }} {%- endif %}
    {{ comment_clause() if is_target }}
    as
    {{ query }}
{%- endmacro %}

{#- The configured properties; column names that Delta cannot write as they are need column mapping. -#}
{% macro _tblproperties(query, more) -%}
    {%- set properties = dict(healing_tables._wanted_properties(), **more) -%}
    {%- if healing_tables._file_format() == 'delta' and 'delta.columnMapping.mode' not in properties -%}
        {%- if healing_tables._needs_mapping(healing_tables._described('describe query ' ~ query)) -%}
            {%- do properties.update({'delta.columnMapping.mode': 'name'}) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if properties -%}
        tblproperties (
        {%- for name, value in properties.items() -%}
            {{ healing_tables._text(name) }} = {{ healing_tables._text(value) }}{{ ', ' if not loop.last }}
        {%- endfor -%}
        )
    {%- endif -%}
{%- endmacro %}

{#- Whether one of the names has a character that Delta cannot write as it is. -#}
{% macro _needs_mapping(names) -%}
    {%- for name in names if modules.re.search('[ ,;{}()\n\t=]', name) -%} {{ return(true) }} {%- endfor -%}
    {{- return(false) -}}
{%- endmacro %}

{#- The one statement that readers see. -#}
{% macro _publish(target, candidate, folder, about, existing, stored, change) -%}
    {%- if change.how == 'merge' -%}
        {{ healing_tables._merge_difference(target, change) }}
    {%- elif folder is none -%}
        {%- if existing is not none and (stored.get('provider') != healing_tables._file_format() or about.build.keeps_other) -%}
            {%- do healing_tables._create_beside(target, candidate, about.build, existing) -%}
        {%- endif -%}
        {{ healing_tables._create_table(about.build.created, change.rows, none, true, {'healing_tables.spec': healing_tables._stored_spec(about)}) }}
    {%- else -%}
        {{ healing_tables._point_to(target, candidate, folder, about.build, existing, stored) }}
    {%- endif -%}
{%- endmacro %}

{#- {provider, type, location, previous, partitions, has_change_feed,
    widens_types, retention} of a stored table; nothing for a view, or where nothing is stored. -#}
{% macro _details(relation) -%}
    {%- set found = {} -%}
    {%- if relation is none or not relation.is_table -%} {{ return(found) }} {%- endif -%}
    {%- set section = namespace(name='') -%}
    {%- do found.update({'partitions': []}) -%}
    {%- for row in run_query('describe table extended ' ~ relation).rows -%}
        {%- if not row[0] or row[0] in ['# Partition Information', '# Detailed Table Information'] -%}
            {%- set section.name = row[0] or '' -%}
        {%- elif section.name == '# Partition Information' and row[0] != '# col_name' -%}
            {%- do found.partitions.append(row[0]) -%}
        {%- elif row[0] in ['Provider', 'Type', 'Location'] -%}
            {%- do found.update({row[0] | lower: row[1]}) -%}
        {%- elif row[0] == 'Table Properties' -%}
            {%- set match = modules.re.search('healing_tables[.]previous_location=([^],]+)', row[1]) -%}
            {%- set kept = modules.re.search('delta[.]deletedFileRetentionDuration=(?:interval +)?([^],]+)', row[1]) -%}
            {%- do found.update({
                'has_change_feed': 'delta.enablechangedatafeed=true' in row[1] | lower,
                'widens_types': 'delta.enabletypewidening=true' in row[1] | lower, 'retention': kept.group(1) if kept else '7 days',
                'previous': match.group(1) if match else none}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- What is left to do when the target is as it should be: its row in the log. The candidate has done its work. -#}
{% macro _after_publish(target, candidate, folder, about, existing, stored, change) -%}
    {%- do healing_tables._take_name(target, about.build, existing) -%}
    {%- if folder is not none -%} {%- do healing_tables._after_pointing(target, folder, stored, change) -%} {%- endif -%}
    {%- set build = about.build -%}
    {%- set details = {'provider': healing_tables._file_format()} -%}
    {%- if change.how == 'unchanged' -%} {%- set version = build.version_before -%}
    {%- elif build.get('version_seen') is not none -%} {%- set version = build.version_seen -%}
    {%- else -%} {%- set version = healing_tables._table_version(target, details) -%}
    {%- endif -%}
    {%- if change.how == 'unchanged' -%}
        {%- set how = 'unchanged, nothing to publish' -%}
    {%- elif folder is not none -%}
        {%- set how = 'published from ' ~ folder -%}
    {%- elif version is not none -%}
        {%- set how = 'published in one commit, version ' ~ version ~ (', by a merge' if change.how == 'merge' else ', as a whole') -%}
    {%- endif -%}
    {%- set table_id = build.table_id -%}
    {%- if healing_tables._can_heal() and (table_id is none or change.how == 'overwrite') -%}
        {%- set table_id = healing_tables._table_id(target, details) -%}
    {%- endif -%}
    {%- do healing_tables._progress(target, (how or 'published') ~ (': ' ~ change.told if change.told)) -%}
    {%- do healing_tables._end_build(about, 'unchanged' if change.how == 'unchanged' else 'published', dict(
        change.row, publish=change.how if change.how != 'unchanged' else none, version_after=version,
        table_id=table_id)) -%}
    {%- do run_query('drop table if exists ' ~ candidate) -%}
{%- endmacro %}

{#- The build's row in the log; of what it has made only the candidate may stay. -#}
{% macro _end_build(about, status, more) -%}
    {%- do healing_tables._write_log(
        about.build.log, dict(about.build, status=status, finished_at=healing_tables._now(), **more)) -%}
    {%- do healing_tables._drop_side_tables(about.build) -%}
{%- endmacro %}
