{#-
    Clustering: rows with similar values of some columns are stored in the same files, so that a query for a few values
    reads few files. In Delta it is liquid clustering, in Iceberg the write order. A build does not sort the rows that
    it writes; `maintain` does.
-#}

{#- The columns of the option, or of the one of dbt-databricks. -#}
{% macro _cluster_by() -%}
    {{- return(healing_tables._as_list(healing_tables._option('cluster_by', none)
        or healing_tables._model_config().get('liquid_clustered_by'))) -}}
{%- endmacro %}

{% macro _check_cluster_by(mistakes, format) -%}
    {%- set columns = healing_tables._cluster_by() -%}
    {%- if not columns -%} {{ return(none) }} {%- endif -%}
    {%- if columns | reject('string') | list -%}
        {%- do healing_tables._mistake(
            mistakes, 'cluster_by', 'a column, or a list of columns', healing_tables._display_value(columns),
            "write the key of the model, e.g. ['customer_id']") -%}
    {%- elif not format.has_commits -%}
        {%- do healing_tables._mistake(
            mistakes, 'cluster_by', 'a table in ' ~ (healing_tables._formats_with('has_commits') | join(' or ')),
            format.name, 'leave it out, and set key_buckets: a heal then writes only the buckets of its keys') -%}
    {%- elif config.get('partition_by') -%}
        {%- do healing_tables._mistake(
            mistakes, 'cluster_by', 'a table without partition_by', 'partition_by: ' ~ config.get('partition_by'),
            'leave one of them out') -%}
    {%- elif columns | length > 4 and format.name == 'delta' -%}
        {%- do healing_tables._mistake(
            mistakes, 'cluster_by', 'at most 4 columns, as Delta allows', columns | length ~ ': '
            ~ (columns | join(', ')), 'keep those by which the table is read, the key first') -%}
    {%- endif -%}
{%- endmacro %}

{#- Check the columns of the option before anything is written. `columns`: of the table, {name: type or none}. -#}
{% macro _check_cluster_columns(mistakes, format, relation, columns) -%}
    {%- set chosen = healing_tables._cluster_by() -%}
    {%- do healing_tables._check_columns(mistakes, 'cluster_by', chosen, relation, columns) -%}
    {%- set able, seen = healing_tables._columns_with_statistics(columns), [] -%}
    {%- for name in chosen if healing_tables._find_column(name, columns) is not none -%}
        {%- if name | lower in seen -%}
            {%- do healing_tables._mistake(mistakes, 'cluster_by', 'each column once', chosen | join(', '),
                'leave out the second ' ~ name) -%}
        {%- elif format.name == 'delta' and name | lower not in able -%}
            {%- do healing_tables._mistake(
                mistakes, 'cluster_by', 'columns of which Delta has statistics: numbers, texts, dates and timestamps, '
                ~ 'among the first 32', name ~ ', ' ~ (healing_tables._type_of_column(columns, name) or 'after them'),
                'choose another column, or move it to the front of the select') -%}
        {%- endif -%}
        {%- do seen.append(name | lower) -%}
    {%- endfor -%}
{%- endmacro %}

{#- The columns by which Delta can cluster a table, in lower case; a column of an unknown type (none) may be one. -#}
{% macro _columns_with_statistics(columns) -%}
    {%- set found = [] -%}
    {%- for name in healing_tables._leading_columns(columns, 32) -%}
        {%- set type = columns[name] or 'string' -%}
        {%- do found.append(name | lower) if type in ['date', 'timestamp', 'timestamp_ntz']
            or healing_tables._type_family(type) in ['integer', 'floating', 'decimal', 'text'] -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- The clustering columns of a new captured log: those of the option, else its key in Delta, since heals read it by
    key. `columns`: {name: type}. -#}
{% macro _cluster_by_key(format, keys, columns) -%}
    {%- set chosen = healing_tables._cluster_by() -%}
    {%- if chosen or format.name != 'delta' or config.get('partition_by')
        or 'delta.dataSkipping' in (config.get('tblproperties') or {}) | join(' ')
        or keys | map('lower') | reject('in', healing_tables._columns_with_statistics(columns)) | list
        or (healing_tables._spark_version().split('.')[0] | int) < 4 -%}
        {{- return(chosen) -}}
    {%- endif -%}
    {{- return(keys[:4]) -}}
{%- endmacro %}

{#- Give a new table its order. -#}
{% macro _order_files(format, relation, columns) -%}
    {%- do healing_tables._run('alter table ' ~ relation ~ ' '
        ~ format.files.order(healing_tables._quoted_list(columns) | join(', '))) if columns -%}
{%- endmacro %}
