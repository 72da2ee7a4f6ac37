{#-
    Check Spark, its settings and the catalog of this profile, write and drop a small table, and print what to change:

    what           | found     | note
    -------------- | --------- | ------------------------------------------------------------------
    dbt-core       | 1.12.0    |
    dbt-spark      | 1.11.0    |
    Spark          | 4.2.0     |
    metastore      | in-memory | the tables are lost when Spark stops: start it with Hive support
-#}
{% macro check_setup() -%}
    {%- set mistakes, rows = [], [] -%}
    {%- do healing_tables._check_versions(rows) -%}
    {%- do healing_tables._check_spark(mistakes, rows) -%}
    {%- do healing_tables._check_settings(rows) if healing_tables._platform().has_set -%}
    {%- set format = healing_tables._side_table_format() -%}
    {%- do format.check_session(mistakes, healing_tables._session_settings()) -%}
    {#- printed before any error, since a Spark error ends the operation -#}
    {%- do healing_tables._print('healing_tables: the set-up of target ' ~ target.name) -%}
    {%- do healing_tables._print_table(['what', 'found', 'note'], rows, longest=1000) -%}
    {%- do healing_tables._raise_mistakes('check_setup', mistakes) -%}
    {%- set engine = healing_tables._try_table(format) -%}
    {%- do healing_tables._print('healing_tables.check_setup: a ' ~ format.name ~ ' table in ' ~ target.schema
        ~ (' (' ~ engine ~ ')' if engine is not none) ~ ' was created, ' ~ ('merged into, ' if format.has_commits)
        ~ 'read and dropped; this set-up works') -%}
{%- endmacro %}

{% macro _check_spark(mistakes, rows) -%}
    {%- set version = healing_tables._spark_version() -%}
    {%- do rows.append(['Spark', version, '']) -%}
    {%- set parts = version.split('.') -%}
    {%- if [parts[0] | int, parts[1] | int] < [3, 5] -%}
        {%- do healing_tables._mistake(mistakes, 'Spark', '3.5 or newer', version, 'update Spark') -%}
    {%- endif -%}
    {%- do rows.append(['time zone of the session', run_query('select current_timezone() as zone').rows[0]['zone'],
        'it affects how dbt show prints timestamps, and keys of the strategy dbt_utils']) -%}
{%- endmacro %}

{#- Only the library, if dbt has it, knows the versions of other packages. -#}
{% macro _check_versions(rows) -%}
    {%- set library, adapter_name = 'dbt-healing-tables', 'dbt-' ~ adapter.type() -%}
    {%- set parser = 'dbt-core-experimental-parser' -%}
    {%- set versions = adapter.healing_tables_versions([library, adapter_name, parser])
        if adapter.healing_tables_versions is defined else {} -%}
    {%- set package = healing_tables._package_version() -%}
    {%- do rows.append(['dbt-core', dbt_version, 'pin dbt-core-experimental-parser to 2.0.0a4: this version of dbt '
        'requires it, and pip would take its newest pre-release'
        if dbt_version == '1.12.0' and versions[parser] != '2.0.0a4' else '']) -%}
    {%- do rows.append([adapter_name, versions[adapter_name] or 'see dbt --version', '']) -%}
    {%- do rows.append(['this package', package, '']) -%}
    {%- set mistakes, notes = [], [] -%}
    {%- do healing_tables._check_can_merge(mistakes) -%}
    {%- do notes.append('optional, for Python models of healing_merge: ' ~ mistakes[0].remedy) if mistakes -%}
    {#- a library without that method is older than the package -#}
    {%- do notes.append('install the library and the package from the same commit')
        if (versions[library] or package) != package or (not versions and not mistakes) -%}
    {%- do rows.append(['Python library', versions[library] or ('not installed' if mistakes else 'unknown'),
        notes | join('; ')]) -%}
{%- endmacro %}

{% macro _package_version() -%}
    {#- dbt v2 does not have it -#}
    {%- set config = adapter.config if adapter.config is defined else {} -%}
    {%- set found = config if config.project_name == 'healing_tables'
        else (config.dependencies or {}).get('healing_tables', {}) -%}
    {{- return(found.version or 'unknown') -}}
{%- endmacro %}

{#- Settings whose Spark defaults cost time or lose tables. -#}
{% macro _check_settings(rows) -%}
    {%- set is_local = healing_tables._session_conf('spark.master').startswith('local') -%}
    {%- set catalog = healing_tables._session_conf('spark.sql.catalogImplementation') -%}
    {%- do rows.append(['metastore', catalog,
        'the tables are lost when Spark stops: start it with Hive support' if catalog == 'in-memory' else '']) -%}
    {%- do rows.append(['warehouse', healing_tables._session_conf('spark.sql.warehouse.dir'), '']) -%}
    {%- set has_scripts = healing_tables._has_scripts() -%}
    {%- do rows.append(['SQL scripts', 'on' if has_scripts else 'off',
        '' if has_scripts else 'a build that loses a race fails with Delta\'s error and does not retry']) -%}
    {%- for name, default, advice in [
            ('spark.sql.shuffle.partitions', 200, '4'), ('spark.databricks.delta.snapshotPartitions', 50, '2')]
        if is_local -%}
        {%- set value = healing_tables._session_conf(name) -%}
        {%- set is_default = value in ['<undefined>', default | string] -%}
        {%- do rows.append([name, default if is_default else value,
            'on one machine ' ~ advice ~ ' is quicker, by seconds for each statement' if is_default else '']) -%}
    {%- endfor -%}
{%- endmacro %}

{% macro _try_table(format) -%}
    {%- set table = api.Relation.create(database=target.database or none, schema=target.schema,
        identifier='healing_tables_check_setup', type='table') -%}
    {%- do healing_tables._print('healing_tables.check_setup: creating, changing and dropping ' ~ table ~ ' ...') -%}
    {%- do healing_tables._run('create schema if not exists ' ~ table.without_identifier()) -%}
    {%- do healing_tables._run('drop table if exists ' ~ table) -%}
    {%- do healing_tables._run('create table ' ~ table ~ ' using ' ~ format.name ~ ' as select 1 as id') -%}
    {%- if format.has_commits -%}
        {%- do healing_tables._run('merge into ' ~ table ~ ' t using (select 2 as id) s on t.id = s.id '
            ~ 'when not matched then insert *') -%}
    {%- endif -%}
    {%- do run_query('select count(*) as n from ' ~ table) -%}
    {%- set engine = format.commits.engine(table) -%}
    {%- do healing_tables._run('drop table ' ~ table) -%}
    {{- return(engine) -}}
{%- endmacro %}
