{#-
    <log_schema>.healing_log: one row per build, merge, capture and repair, and per attempt that was retried.
    A new column: _ensure_log does not add it to logs that exist.

    dimension    | mode    | status    | rows_added | rows_changed | rows_removed | rows_unchanged | finished_at
    dim_customer | rebuild | published | 4          | 0            | 0            | 0              | 2024-03-01 02:00
    dim_customer | heal    | unchanged | 0          | 0            | 0            | 4              | 2024-03-02 02:00
-#}
{% macro _log_columns() -%}
    {{- return({
        'dimension': 'string', 'relation': 'string', 'mode': 'string', 'status': 'string', 'reason': 'string',
        'publish': 'string', 'rows_added': 'bigint', 'rows_changed': 'bigint', 'rows_removed': 'bigint',
        'rows_unchanged': 'bigint', 'keys_affected': 'bigint', 'rows_set_aside': 'bigint', 'ties_resolved': 'bigint',
        'checks': 'map<string,bigint>', 'high_water_marks': 'map<string,string>', 'spec': 'string',
        'table_id': 'string',
        'version_before': 'bigint', 'version_after': 'bigint', 'started_at': 'timestamp_ltz',
        'finished_at': 'timestamp_ltz',
        'invocation_id': 'string'}) -}}
{%- endmacro %}

{#- The log of a table, in the table's schema. With `log_schema`, several schemas share one log. -#}
{% macro _log_of(relation, log_schema) -%}
    {{- return(api.Relation.create(
        database=relation.database, schema=log_schema or relation.schema, identifier='healing_log', type='table')) -}}
{%- endmacro %}

{#-
    Create the log if it does not exist, before the build does anything. If several runs create it at the same time,
    Delta accepts only one; the others wait until the table exists. Of the threads of a run, one creates it. `is_known`:
    this package has built the target, so an existing table of that name is the log.
-#}
{% macro _ensure_log(target, log, format_name=none, is_known=false) -%}
    {#- check dbt's cache first: it has the tables that existed when the run started -#}
    {%- if adapter.get_relation(database=log.database, schema=log.schema, identifier=log.identifier) is not none -%}
        {{- return(healing_tables._check_log(log) if not is_known) -}}
    {%- endif -%}
    {%- do healing_tables._ensure_schema(target, log) -%}
    {%- if healing_tables._table_exists(log) -%} {{ return(healing_tables._check_log(log)) }} {%- endif -%}
    {%- set format = healing_tables._side_table_format() if format_name is none
        else healing_tables._format(format_name) -%}
    {%- set columns = [] -%}
    {%- for name, type in healing_tables._log_columns().items() -%}
        {%- do columns.append(name ~ ' ' ~ type) -%}
    {%- endfor -%}
    {%- set statement_text = 'create table if not exists ' ~ log ~ ' (' ~ (columns | join(', ')) ~ ') '
        ~ healing_tables._log_storage(format) ~ ' ' ~ healing_tables._properties_clause(format.properties.log) -%}
    {#- all threads of a run have the same `graph` -#}
    {%- set me = model.unique_id if model is defined else invocation_id -%}
    {%- set is_first = graph.setdefault('healing_tables ' ~ log, me) == me -%}
    {%- set has_scripts = healing_tables._has_scripts() -%}
    {%- do healing_tables._run_ignoring_errors(statement_text) if is_first and has_scripts -%}
    {%- do healing_tables._run(statement_text) if (is_first and not has_scripts)
        or not healing_tables._wait_for_table(log, 5 if is_first else 30, has_scripts) -%}
{%- endmacro %}

{#-
    Spark writes parquet and ORC by way of one folder for each table: of two inserts at the same time, one fails, or its
    row is lost without an error. What Hive writes, such as RCFile, has a folder for each insert.
-#}
{% macro _log_storage(format) -%}
    {{- return('stored as rcfile' if not format.has_commits
        and healing_tables._session_conf('spark.sql.catalogImplementation') == 'hive' else 'using ' ~ format.name) -}}
{%- endmacro %}

{#- Whether a table exists, or is created by another thread or run within so many seconds. The pauses between the
    look-ups need a function that some platforms refuse, and so a script. -#}
{% macro _wait_for_table(relation, seconds, has_scripts) -%}
    {%- set end = modules.datetime.datetime.now() + modules.datetime.timedelta(seconds=seconds) -%}
    {%- set found = [] -%}
    {%- for number in range(seconds * 100) -%}
        {%- if not found and modules.datetime.datetime.now() < end -%}
            {%- if healing_tables._table_exists(relation) -%} {%- do found.append(true) -%}
            {%- elif has_scripts -%}
                {%- do healing_tables._run_ignoring_errors("select java_method('java.lang.Thread', 'sleep', 250L)") -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(found | length > 0) -}}
{%- endmacro %}

{#- Raise an error if a table of that name is not the log. -#}
{% macro _check_log(log) -%}
    {%- set columns = healing_tables._columns_of(log) -%}
    {%- set mistakes = [] -%}
    {%- if healing_tables._missing_names(healing_tables._log_columns(), columns) -%}
        {%- do healing_tables._mistake(
            mistakes, 'the table ' ~ log, 'the log of this package, or no table of that name',
            'a table with the columns ' ~ (columns | join(', ')),
            'rename that table, or set log_schema to another schema') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(config.get('materialized') or 'repair', mistakes) -%}
{%- endmacro %}

{#- Spark's names are case-insensitive, so a row may have the name in a different case. -#}
{% macro _log_condition(relation) -%}
    {{- return('lower(relation) = lower(' ~ healing_tables._string_literal(healing_tables._plain_names(relation))
        ~ ')') -}}
{%- endmacro %}

{#- The statement that inserts a row. `row`: column to value, others are NULL; a number may be an aggregate of the rows
    of `counted_in`. -#}
{% macro _log_insert(log, row, counted_in=none) -%}
    {%- set names = [] -%}
    {%- set values = [] -%}
    {%- for name, type in healing_tables._log_columns().items() -%}
        {%- do names.append(name) -%}
        {%- do values.append(healing_tables._log_value(type, row.get(name)) ~ ' as ' ~ name) -%}
    {%- endfor -%}
    {{- return('insert into ' ~ log ~ ' (' ~ (names | join(', ')) ~ ') select ' ~ (values | join(', '))
        ~ (' from ' ~ counted_in if counted_in is not none)) -}}
{%- endmacro %}

{% macro _log_value(type, value) -%}
    {#- in dbt v2, a moment is a mapping, too -#}
    {%- set is_map = type.startswith('map<') -%}
    {%- if value is none or value is undefined or (is_map and not value) -%}
        {{- return('cast(null as ' ~ type ~ ')') -}}
    {%- elif is_map -%}
        {%- set entries = [] -%}
        {%- for key, entry in value.items() -%}
            {%- do entries.append(healing_tables._string_literal(key)) -%}
            {%- do entries.append(healing_tables._log_value(type[11:-1], entry)) -%}
        {%- endfor -%}
        {{- return('map(' ~ (entries | join(', ')) ~ ')') -}}
    {%- elif type == 'string' -%} {{ return(healing_tables._string_literal(value)) }}
    {%- elif type == 'timestamp_ltz' -%} {{ return("timestamp_ltz '" ~ value ~ "'") }}
    {%- else -%} {{ return('cast(' ~ value ~ ' as ' ~ type ~ ')') }}
    {%- endif -%}
{%- endmacro %}
