{#- A table that this model has not built. -#}

{#- The run, or one that keeps such a table under another name. If it has rows that cannot be compared with those of the
    model, the run is refused unless it is allowed to replace them. -#}
{% macro _with_foreign_table(run) -%}
    {%- if not run.stored or healing_tables._is_built_by_model(run) -%} {{ return(run) }} {%- endif -%}
    {%- set settings, columns = run.settings, run.stored.columns -%}
    {%- set wanted = settings.key_columns + ([settings.valid_from] if settings.valid_from is not none else []) -%}
    {%- set missing = healing_tables._missing_names(wanted, columns) -%}
    {%- if not missing or not healing_tables._has_rows(run.existing) -%} {{ return(run) }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- if not healing_tables._allows_replace() -%}
        {%- do healing_tables._foreign_table_mistake(
            mistakes, run.target, wanted, columns,
            "name its columns in meta.healing_tables.column_names, e.g. {valid_from: effective_from}") -%}
    {%- elif healing_tables._is_same_location(run.stored, run.target) -%}
        {%- do healing_tables._mistake(
            mistakes, 'location_root', 'another folder, since the existing table is kept',
            run.stored.location,
            'choose another location_root, or move the table away') -%}
    {%- endif -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {{- return(dict(run, keeps_foreign=true, reason='the table that had this name is kept as '
        ~ healing_tables._backup_relation(run.target))) -}}
{%- endmacro %}

{#- Whether this model has built the stored table, according to the log. Not every format has table ids. -#}
{% macro _is_built_by_model(run) -%}
    {{- return(run.last is not none and 'healing_tables.spec=' in run.stored.get('properties', '')
        and (run.last.table_id is none or run.table_id is none or run.last.table_id == run.table_id)) -}}
{%- endmacro %}
