{#- The current model: its name, its node in the graph, its configuration. -#}

{#- What _render_model() renders, or none. -#}
{% macro _rendering() -%}
    {{- return(healing_tables_rendering if healing_tables_rendering is defined
        else healing_tables._rendered_in_v2().get('rendering')) -}}
{%- endmacro %}

{#- {rendering, node} while dbt v2 renders the code of a node, else {}, see _in_model_context_of_v2(). -#}
{% macro _rendered_in_v2() -%} {{ return(graph.get(healing_tables._rendering_name()) or {}) }} {%- endmacro %}

{#- All threads of a run have the same `graph`. -#}
{% macro _rendering_name() -%}
    {{- return('healing_tables_rendering ' ~ (model.unique_id if model is defined and model is mapping)) -}}
{%- endmacro %}

{#- The model that is built, tested or rendered, or that an operation names; none in other operations. -#}
{% macro _current_model() -%}
    {{- return(healing_tables._rendered_in_v2().get('node') or graph.get('healing_tables_model')
        or (model if model is defined and model is mapping else none)) -}}
{%- endmacro %}

{#- In an operation or an inline query, there is no model. -#}
{% macro _model_name() -%}
    {%- set model = healing_tables._current_model() -%}
    {%- set is_named = model is not none and model.name and model.get('resource_type') != 'macro' -%}
    {{- return(model.name if is_named else '(inline)') -}}
{%- endmacro %}

{#- The table of the model that is built or rendered, see _render_model(); none in tests and operations. -#}
{% macro _built_relation() -%}
    {%- set rendering = healing_tables._rendering() -%}
    {%- if rendering is not none -%} {{ return(healing_tables._node_relation(rendering.node)) }} {%- endif -%}
    {{- return(this if this is defined and not healing_tables._is_unit_test()
        and healing_tables._model_kind() == 'model' else none) -}}
{%- endmacro %}

{#- model, data test, unit test: what it is, for messages. -#}
{% macro _model_kind() -%}
    {%- set kind = healing_tables._current_model().get('resource_type') or 'model' -%}
    {{- return('data test' if kind == 'test' else kind | replace('_', ' ')) -}}
{%- endmacro %}

{#- The configuration of the model that is built, rendered (see _render_model) or tested. -#}
{% macro _model_config() -%}
    {%- set rendering, model = healing_tables._rendering(), healing_tables._current_model() -%}
    {%- if rendering is not none -%} {{ return(rendering.node.config) }} {%- endif -%}
    {%- if healing_tables._is_unit_test() -%}
        {#- up to dbt 1.12, the graph is empty in unit tests: options then come from the test's overrides of vars -#}
        {{- return(((graph.get('nodes') or {}).get(model.tested_node_unique_id) or {}).get('config') or {}) -}}
    {%- endif -%}
    {%- if model is not none and model.get('attached_node') -%}
        {{- return(((graph.get('nodes') or {}).get(model.attached_node) or {}).get('config') or {}) -}}
    {%- endif -%}
    {{- return(config if config is defined else {}) -}}
{%- endmacro %}

{#- Whether a unit test renders its model; also true in operations, see _operation_table(). -#}
{% macro _is_unit_test() -%}
    {%- set model = healing_tables._current_model() -%}
    {{- return(model is not none and model.get('tested_node_unique_id') is not none) -}}
{%- endmacro %}

{#- The node of the model that a generic test belongs to, or none. -#}
{% macro _attached_node() -%}
    {%- set model = healing_tables._current_model() -%}
    {%- set id = model.get('attached_node') if model is not none -%}
    {{- return((graph.get('nodes') or {}).get(id) if id else none) -}}
{%- endmacro %}

{#- The table of a node or a source. -#}
{% macro _node_relation(node) -%}
    {{- return(api.Relation.create(database=node.database or none, schema=node.schema,
        identifier=node.get('identifier') or node.alias, type='table')) -}}
{%- endmacro %}

{#- `meta.healing_tables` of a node; {} of none. -#}
{% macro _options_of_node(node) -%}
    {{- return({} if node is none else (node.config.get('meta') or {}).get('healing_tables') or {}) -}}
{%- endmacro %}

{#- The models, snapshots and seeds; none in a unit test, where the graph is empty up to dbt 1.12. -#}
{% macro _named_nodes() -%}
    {{- return((graph.get('nodes') or {}).values() | selectattr('resource_type', 'in', ['model', 'snapshot', 'seed'])
        | list) -}}
{%- endmacro %}

{#- A model, snapshot or seed by its name, `package.name` or `name.v2`; one of this project comes first. None if there
    is none. -#}
{% macro _find_node(text) -%}
    {%- set nodes = [] -%}
    {%- for node in healing_tables._named_nodes() if text in healing_tables._node_names(node) -%}
        {%- do nodes.append(node) -%}
    {%- endfor -%}
    {{- return(nodes | selectattr('package_name', 'equalto', project_name) | first or nodes | first or none) -}}
{%- endmacro %}

{#- The model, snapshot or seed that builds a table, or none. Spark's names are case-insensitive. -#}
{% macro _node_of_table(relation) -%}
    {%- for node in healing_tables._named_nodes()
        if healing_tables._node_relation(node) | string | lower == relation | string | lower -%}
        {{- return(node) -}}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}

{#- The names of a node. As in ref(), the name without a version means the latest one. -#}
{% macro _node_names(node) -%}
    {%- set version = node.get('version') -%}
    {%- set names = [] if version is not none and version | string != node.latest_version | string else [node.name] -%}
    {%- if version is not none -%} {%- do names.append(node.name ~ '.v' ~ version) -%} {%- endif -%}
    {%- for name in names[:] -%} {%- do names.append(node.package_name ~ '.' ~ name) -%} {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{#- Whether dbt v2 runs the macros. -#}
{% macro _is_dbt_v2() -%} {{ return(dbt_version.split('.')[0] | int >= 2) }} {%- endmacro %}
