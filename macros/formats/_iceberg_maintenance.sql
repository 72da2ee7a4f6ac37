{#- What maintain does to the files of an Iceberg table, and how its changes are read. -#}

{% macro _iceberg_kept_hours(relation) -%}
    {%- set name = 'history.expire.max-snapshot-age-ms' -%}
    {%- for row in run_query('show tblproperties ' ~ relation).rows if row[0] == name -%}
        {{- return((row[1] | int) // 3600000) -}}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}

{% macro _iceberg_written_at(relation) -%}
    {{- return('(select unix_micros(max(committed_at)) from ' ~ relation ~ '.snapshots)') -}}
{%- endmacro %}

{#- Sort data files by key, apply delete files, rewrite manifests, and expire old snapshots. -#}
{% macro _iceberg_maintain(relation, columns, keys, partitions, hours, allow_short) -%}
    {%- set lines = ['before: ' ~ healing_tables._iceberg_files(relation)] -%}
    {%- set has_order = 'sort-order' in run_query('show tblproperties ' ~ relation).rows | map(attribute=0) | list -%}
    {%- set order = [] -%}
    {#- without sort_order, Iceberg sorts by the write order of the table -#}
    {%- for key in keys if not has_order -%}
        {%- do order.append(healing_tables._quoted(key) ~ ' asc nulls first') -%}
    {%- endfor -%}
    {%- set sort = ", strategy => 'sort'" if order or has_order else '' -%}
    {%- set named = ', sort_order => ' ~ healing_tables._string_literal(order | join(', ')) if order else '' -%}
    {%- set older_than = (run_query('select unix_micros(now()) as now').rows[0]['now'] | int)
        - ((hours * 3600000000) | int) -%}
    {%- for procedure, arguments in {
        'rewrite_data_files': sort ~ named ~ ", options => map('min-input-files', '2', 'delete-file-threshold', '1')",
        'rewrite_position_delete_files': ", options => map('rewrite-all', 'true')",
        'rewrite_manifests': '',
        'expire_snapshots': ', older_than => timestamp_micros(' ~ older_than ~ '), retain_last => 1'}.items() -%}
        {%- set statement = healing_tables._iceberg_call(relation, procedure) ~ arguments ~ ')' -%}
        {%- set figures = [] -%}
        {%- for name, value in healing_tables._row_map(run_query(statement).rows[0]).items()
            if value | string not in ['0', 'None'] -%}
            {%- do figures.append(name ~ ' ' ~ value) -%}
        {%- endfor -%}
        {%- do lines.append(procedure ~ arguments ~ ': ' ~ (figures | join(', ') or 'nothing to do')) -%}
    {%- endfor -%}
    {{- return(lines + ['after: ' ~ healing_tables._iceberg_files(relation)]) -}}
{%- endmacro %}

{% macro _iceberg_files(relation) -%}
    {%- set found = run_query('select count(*) as files, coalesce(sum(file_size_in_bytes), 0) as bytes, '
        ~ 'count_if(content <> 0) as delete_files from ' ~ relation ~ '.files').rows[0] -%}
    {{- return((found['files'] | int) ~ ' files, ' ~ (found['bytes'] | int) ~ ' bytes, of which delete files '
        ~ (found['delete_files'] | int)) -}}
{%- endmacro %}

{% macro _has_iceberg_change_feed(details) -%} {{ return(true) }} {%- endmacro %}

{#- The changes since a snapshot: a temporary view, created by Iceberg. -#}
{% macro _iceberg_change_feed(relation, details, version, until) -%}
    {%- set view = 'healing_changes_' ~ invocation_id | replace('-', '') ~ '_' ~ local_md5(relation | string)[:8] -%}
    {%- do healing_tables._run(healing_tables._iceberg_call(relation, 'create_changelog_view') ~ ', changelog_view => '
        ~ healing_tables._string_literal(view) ~ ", options => map('start-snapshot-id', '" ~ version ~ "'"
        ~ (", 'end-snapshot-id', '" ~ until ~ "'" if until is not none else '') ~ '))') -%}
    {{- return('(select * except (_change_type), lower(_change_type) as _change_type from ' ~ view ~ ')') -}}
{%- endmacro %}

{% macro _iceberg_change_feed_gap(relation, details, version) -%}
    {%- set commits = healing_tables._iceberg_commits_since(relation, version) -%}
    {#- a snapshot that removes delete files still lists them, so the start snapshot counts, too -#}
    {%- set found = run_query('with since as (select committed_at from ' ~ relation ~ '.snapshots where snapshot_id = '
        ~ version ~ ") select (select count(*) from since) as start_snapshots, count(*) as delete_files from "
        ~ relation ~ ".snapshots as s cross join since where s.summary['total-delete-files'] > 0 "
        ~ 'and s.committed_at >= since.committed_at').rows[0] -%}
    {%- if commits is none or found['start_snapshots'] | int == 0 -%}
        {{- return('its history does not reach back so far') -}}
    {%- elif 'another table, or an older snapshot' in commits | map(attribute='operation') -%}
        {{- return('it was replaced or rolled back') -}}
    {%- elif found['delete_files'] | int > 0 -%}
        {{- return('it has delete files (merge-on-read), which create_changelog_view does not read') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}
