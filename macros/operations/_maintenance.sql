{#- What maintain does to the files of a Delta table, and what it says of its size. -#}

{% macro _tell_files(relation, moment) -%}
    {%- set detail = run_query('describe detail ' ~ relation).rows[0] -%}
    {%- do healing_tables._say('maintain', relation, moment ~ ': ' ~ (detail['numFiles'] | int) ~ ' files, ' ~ (detail['sizeInBytes'] | int) ~ ' bytes') -%}
{%- endmacro %}

{#- OPTIMIZE. A table with liquid clustering knows its columns; nothing is to be gained from a single file. -#}
{% macro _optimize(relation, columns, keys, partitions) -%}
    {%- if run_query('describe detail ' ~ relation).rows[0]['numFiles'] | int <= 1 -%}
        {%- do healing_tables._say('maintain', relation, 'one file: nothing to optimize') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set by = [] -%}
    {%- if not healing_tables._is_clustered(relation) -%}
        {%- for key in keys if key | lower not in partitions | map('lower') and healing_tables._has_statistics(relation, columns, key) -%}
            {%- do by.append(healing_tables._id(key)) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set statement = 'optimize ' ~ relation ~ (' zorder by (' ~ (by | join(', ')) ~ ')' if by) -%}
    {%- do run_query(statement) -%}
    {%- do healing_tables._say('maintain', relation, statement) -%}
{%- endmacro %}

{% macro _is_clustered(relation) -%}
    {#- a list, or its text: adapters differ -#}
    {%- set columns = run_query('describe detail ' ~ relation).rows[0]['clusteringColumns'] -%}
    {{- return(columns is not none and columns | string not in ['', '[]']) -}}
{%- endmacro %}

{#- Delta orders only by columns that it keeps statistics of: the first 32, or as the table's properties say. -#}
{% macro _has_statistics(relation, columns, key) -%}
    {%- set first = namespace(columns=32, seen=0) -%}
    {%- for row in run_query('show tblproperties ' ~ relation).rows -%}
        {%- if row[0] == 'delta.dataSkippingStatsColumns' -%}
            {{- return(key | lower in (row[1] | lower | replace('`', '')).split(',') | map('trim') | list) -}}
        {%- elif row[0] == 'delta.dataSkippingNumIndexedCols' -%}
            {%- set first.columns = row[1] | int -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if first.columns < 0 -%} {{ return(true) }} {%- endif -%}
    {%- for name, type in columns.items() -%}
        {#- each field of a struct counts as one -#}
        {%- set first.seen = first.seen + ([1, type.count(':')] | max) -%}
        {%- if name | lower == key | lower -%} {{ return(first.seen <= first.columns) }} {%- endif -%}
    {%- endfor -%}
    {{- return(false) -}}
{%- endmacro %}

{#- VACUUM. Delta refuses a short retention by a setting of the session, which is put back. -#}
{% macro _vacuum(relation, hours, allow_short) -%}
    {%- set setting = 'spark.databricks.delta.retentionDurationCheck.enabled' -%}
    {%- set before = run_query('set ' ~ healing_tables._id(setting)).rows[0]['value'] if allow_short else none -%}
    {%- if before is not none -%} {%- do healing_tables._set(setting, 'false') -%} {%- endif -%}
    {%- do run_query('vacuum ' ~ relation ~ ' retain ' ~ hours ~ ' hours') -%}
    {%- if before is not none -%}
        {%- if 'undefined' in before -%} {%- do run_query('reset ' ~ healing_tables._id(setting)) -%} {%- else -%} {%- do healing_tables._set(setting, before) -%} {%- endif -%}
    {%- endif -%}
    {%- do healing_tables._say('maintain', relation, 'vacuum, files unused for more than ' ~ hours ~ ' hours are gone') -%}
{%- endmacro %}

{#- How a table of that size should be partitioned. Told, never done: it would be another table. -#}
{% macro _advise_partitions(table, columns, keys, partitions, spec) -%}
    {%- set names = healing_tables._stored_names([], table, spec, {}, columns) -%}
    {%- set count = run_query('select count(*) as n from ' ~ table.relation).rows[0]['n'] | int -%}
    {%- set flag = names.is_current or 'the current flag' -%}
    {%- if table.relation.identifier.endswith('_history') -%}
        {%- set advice = 'a history table: partition it by the year of ' ~ names.valid_from ~ ' once it is large' -%}
    {%- elif count < 1000000 -%}
        {%- set advice = 'below 1 million rows: no partitions' ~ ('; it has some, which make small files: build it without partition_by' if partitions) -%}
    {%- elif count <= 100000000 -%}
        {%- set advice = '1 to 100 million rows: partition by ' ~ flag -%}
    {%- else -%}
        {%- set advice = 'over 100 million rows: partition by ' ~ flag ~ ', z-order on ' ~ (keys | join(', ') or 'the key') -%}
    {%- endif -%}
    {%- do healing_tables._say('maintain', table.relation, count ~ ' rows, partitioned by ' ~ (partitions | join(', ') or 'nothing') ~ '. ' ~ advice) -%}
{%- endmacro %}
