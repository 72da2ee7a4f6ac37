{#-
    Write an HTML page with the builds, merges and captures in the log:

    table        | last build (UTC) | status    | rows | finding | added, changed, removed | seconds
    dim_customer | 2024-03-02 02:00 | published | 1000 |         | ▂▁▁▃▁                   | ▂▂▃▂▂
    dim_player   | 2024-02-27 02:00 | refused   | 412  | stale   | ▁▁▁                     | ▃▃▂

    `html` is the file, `days` the number of days that the page shows; the thresholds are those of health.
-#}
{% macro report(html='target/healing_report.html', days=90, max_age_hours=26, max_removed_ratio=0.05,
    max_added_ratio=0.5) -%}
    {%- set mistakes = [] -%}
    {%- set log = healing_tables._log_to_read(mistakes) -%}
    {%- if days is not integer or days < 1 -%}
        {%- do healing_tables._mistake(mistakes, 'days', 'a number of days, from 1 on', days | tojson,
            'write a number') -%}
    {%- endif -%}
    {%- set limits = {'max_age_hours': max_age_hours, 'max_removed_ratio': max_removed_ratio,
        'max_added_ratio': max_added_ratio} -%}
    {%- set tables = healing_tables._tables_in_log('report', mistakes, log, limits) -%}
    {%- set builds = [] -%}
    {%- for row in run_query(healing_tables._builds_query(log, days)).rows -%}
        {%- do builds.append(healing_tables._row_map(row)) -%}
    {%- endfor -%}
    {%- do healing_tables._write_page('report', {
        'log': log | string, 'written': healing_tables._utc_now().strftime('%Y-%m-%d %H:%M'), 'days': days,
        'limits': limits, 'tables': tables, 'builds': builds}, html) -%}
{%- endmacro %}

{#- Newest first; partial runs do not count. -#}
{% macro _builds_query(log, days) %}
select relation as name,
    date_format(to_utc_timestamp(finished_at, current_timezone()), 'yyyy-MM-dd HH:mm:ss') as finished,
    mode, status, reason, publish, rows_added, rows_changed, rows_removed, rows_unchanged, rows_set_aside,
    ties_resolved, round((unix_micros(finished_at) - unix_micros(started_at)) / 1000000, 1) as seconds, version_after
from {{ log }}
where mode <> 'sample' and finished_at >= now() - interval '{{ days }}' day
order by finished_at desc
limit 20000
{% endmacro %}
