{#-
    What differs by dbt adapter: a `platform`, the map that <adapter>___platform() returns. dbt's dispatch finds it; an
    adapter that builds on dbt-spark may also use that of Spark.

    has_own_settings   the user sets the settings of the Spark session; a vendor provides Delta in its own way
    has_set            SET reads and writes settings of the session; SQL warehouses refuse it
    merge_remedy       what to do where healing_merge cannot run
    location_clause    (): where dbt's configuration places the model's table, as a clause of CREATE TABLE
    has_catalogs       table names have three parts
-#}
{% macro _platform() -%}
    {{- return(adapter.dispatch('_platform', 'healing_tables')()) -}}
{%- endmacro %}

{% macro default___platform() -%}
    {{- return({
        'has_own_settings': false, 'has_set': true,
        'merge_remedy': 'run this model with dbt-spark, method: session',
        'location_clause': healing_tables._location_clause, 'has_catalogs': false}) -}}
{%- endmacro %}

{% macro _location_clause() -%}
    {{- return(location_clause()) -}}
{%- endmacro %}
