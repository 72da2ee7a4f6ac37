{#-
    What differs by dbt adapter: a `platform`, the map that <adapter>___platform() returns. dbt's dispatch finds it, for
    an adapter that builds on dbt-spark also that of Spark.

    has_own_settings   the settings of the Spark session are the user's; a vendor brings Delta in a way of its own
    merge_remedy       what to do where healing_merge cannot run
-#}
{% macro _platform() -%}
    {{- return(adapter.dispatch('_platform', 'healing_tables')()) -}}
{%- endmacro %}

{% macro default___platform() -%}
    {{- return({'has_own_settings': false, 'merge_remedy': 'run this model with dbt-spark, method: session'}) -}}
{%- endmacro %}
