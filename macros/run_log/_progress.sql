{#- The lines that a run writes while it goes on. -#}

{% macro _log_progress(target, text) -%}
    {%- do log(healing_tables._plain_names(config.get('materialized') ~ ' ' ~ target ~ ': ' ~ text), info=true) -%}
{%- endmacro %}

{% macro _display_seconds(delta) -%}
    {{- return('%.1f s' | format(delta.total_seconds())) -}}
{%- endmacro %}

{% macro _utc_now() -%}
    {{- return(modules.datetime.datetime.now(modules.pytz.utc)) -}}
{%- endmacro %}
