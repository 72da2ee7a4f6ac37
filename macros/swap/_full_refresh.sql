{#- --full-refresh of a table whose history no source has. -#}

{#-
    A full refresh of a table whose history no source has: {target, before, is_view, is_kept}, or none without
    --full-refresh. The stored table is renamed to `before` while the new one is created. Refused unless the model
    allows it. `wanted`: the columns that identify a table of this model.
-#}
{% macro _full_refresh(mistakes, target, existing, wanted) -%}
    {%- if existing is none or not should_full_refresh() -%} {{ return(none) }} {%- endif -%}
    {%- if healing_tables._option('allow_full_refresh', none, false) is not sameas true -%}
        {%- do healing_tables._mistake(
            mistakes, '--full-refresh', 'a run that keeps the history, which cannot be restored from a batch',
            'a full refresh of ' ~ target ~ ', which exists',
            'run without it; or set meta.healing_tables.allow_full_refresh: true to drop the table and start again '
            'with this batch') -%}
    {%- endif -%}
    {%- set stored = healing_tables._table_details(existing) -%}
    {%- set format = healing_tables._stored_format(stored) -%}
    {%- if stored.get('type') == 'EXTERNAL' and format is not none and format.has_commits -%}
        {#- dropping it would keep its files, and with them the rows -#}
        {%- do healing_tables._mistake(
            mistakes, '--full-refresh', 'a table that Spark manages', target ~ ', whose files stay when it is dropped',
            'drop the table, remove its files, and run without --full-refresh') -%}
    {%- endif -%}
    {%- set is_other = false -%}
    {%- if existing.is_table and not mistakes -%}
        {%- set columns = healing_tables._columns_of(existing) -%}
        {%- set is_other = healing_tables._missing_names(wanted, columns) | length > 0
            and healing_tables._has_rows(existing) -%}
        {%- if is_other and not healing_tables._allows_replace() -%}
            {%- do healing_tables._foreign_table_mistake(mistakes, target, wanted, columns,
                'correct the names of its columns') -%}
        {%- endif -%}
    {%- endif -%}
    {{- return({
        'target': target | string, 'before': healing_tables._backup_relation(target) | string,
        'is_view': existing.is_view,
        'is_kept': is_other}) -}}
{%- endmacro %}

{#- Rename the stored table to its backup name, or drop a view. -#}
{% macro _rename_to_backup(replaced) -%}
    {%- if replaced is none -%} {{ return(none) }} {%- endif -%}
    {%- do healing_tables._run('drop view if exists ' ~ replaced.target if replaced.is_view
        else 'alter table ' ~ replaced.target ~ ' rename to ' ~ replaced.before) -%}
{%- endmacro %}

{#- The new table exists: drop the backup. -#}
{% macro _drop_backup(target, replaced) -%}
    {%- if replaced is none or replaced.is_view -%} {{ return(none) }} {%- endif -%}
    {%- if replaced.is_kept -%} {%- do healing_tables._log_progress(target, 'the table that had this name is kept as '
        ~ replaced.before) -%}
    {%- else -%} {%- do healing_tables._run('drop table if exists ' ~ replaced.before) -%}
    {%- endif -%}
{%- endmacro %}
