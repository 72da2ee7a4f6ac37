{#- Statements without a result, SQL scripts, and settings of the session. -#}

{#- The macros of dbt-spark are there in every adapter that builds on it. -#}
{% macro _check_adapter() -%}
    {%- if options_clause is not defined -%}
        {%- do healing_tables._raise_error('healing_tables runs on Spark, with dbt-spark or an adapter that builds on '
            ~ 'it (dbt-databricks, dbt-glue, dbt-fabricspark); target ' ~ target.name ~ ' uses the adapter '
            ~ adapter.type() ~ '. Nothing was written.', []) -%}
    {%- endif -%}
{%- endmacro %}

{#- Run a statement that returns no rows. run_query would fetch rows, which fails in some adapters. -#}
{% macro _run(statement_text) -%}
    {%- if statement_text is none -%} {{ return(none) }} {%- endif -%}
    {%- call statement(auto_begin=false) -%} {{ statement_text }} {%- endcall -%}
{%- endmacro %}

{#- `session`: see _session_settings(); the answer is cached in it. dbt v2 sends each part of a script on its own. -#}
{% macro _has_scripts(session={}) -%}
    {%- if healing_tables._is_dbt_v2() -%} {{ return(false) }} {%- endif -%}
    {%- set name = 'spark.sql.scripting.enabled' -%}
    {%- if name not in session -%} {%- do session.update({name: healing_tables._session_conf(name)}) -%} {%- endif -%}
    {{- return(session[name] | lower == 'true') -}}
{%- endmacro %}

{#-
    Run a statement as a SQL script: Jinja cannot catch an error, a script can. `handlers`: {name: condition of a
    handler}. Returns the name of the handler that ended the statement, or none. Other errors are raised.
-#}
{% macro _run_script(name, statement_text, handlers) -%}
    {%- call statement(name, fetch_result=true) -%}
begin
    {%- for handler, condition in handlers.items() %}
    declare exit handler for {{ condition }}
    begin
        select {{ healing_tables._string_literal(handler) }} as caught;
    end;
    {%- endfor %}
    {{ statement_text }};
    select cast(null as string) as caught;
end
    {%- endcall -%}
    {{- return(load_result(name)['table'].rows[0]['caught']) -}}
{%- endmacro %}

{% macro _run_ignoring_errors(statement_text) -%}
    {%- do healing_tables._run_script('ignoring_errors', statement_text, {'error': 'sqlexception'}) -%}
{%- endmacro %}

{#- A row of a result as a map. `row.dict()` is empty in dbt v2. -#}
{% macro _row_map(row) -%}
    {%- set cells = {} -%}
    {%- for name in row.keys() -%} {%- do cells.update({name: row[name]}) -%} {%- endfor -%}
    {{- return(cells) -}}
{%- endmacro %}

{#- The single row of a query as a map, with numbers as integers. -#}
{% macro _read_figures(query) -%}
    {%- set figures = {} -%}
    {%- for name, value in healing_tables._row_map(run_query(query).rows[0]).items() -%}
        {%- do figures.update({name: value if value is none or value is string else value | int}) -%}
    {%- endfor -%}
    {{- return(figures) -}}
{%- endmacro %}

{#- The value of a setting of the session; '<undefined>' if it has none, or if the platform has no SET. -#}
{% macro _session_conf(name) -%}
    {%- do healing_tables._check_adapter() -%}
    {{- return(run_query('set ' ~ healing_tables._quoted(name)).rows[0][1] if healing_tables._platform().has_set
        else '<undefined>') -}}
{%- endmacro %}

{#-
    The settings of the session and its profile, {name: value}, in one query; {} if the platform has no SET. With a
    comment that dbt appends, that query would be a syntax error: then the settings that this package reads, one by one.
-#}
{% macro _session_settings() -%}
    {%- do healing_tables._check_adapter() -%}
    {%- set settings = {} -%}
    {%- if not healing_tables._platform().has_set -%} {{ return(settings) }} {%- endif -%}
    {%- if healing_tables._appends_comments() -%}
        {%- set catalog = run_query('select current_catalog() as catalog').rows[0]['catalog'] -%}
        {%- for name in ['spark.sql.extensions', 'spark.sql.defaultCatalog', 'spark.sql.catalog.spark_catalog',
            'spark.sql.catalog.' ~ catalog, 'spark.databricks.clusterUsageTags.clusterId',
            'spark.sql.scripting.enabled'] | unique -%}
            {%- set value = healing_tables._session_conf(name) -%}
            {%- do settings.update({name: value}) if value != '<undefined>' -%}
        {%- endfor -%}
        {{- return(settings) -}}
    {%- endif -%}
    {%- for row in run_query('set').rows -%} {%- do settings.update({row[0]: row[1] | string}) -%} {%- endfor -%}
    {{- return(settings) -}}
{%- endmacro %}

{#- Whether dbt puts its comment behind each statement: `query-comment: {append: true}`. -#}
{% macro _appends_comments() -%}
    {{- return(adapter.config is defined and adapter.config.query_comment is defined
        and adapter.config.query_comment.append is sameas true) -}}
{%- endmacro %}

{#- Change a setting of the session, if the platform has SET and `session` does not already have the value. It is
    quoted, so that a comment that dbt appends does not become part of the value. -#}
{% macro _set_session_conf(name, value, session={}) -%}
    {%- do healing_tables._run('set ' ~ healing_tables._quoted(name) ~ ' = ' ~ healing_tables._quoted(value))
        if healing_tables._platform().has_set and session.get(name) != value -%}
{%- endmacro %}

{% macro _spark_version() -%}
    {{- return(run_query('select version() as version').rows[0]['version'].split(' ')[0]) -}}
{%- endmacro %}
