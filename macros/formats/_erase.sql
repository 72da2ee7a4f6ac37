{#- How each format removes rows for good: from its current files, and what is left in those of past versions. -#}

{#- The statement that removes rows, or gives them other values. -#}
{% macro _erase_statement(relation, condition, values) -%}
    {%- if not values -%} {{ return('delete from ' ~ relation ~ ' where ' ~ condition) }} {%- endif -%}
    {%- set assignments = [] -%}
    {%- for name, value in values.items() -%}
        {%- do assignments.append(healing_tables._quoted(name) ~ ' = ' ~ value) -%}
    {%- endfor -%}
    {{- return('update ' ~ relation ~ ' set ' ~ (assignments | join(', ')) ~ ' where ' ~ condition) -}}
{%- endmacro %}

{#- A deletion vector only hides a row, so its file is rewritten; REORG leaves clustered files as they are, while the
    table is clustered. A key map and other logs can be append-only. -#}
{% macro _delta_erase(relation, details, condition, values) -%}
    {%- set properties, name = details.get('properties') or '', 'delta.appendOnly' -%}
    {%- set is_append_only = healing_tables._property(details, name) == 'true' -%}
    {%- do healing_tables._run('alter table ' ~ relation ~ " set tblproperties ('" ~ name ~ "' = 'false')")
        if is_append_only -%}
    {%- do healing_tables._run(healing_tables._erase_statement(relation, condition, values)) -%}
    {%- if healing_tables._property(details, 'delta.enableDeletionVectors') == 'true' -%}
        {%- set clustered = healing_tables._clustering_columns(relation) -%}
        {%- do healing_tables._run('alter table ' ~ relation ~ ' cluster by none') if clustered -%}
        {%- do healing_tables._run('reorg table ' ~ relation ~ ' apply (purge)') -%}
        {%- do healing_tables._run('alter table ' ~ relation ~ ' ' ~ healing_tables._delta_order(
            healing_tables._quoted_list(clustered) | join(', '))) if clustered -%}
    {%- endif -%}
    {%- do healing_tables._run('alter table ' ~ relation ~ " set tblproperties ('" ~ name ~ "' = 'true')")
        if is_append_only -%}
{%- endmacro %}

{% macro _delta_past(relation) -%}
    {{- return('time travel has the rows until VACUUM ' ~ relation ~ ' removes files that were deleted '
        ~ (healing_tables._delta_kept_hours(relation) or 168) ~ ' hours before; the minima and maxima of its log end '
        ~ 'with delta.logRetentionDuration (30 days)') -}}
{%- endmacro %}

{#- With column mapping, the columns have other names in the files. Beside these are deletion vectors. -#}
{% macro _delta_all_files(relation, details, columns) -%}
    {%- if healing_tables._property(details, 'delta.columnMapping.mode') or not details.get('location') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set detail = run_query('describe detail ' ~ relation).rows[0] -%}
    {{- return('parquet.' ~ healing_tables._quoted(details.location ~ '/' ~ '*/' * (details.partitions | length)
        ~ '*.parquet') if detail['numFiles'] | int > 0 else none) -}}
{%- endmacro %}

{#- With merge-on-read, a delete file only hides a row. -#}
{% macro _iceberg_erase(relation, details, condition, values) -%}
    {%- do healing_tables._run(healing_tables._erase_statement(relation, condition, values)) -%}
    {%- do healing_tables._run(healing_tables._iceberg_call(relation, 'rewrite_data_files')
        ~ ", options => map('delete-file-threshold', '1', 'rewrite-all', 'true'))")
        if 'merge-on-read' in (details.get('properties') or '') -%}
{%- endmacro %}

{% macro _iceberg_past(relation) -%}
    {{- return('snapshots have the rows until they expire: ' ~ healing_tables._iceberg_call(relation,
        'expire_snapshots') ~ ", older_than => now(), retain_last => 1); then remove_orphan_files") -}}
{%- endmacro %}

{#- A file belongs to a snapshot until that expires. Of many snapshots, the statement would be too long. -#}
{% macro _iceberg_all_snapshots(relation, details, columns) -%}
    {%- set selects = [] -%}
    {%- for row in run_query('select snapshot_id from ' ~ relation ~ '.snapshots').rows -%}
        {%- do selects.append('select ' ~ (healing_tables._quoted_list(columns) | join(', ')) ~ ' from ' ~ relation
            ~ ' version as of ' ~ row['snapshot_id']) -%}
    {%- endfor -%}
    {{- return('(' ~ (selects | join(' union all ')) ~ ')' if 0 < selects | length <= 100 else none) -}}
{%- endmacro %}

{#-
    A table without DELETE is rewritten from a copy without the rows, in parquet if Hive has written it. If a run was
    killed while it wrote, the table has only a part of the rows of that copy, which is complete: the next run begins by
    writing it again.
-#}
{% macro _files_erase(relation, details, condition, values) -%}
    {%- set columns, kept = healing_tables._quoted_list(details.columns), [] -%}
    {%- for name in details.columns -%}
        {%- set column = healing_tables._quoted(name) -%}
        {%- do kept.append(column if not values or name not in values else 'if(' ~ condition ~ ', ' ~ values[name]
            ~ ', ' ~ column ~ ') as ' ~ column) -%}
    {%- endfor -%}
    {%- set copy = relation.incorporate(path={'identifier': relation.identifier ~ '__erasing'}) -%}
    {%- set overwrite = 'insert overwrite table ' ~ relation ~ ' select ' ~ (columns | join(', ')) ~ ' from ' ~ copy
        -%}
    {%- if healing_tables._table_exists(copy) -%}
        {%- set rows = 'select to_json(struct(' ~ (columns | join(', ')) ~ ')) as row from ' -%}
        {%- do healing_tables._run(overwrite) if run_query('select (select count(*) from ' ~ relation
            ~ ') < (select count(*) from ' ~ copy ~ ') and not exists (' ~ rows ~ relation ~ ' except ' ~ rows ~ copy
            ~ ') as is_part').rows[0]['is_part'] -%}
        {%- do healing_tables._run('drop table ' ~ copy) -%}
    {%- endif -%}
    {%- do healing_tables._run('create table ' ~ copy ~ ' using '
        ~ ('parquet' if details.provider == 'hive' else details.provider) ~ ' as select '
        ~ (kept | join(', ')) ~ ' from ' ~ relation ~ ('' if values else ' where not coalesce(' ~ condition
        ~ ', false)')) -%}
    {%- do healing_tables._run(overwrite) -%}
    {%- do healing_tables._run('drop table ' ~ copy) -%}
{%- endmacro %}

{% macro _files_past(relation) -%}
    {{- return('the folders of earlier builds have the rows until the next build but one') -}}
{%- endmacro %}
