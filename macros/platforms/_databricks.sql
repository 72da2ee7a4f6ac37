{#- dbt-databricks: Unity Catalog, a location_clause with an argument, and sessions that may refuse SET. -#}
{% macro databricks___platform() -%}
    {{- return(dict(
        healing_tables.default___platform(), location_clause=healing_tables._location_clause_of_databricks,
        has_catalogs=true, has_set=false)) -}}
{%- endmacro %}

{% macro _location_clause_of_databricks() -%}
    {{- return(location_clause(adapter.build_catalog_relation(config.model))) -}}
{%- endmacro %}
