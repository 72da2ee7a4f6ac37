{#-
    Print the last builds, merges and captures of a dimension, the newest first; without a dimension, of all in the log:

    finished (UTC)      | mode    | status    | publish   | added | changed | removed | unchanged | set aside |
                        seconds | version | reason
    2024-03-02 02:00:07 | heal    | unchanged | NULL      | 0     | 0       | 0       | 4         | NULL      |
                        3.1     | 0       | NULL
    2024-03-01 02:00:11 | rebuild | published | overwrite | 4     | 0       | 0       | 0         | 0         |
                        8.4     | 0       | NULL
-#}
{% macro history(dimension=none, limit=10) -%}
    {%- set mistakes = [] -%}
    {%- if limit is not integer or limit < 1 -%}
        {%- do healing_tables._mistake(mistakes, 'limit', 'how many builds, from 1 on', limit | tojson,
            'write a number') -%}
        {%- do healing_tables._raise_mistakes('history', mistakes) -%}
    {%- endif -%}
    {%- if dimension is none -%}
        {%- set relation = none -%}
        {%- set log = healing_tables._log_of(target, healing_tables._project_options().get('log_schema')) -%}
    {%- else -%}
        {%- set relation = healing_tables._parse_relation_name(dimension) -%}
        {%- set log = healing_tables._log_of(relation, healing_tables._log_schema_of(relation)) -%}
    {%- endif -%}
    {%- set found = [] -%}
    {%- if load_relation(log) is not none -%}
        {%- set found = run_query(
            'select ' ~ ('dimension, ' if relation is none)
            ~ "date_format(to_utc_timestamp(finished_at, current_timezone()), 'yyyy-MM-dd HH:mm:ss') as finished, "
            "mode, status, publish,"
            ~ ' rows_added, rows_changed, rows_removed, rows_unchanged, rows_set_aside,'
            ~ ' round((unix_micros(finished_at) - unix_micros(started_at)) / 1000000, 1) as seconds, version_after, '
            'reason from ' ~ log
            ~ (' where ' ~ healing_tables._log_condition(relation) if relation is not none)
            ~ ' order by finished_at desc limit ' ~ limit).rows -%}
    {%- endif -%}
    {%- if not found -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a dimension with a row in ' ~ log, dimension or 'none: the log has no row',
            "build it, or correct the name; if its log is elsewhere, set vars.healing_tables.log_schema") -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('history', mistakes) -%}
    {%- do healing_tables._print('healing_tables: the last builds of '
        ~ (relation if relation is not none else 'all dimensions in ' ~ log)) -%}
    {%- do healing_tables._print_table(
        (['dimension'] if relation is none else [])
        + ['finished (UTC)', 'mode', 'status', 'publish', 'added', 'changed', 'removed', 'unchanged', 'set aside',
            'seconds', 'version', 'reason'], found) -%}
{%- endmacro %}

{#- The log_schema of the model, or else of the project. -#}
{% macro _log_schema_of(relation) -%}
    {%- set own = healing_tables._options_of_node(healing_tables._node_of_table(relation)).get('log_schema') -%}
    {{- return(own or healing_tables._project_options().get('log_schema')) -}}
{%- endmacro %}
