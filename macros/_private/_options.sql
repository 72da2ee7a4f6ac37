{#-
    One option, looked up by itself: the call's argument, the model's meta.healing_tables, the project's
    vars.healing_tables, then the default. '(not given)' marks an argument that the caller left out, because
    none is a value: an open end of NULL.
-#}
{% macro _option(name, argument, default=none) -%}
    {%- if argument is not sameas none and argument != '(not given)' -%} {{ return(argument) }} {%- endif -%}
    {%- if argument is sameas none and name in ['valid_to_current'] -%} {{ return(none) }} {%- endif -%}
    {%- set meta = healing_tables._meta() -%}
    {%- if name in meta -%} {{ return(meta[name]) }} {%- endif -%}
    {%- set project = var('healing_tables', {}) -%}
    {%- if name in project -%} {{ return(project[name]) }} {%- endif -%}
    {{- return(default) -}}
{%- endmacro %}

{% macro _meta() -%}
    {{- return((healing_tables._model_config().get('meta') or {}).get('healing_tables') or {}) -}}
{%- endmacro %}

{#- Whether the run reads only a part of its sources. dbt puts `empty` into `flags`, and `sample` only into its arguments. -#}
{% macro _is_partial_run() -%}
    {{- return(true if flags.EMPTY or invocation_args_dict.get('sample') else false) -}}
{%- endmacro %}

{#- `unique_key` of the model, as a list. -#}
{% macro _unique_key() -%}
    {{- return(healing_tables._list(healing_tables._model_config().get('unique_key'))) -}}
{%- endmacro %}

{#- The configuration of the model that is built, or that an operation asks about (see _asked); a unit test has one of
    its own, so that of the model it tests. -#}
{% macro _model_config() -%}
    {%- if healing_tables_asked is defined -%} {{ return(healing_tables_asked.node.config) }} {%- endif -%}
    {%- if model is defined and model is mapping and model.get('tested_node_unique_id') -%}
        {#- dbt gives unit tests an empty graph up to 1.12: the options then come from the test's overrides of vars -#}
        {{- return(((graph.get('nodes') or {}).get(model.tested_node_unique_id) or {}).get('config') or {}) -}}
    {%- endif -%}
    {{- return(config if config is defined else {}) -}}
{%- endmacro %}
