{#- dbt-spark itself, and the adapters that build on it. A cluster or an endpoint is set only on Databricks. -#}
{% macro spark___platform() -%}
    {%- if adapter.type() != 'spark' -%} {{ return(healing_tables.default___platform()) }} {%- endif -%}
    {{- return(dict(
        healing_tables.default___platform(), has_own_settings=not (target.cluster or target.endpoint),
        merge_remedy="install the Python library in dbt's environment, see docs/merging.md")) -}}
{%- endmacro %}
