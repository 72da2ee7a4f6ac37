{#- Whether the library can merge here. -#}

{#- Why it cannot, {wanted, got, remedy}; none if it can. The adapter knows if the plugin of the pip library has
    extended it. -#}
{% macro _library_obstacle() -%}
    {%- if adapter.healing_tables_obstacle is defined -%}
        {{- return(adapter.healing_tables_obstacle(config.get('submission_method'))) -}}
    {%- endif -%}
    {{- return({
        'wanted': 'dbt-spark with the Python library of this package',
        'got': 'dbt v2, which has no plugins' if healing_tables._is_dbt_v2()
            else 'the adapter ' ~ adapter.type() ~ ' without it',
        'remedy': 'run this model with dbt-core 1.x' if healing_tables._is_dbt_v2()
            else healing_tables._platform().merge_remedy}) -}}
{%- endmacro %}

{% macro _check_can_merge(mistakes, otherwise='') -%}
    {%- set obstacle = healing_tables._library_obstacle() -%}
    {%- if obstacle is not none -%}
        {%- do healing_tables._mistake(
            mistakes, "materialized='healing_merge'", obstacle.wanted, obstacle.got,
            obstacle.remedy ~ otherwise) -%}
    {%- endif -%}
{%- endmacro %}
