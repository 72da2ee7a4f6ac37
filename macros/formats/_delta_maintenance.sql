{#- What maintain does to the files of a Delta table. -#}

{#- How long Delta keeps deleted files, if the table sets it. -#}
{% macro _delta_kept_hours(relation) -%}
    {%- for row in run_query('show tblproperties ' ~ relation).rows
        if row[0] == 'delta.deletedFileRetentionDuration' -%}
        {%- set match = modules.re.match('^(?:interval +)?([0-9]+) +(hour|day|week)s?$', row[1] | trim | lower) -%}
        {%- if match -%}
            {{- return((match.group(1) | int) * {'hour': 1, 'day': 24, 'week': 168}[match.group(2)]) -}}
        {%- endif -%}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}

{% macro _delta_maintain(relation, columns, keys, partitions, hours, allow_short) -%}
    {{- return([
        'before: ' ~ healing_tables._delta_files(relation),
        healing_tables._optimize(relation, columns, keys, partitions),
        healing_tables._vacuum(relation, hours, allow_short),
        'after: ' ~ healing_tables._delta_files(relation)]) -}}
{%- endmacro %}

{% macro _delta_files(relation) -%}
    {%- set detail = run_query('describe detail ' ~ relation).rows[0] -%}
    {{- return((detail['numFiles'] | int) ~ ' files, ' ~ (detail['sizeInBytes'] | int) ~ ' bytes') -}}
{%- endmacro %}

{#- Run OPTIMIZE. A table with liquid clustering has its own columns; a single file need not be optimized. -#}
{% macro _optimize(relation, columns, keys, partitions) -%}
    {%- if run_query('describe detail ' ~ relation).rows[0]['numFiles'] | int <= 1 -%}
        {{- return('one file: nothing to optimize') -}}
    {%- endif -%}
    {%- set by = [] -%}
    {%- if not healing_tables._clustering_columns(relation) -%}
        {%- for key in keys if key | lower not in partitions | map('lower')
            and healing_tables._has_statistics(relation, columns, key) -%}
            {%- do by.append(healing_tables._quoted(key)) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set statement = 'optimize ' ~ relation ~ (' zorder by (' ~ (by | join(', ')) ~ ')' if by) -%}
    {%- do healing_tables._run(statement) -%}
    {{- return(statement) -}}
{%- endmacro %}

{#- Not as a clause of `create table`: in a SQL script, Spark takes that for `partitioned by`. -#}
{% macro _delta_order(columns) -%} {{ return('cluster by (' ~ columns ~ ')') }} {%- endmacro %}

{#- The columns by which a table is clustered. -#}
{% macro _clustering_columns(relation) -%}
    {%- set columns = run_query('describe detail ' ~ relation).rows[0]['clusteringColumns'] -%}
    {#- a list or a string, depending on the adapter -#}
    {%- set columns = fromjson(columns | replace("'", '"'), []) if columns is string else columns -%}
    {{- return(columns | list if columns else []) -}}
{%- endmacro %}

{#- Delta can Z-order only by columns with statistics: the first 32, or those that the table's properties set. -#}
{% macro _has_statistics(relation, columns, key) -%}
    {%- set first = namespace(columns=32) -%}
    {%- for row in run_query('show tblproperties ' ~ relation).rows -%}
        {%- if row[0] == 'delta.dataSkippingStatsColumns' -%}
            {{- return(key | lower in (row[1] | lower | replace('`', '')).split(',') | map('trim') | list) -}}
        {%- elif row[0] == 'delta.dataSkippingNumIndexedCols' -%}
            {%- set first.columns = row[1] | int -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(first.columns < 0
        or healing_tables._find_column(key, healing_tables._leading_columns(columns, first.columns)) is not none) -}}
{%- endmacro %}

{#- The first columns, of which Delta collects statistics. Each field of a struct counts as one. -#}
{% macro _leading_columns(columns, limit) -%}
    {%- set found, seen = [], namespace(columns=0) -%}
    {%- for name, type in columns.items() -%}
        {%- set seen.columns = seen.columns + ([1, (type or '').count(':')] | max) -%}
        {%- do found.append(name) if seen.columns <= limit -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- Run VACUUM. A session setting makes Delta refuse a short retention; it is changed and then restored. -#}
{% macro _vacuum(relation, hours, allow_short) -%}
    {%- set setting = 'spark.databricks.delta.retentionDurationCheck.enabled' -%}
    {%- set before = healing_tables._session_conf(setting) if allow_short else none -%}
    {%- if before is not none -%} {%- do healing_tables._set_session_conf(setting, 'false') -%} {%- endif -%}
    {%- do healing_tables._run('vacuum ' ~ relation ~ ' retain ' ~ hours ~ ' hours') -%}
    {%- if before is not none -%}
        {%- if 'undefined' in before -%} {%- do healing_tables._run('reset ' ~ healing_tables._quoted(setting)) -%} {%-
            else -%} {%- do healing_tables._set_session_conf(setting, before) -%} {%- endif -%}
    {%- endif -%}
    {{- return('vacuum, files unused for more than ' ~ hours ~ ' hours were removed') -}}
{%- endmacro %}
