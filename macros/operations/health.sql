{#-
    Read the newest rows of the log, and fail if a table needs attention:

    table        | last build (UTC) | status    | hours | rows | finding
    dim_customer | 2024-03-02 02:00 | published | 5.2   | 1000 |
    dim_player   | 2024-02-27 02:00 | refused   | 101.2 | 412  | refused, stale

    stale      the last successful build is older than max_age_hours
    refused    the newest build was refused
    shrinking  the newest publication removed more than max_removed_ratio of the rows
    growing    it added more than max_added_ratio of the previous rows
-#}
{% macro health(max_age_hours=26, max_removed_ratio=0.05, max_added_ratio=0.5) -%}
    {%- set mistakes = [] -%}
    {%- set log = healing_tables._log_to_read(mistakes) -%}
    {%- set tables = healing_tables._tables_in_log('health', mistakes, log, {'max_age_hours': max_age_hours,
        'max_removed_ratio': max_removed_ratio, 'max_added_ratio': max_added_ratio}) -%}
    {%- set rows = healing_tables._fields(tables, ['name', 'last_build', 'status', 'hours', 'rows_after',
        'findings']) -%}
    {%- do healing_tables._print_table(
        ['table', 'last build (UTC)', 'status', 'hours', 'rows', 'finding'], rows) -%}
    {%- for table in tables if table.rows_after is none -%}
        {%- do healing_tables._print('  ' ~ table.name ~ ': '
            ~ ('hours and rows are NULL: no successful build is logged' if table.hours is none else 'rows is NULL: '
            ~ healing_tables._why_not_counted(table.mode)
            ~ ', so it is not checked for shrinking and growing')) -%}
    {%- endfor -%}
    {%- if mistakes -%}
        {%- do healing_tables._raise_error('healing_tables.health: '
            ~ healing_tables._counted(mistakes | length, 'finding') ~ ' in ' ~ log, mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._print('healing_tables.health: ' ~ healing_tables._counted(rows | length, 'table')
        ~ ', nothing found') -%}
{%- endmacro %}

{% macro _why_not_counted(mode) -%}
    {{- return('a ' ~ mode ~ ' does not count the rows that it leaves as they are' if mode in ['merge', 'repair']
        else 'the version of the package that wrote the row of the log did not count rows') -}}
{%- endmacro %}

{#- The log in the schema of the target, or in `log_schema` if the project sets it. -#}
{% macro _log_to_read(mistakes) -%}
    {%- set log = healing_tables._log_of(target, healing_tables._project_options().get('log_schema')) -%}
    {%- if load_relation(log) is none -%}
        {%- do healing_tables._mistake(mistakes, 'the log', 'the table ' ~ log, 'no such table',
            'build a dimension; if its log is elsewhere, set vars.healing_tables.log_schema') -%}
    {%- endif -%}
    {{- return(log) -}}
{%- endmacro %}

{#- The tables of a log: the columns of _health_query(), and findings (text); each finding is a mistake. -#}
{% macro _tables_in_log(operation, mistakes, log, limits) -%}
    {%- for name, limit in limits.items() if limit is not number or limit < 0 -%}
        {%- do healing_tables._mistake(mistakes, name, 'a number from 0 on', limit | string, 'write a number') -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes(operation, mistakes) -%}
    {%- set tables = [] -%}
    {%- for row in run_query(healing_tables._health_query(log)).rows -%}
        {%- do tables.append(dict(healing_tables._row_map(row),
            findings=healing_tables._findings(mistakes, row, limits) | join(', '))) -%}
    {%- endfor -%}
    {{- return(tables) -}}
{%- endmacro %}

{#- One row for each table that builds, merges or captures have written; runs on a part of the data do not count, nor do
    attempts that were retried. -#}
{% macro _health_query(log) %}
select relation as name,
    date_format(to_utc_timestamp(max(finished_at), current_timezone()), 'yyyy-MM-dd HH:mm') as last_build,
    max_by(status, finished_at) as status, max_by(reason, finished_at) as reason,
    round((unix_micros(now()) - unix_micros(max(finished_at) filter (where status <> 'refused'))) / 3600000000, 1)
        as hours,
    max_by(rows_added, finished_at) filter (where status = 'published') as added,
    max_by(rows_removed, finished_at) filter (where status = 'published') as removed,
    -- the unchanged rows of a merge are those of its batch
    max_by(rows_unchanged + rows_changed + rows_removed, finished_at) filter (
        where status = 'published' and mode <> 'merge') as rows_before,
    max_by(rows_unchanged + rows_changed + rows_added, finished_at) filter (
        where status <> 'refused' and mode <> 'merge') as rows_after,
    max_by(mode, finished_at) filter (where status <> 'refused') as mode
from {{ log }}
where mode <> 'sample' and status <> 'retried'
group by relation
order by relation
{% endmacro %}

{#- The findings of a table, as names; each is also a mistake. Tables of fewer than 20 rows are not checked for
    shrinking or growing: a ratio of so few rows means little. -#}
{% macro _findings(mistakes, row, limits) -%}
    {%- set found, before = [], row['rows_before'] or 0 -%}
    {%- if row['status'] == 'refused' -%}
        {%- do found.append('refused') -%}
        {%- do healing_tables._mistake(mistakes, row['name'] ~ ' is refused', 'a newest build that was not refused',
            row['reason'] or 'refused', 'remove the cause, and build again') -%}
    {%- endif -%}
    {%- if row['hours'] is none or row['hours'] > limits.max_age_hours -%}
        {%- do found.append('stale') -%}
        {%- do healing_tables._mistake(mistakes, row['name'] ~ ' is stale',
            'a successful build in the last ' ~ limits.max_age_hours ~ ' hours (max_age_hours)',
            'none' if row['hours'] is none else row['hours'] ~ ' hours ago', 'run it, or check its schedule') -%}
    {%- endif -%}
    {%- for finding, count, limit in [('shrinking', row['removed'], 'max_removed_ratio'),
        ('growing', row['added'], 'max_added_ratio')] if before >= 20 and (count or 0) > limits[limit] * before -%}
        {%- do found.append(finding) -%}
        {%- do healing_tables._mistake(mistakes, row['name'] ~ ' is ' ~ finding,
            'at most ' ~ limits[limit] ~ ' of ' ~ before ~ ' rows (' ~ limit ~ ')', count ~ ' rows',
            'check it with healing_tables.compare; if it is right, pass a larger ' ~ limit) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
