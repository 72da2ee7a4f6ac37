{#-
    Files that hold neighbouring values of some columns: who looks for a few of them opens few files. Delta has it as
    liquid clustering, Iceberg as a write order. What a build writes lies as it comes, until `maintain` sorts it.
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

{#- Of a log that only grows: its key, by which heals read it. Delta clusters by columns with statistics: simple types,
    among the first 32 columns. `columns`: {name: type}. -#}
{% macro _cluster_by_key(format, keys, columns) -%}
    {%- set chosen = healing_tables._cluster_by() -%}
    {%- if chosen or format.name != 'delta' or config.get('partition_by')
        or (healing_tables._spark_version().split('.')[0] | int) < 4 -%}
        {{- return(chosen) -}}
    {%- endif -%}
    {%- set able, seen = [], namespace(columns=0) -%}
    {%- for name, type in columns.items() -%}
        {#- each field of a struct counts as one -#}
        {%- set seen.columns = seen.columns + ([1, type.count(':')] | max) -%}
        {%- do able.append(name | lower) if seen.columns <= 32 and (type in ['date', 'timestamp', 'timestamp_ntz']
            or healing_tables._type_family(type) in ['integer', 'floating', 'decimal', 'text']) -%}
    {%- endfor -%}
    {%- set names = config.get('tblproperties') or {} -%}
    {{- return([] if 'delta.dataSkipping' in names | join(' ') or keys | map('lower') | reject('in', able) | list
        else keys[:4]) -}}
{%- endmacro %}

{#- Give a new table its order. -#}
{% macro _order_files(format, relation, columns) -%}
    {%- do healing_tables._run('alter table ' ~ relation ~ ' '
        ~ format.files.order(healing_tables._quoted_list(columns) | join(', '))) if columns -%}
{%- endmacro %}
