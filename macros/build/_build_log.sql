{#-
    <log_schema>.healing_log: one row per build, merge and capture, also of one that was refused or had nothing to do.

    dimension    | mode    | status    | rows_added | rows_changed | rows_removed | rows_unchanged | finished_at
    dim_customer | rebuild | published | 4          | 0            | 0            | 0              | 2024-03-01 02:00
    dim_customer | heal    | unchanged | 0          | 0            | 0            | 4              | 2024-03-02 02:00
-#}
{% macro _log_columns() -%}
    {{- return({
        'dimension': 'string', 'relation': 'string', 'mode': 'string', 'status': 'string', 'reason': 'string',
        'publish': 'string', 'rows_added': 'bigint', 'rows_changed': 'bigint', 'rows_removed': 'bigint',
        'rows_unchanged': 'bigint', 'keys_affected': 'bigint', 'rows_set_aside': 'bigint', 'ties_resolved': 'bigint',
        'checks': 'map<string,bigint>', 'high_water_marks': 'map<string,string>', 'spec': 'string', 'table_id': 'string',
        'version_before': 'bigint', 'version_after': 'bigint', 'started_at': 'timestamp_ltz', 'finished_at': 'timestamp_ltz',
        'invocation_id': 'string'}) -}}
{%- endmacro %}

{#- What the row of a merge or a capture begins with. -#}
{% macro _begin_other(target, mode, existing) -%}
    {%- set log = healing_tables._ready_log(target, healing_tables._log_of(target, healing_tables._option('log_schema', none)), 'delta') -%}
    {{- return({
        'dimension': target.identifier, 'relation': target | string, 'mode': mode, 'log': log, 'side_tables': [],
        'version_before': healing_tables._table_version(existing, healing_tables._details(existing)),
        'started_at': healing_tables._now(), 'invocation_id': invocation_id}) -}}
{%- endmacro %}

{#- The log beside a table; `log_schema` puts the logs of several schemas into one place. -#}
{% macro _log_of(relation, log_schema) -%}
    {{- return(api.Relation.create(
        database=relation.database, schema=log_schema or relation.schema, identifier='healing_log', type='table')) -}}
{%- endmacro %}

{% macro _is_there(relation) -%}
    {{- return(run_query('show tables in ' ~ relation.without_identifier() ~ ' like '
        ~ healing_tables._text(relation.identifier)).rows | length > 0) -}}
{%- endmacro %}

{#- The schema of a table beside the target; that of the target dbt has made. -#}
{% macro _ready_schema(target, beside) -%}
    {%- if beside.schema != target.schema -%} {%- do run_query('create schema if not exists ' ~ beside.without_identifier()) -%} {%- endif -%}
{%- endmacro %}

{#-
    The log, made if it is missing, before the build does anything. Of the threads of a run the first to ask makes it,
    the others wait: Delta refuses one of two that make a table at once.
-#}
{% macro _ready_log(target, log, format=none) -%}
    {%- do healing_tables._ready_schema(target, log) -%}
    {%- if healing_tables._is_there(log) -%}
        {%- do healing_tables._check_log(log) -%}
        {{- return(log) -}}
    {%- endif -%}
    {%- set owner = 'healing_tables ' ~ log -%}
    {%- set builder = model.unique_id if model is defined and model.unique_id is defined else invocation_id -%}
    {%- set made = [] -%}
    {%- if graph.setdefault(owner, builder) != builder -%}
        {%- for _ in range(500) if not made -%}
            {%- if healing_tables._is_there(log) -%} {%- do made.append(true) -%} {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if not made -%}
        {%- set columns = [] -%}
        {%- for name, type in healing_tables._log_columns().items() -%} {%- do columns.append(name ~ ' ' ~ type) -%} {%- endfor -%}
        {#- other formats do not bear two writers at once -#}
        {%- set format = format or ('delta' if healing_tables._has_delta() else healing_tables._file_format()) -%}
        {#- each build adds a file with one row; Delta puts them together now and then -#}
        {%- do run_query('create table if not exists ' ~ log ~ ' (' ~ (columns | join(', ')) ~ ') using ' ~ format
            ~ (" tblproperties ('delta.autoOptimize.autoCompact' = 'true')" if format == 'delta' else '')) -%}
    {%- endif -%}
    {{- return(log) -}}
{%- endmacro %}

{#- A table of that name that is no log, once per run. -#}
{% macro _check_log(log) -%}
    {%- set checked = 'healing_tables checked ' ~ log -%}
    {%- if checked in graph -%} {{ return(none) }} {%- endif -%}
    {%- set columns = healing_tables._columns_of(log) -%}
    {%- set mistakes = [] -%}
    {%- if healing_tables._missing(healing_tables._log_columns(), columns) -%}
        {%- do healing_tables._mistake(
            mistakes, 'the table ' ~ log, 'the log of this package, or no table of that name', 'a table with the columns ' ~ (columns | join(', ')),
            'rename that table, or set log_schema to another schema') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(config.get('materialized') or 'repair', mistakes) -%}
    {%- do graph.update({checked: true}) -%}
{%- endmacro %}

{#- Whether the session knows Delta tables, also where the model at work is none. -#}
{% macro _has_delta() -%}
    {{- return(healing_tables._has_commits() or 'delta' in healing_tables._setting('spark.sql.catalog.spark_catalog') | lower) -}}
{%- endmacro %}

{#- Spark's names have no case; who wrote a row may have spelled one in another. -#}
{% macro _is_log_of(relation) -%}
    {{- return('lower(relation) = lower(' ~ healing_tables._text(relation) ~ ')') -}}
{%- endmacro %}

{#- One row, one commit. `row`: what is known of the columns; the others are NULL. -#}
{% macro _write_log(log, row) -%}
    {%- set names = [] -%}
    {%- set values = [] -%}
    {%- for name, type in healing_tables._log_columns().items() -%}
        {%- do names.append(name) -%}
        {%- do values.append(healing_tables._log_value(type, row.get(name)) ~ ' as ' ~ name) -%}
    {%- endfor -%}
    {%- do run_query('insert into ' ~ log ~ ' (' ~ (names | join(', ')) ~ ') select ' ~ (values | join(', '))) -%}
{%- endmacro %}

{% macro _log_value(type, value) -%}
    {%- if value is none or value is undefined or (value is mapping and not value) -%}
        {{- return('cast(null as ' ~ type ~ ')') -}}
    {%- elif value is mapping -%}
        {%- set entries = [] -%}
        {%- for key, entry in value.items() -%}
            {%- do entries.append(healing_tables._text(key)) -%}
            {%- do entries.append(healing_tables._log_value(type[11:-1], entry)) -%}
        {%- endfor -%}
        {{- return('map(' ~ (entries | join(', ')) ~ ')') -}}
    {%- elif type == 'string' -%} {{ return(healing_tables._text(value)) }}
    {%- elif type == 'timestamp_ltz' -%} {{ return("timestamp_ltz '" ~ value ~ "'") }}
    {%- else -%} {{ return('cast(' ~ value ~ ' as ' ~ type ~ ')') }}
    {%- endif -%}
{%- endmacro %}

{% macro _now() -%}
    {{- return(modules.datetime.datetime.now(modules.pytz.utc)) -}}
{%- endmacro %}

{#- The newest commit of a Delta table, or none. -#}
{% macro _table_version(relation, details) -%}
    {%- if details.get('provider') != 'delta' -%} {{ return(none) }} {%- endif -%}
    {{- return(healing_tables._newest_version(relation)) -}}
{%- endmacro %}

{% macro _newest_version(relation) -%}
    {{- return(run_query('describe history ' ~ relation ~ ' limit 1').rows[0]['version'] | int) -}}
{%- endmacro %}
