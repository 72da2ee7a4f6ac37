{#- A table that this model has not built. -#}

{#- Refuse to replace rows that this model has not built and cannot compare with its own, unless the run allows it; then
    the old table is kept. -#}
{% macro _check_foreign_table(build) -%}
    {%- if not build.stored or healing_tables._is_built_by_model(build) -%} {{ return(none) }} {%- endif -%}
    {%- set settings = build.settings -%}
    {%- set columns = build.stored.columns -%}
    {%- set wanted = settings.key_columns + ([settings.valid_from] if settings.valid_from is not none else []) -%}
    {%- set missing = healing_tables._missing_names(wanted, columns) -%}
    {%- if not missing or not healing_tables._has_rows(build.existing) -%} {{ return(none) }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- if not healing_tables._allows_replace() -%}
        {%- do healing_tables._foreign_table_mistake(
            mistakes, build.target, wanted, columns,
            "name its columns in meta.healing_tables.column_names, e.g. {valid_from: effective_from}") -%}
    {%- elif healing_tables._is_same_location(build.stored, build.target) -%}
        {%- do healing_tables._mistake(
            mistakes, 'location_root', 'another folder, since the existing table is kept',
            build.stored.location,
            'choose another location_root, or move the table away') -%}
    {%- else -%}
        {%- do build.update({'keeps_foreign': true}) -%}
        {%- do build.log_row.update({'reason': 'the table that had this name is kept as '
            ~ healing_tables._backup_relation(build.target)}) -%}
    {%- endif -%}
    {%- do healing_tables._refuse(build, mistakes, false) if mistakes -%}
{%- endmacro %}

{#- Whether this model has built the stored table, according to the log. Not every format has table ids. -#}
{% macro _is_built_by_model(build) -%}
    {%- set table_id = build.log_row.table_id -%}
    {{- return(build.last is not none and 'healing_tables.spec=' in build.stored.get('properties', '')
        and (build.last.table_id is none or table_id is none or build.last.table_id == table_id)) -}}
{%- endmacro %}
