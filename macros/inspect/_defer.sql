{#-
    `--defer`, as in dbt's commands: change `graph` of this context so that the tables that `node` reads, and that do
    not exist in this target (with --favor-state: all of them), are those of the manifest in the folder of `--state`.
    All others, so the dimension itself and its facts, are always those of that manifest: the question is what a change
    of the code does to them. Returns the node in that graph.
-#}
{% macro _defer(operation, node) -%}
    {#- dbt does not have these in `flags` -#}
    {%- set given = invocation_args_dict -%}
    {%- set folder = given.get('defer_state') or given.get('state') -%}
    {#- dbt v2 has --defer on by default -#}
    {%- if not given.get('defer') or (healing_tables._is_dbt_v2() and not folder) -%} {{ return(node) }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- if not folder -%}
        {%- do healing_tables._mistake(mistakes, '--defer', 'a folder with the manifest of production', 'no --state',
            'add --state FOLDER') -%}
    {%- elif adapter.healing_tables_read_state is not defined -%}
        {%- do healing_tables._needs_library(mistakes, '--defer', 'to read the manifest', 'leave --defer out') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(operation, mistakes) -%}
    {%- set stored = adapter.healing_tables_read_state(adapter.config.project_root, folder | string) -%}
    {%- if node.unique_id not in stored -%}
        {%- do healing_tables._mistake(mistakes, 'dimension', 'a model that the manifest has', node.name
            ~ ', which is new: no table is replaced', 'build it, and look at its rows') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(operation, mistakes) -%}
    {%- set read = [] if given.get('favor_state') else healing_tables._nodes_read_by(node) -%}
    {%- set nodes = dict(graph.nodes) -%}
    {%- for id, place in stored.items() if id in graph.nodes
        and (id not in read or load_relation(healing_tables._node_relation(graph.nodes[id])) is none) -%}
        {%- do nodes.update({id: dict(graph.nodes[id], **place)}) -%}
    {%- endfor -%}
    {%- do context.update({'graph': dict(graph, nodes=nodes)}) -%}
    {{- return(nodes[node.unique_id]) -}}
{%- endmacro %}

{#- The ids of the nodes that a model reads, also through ephemeral models. -#}
{% macro _nodes_read_by(node) -%}
    {%- set ids = [] -%}
    {%- for id in node.depends_on.nodes if id in graph.nodes -%}
        {%- set is_ephemeral = graph.nodes[id].config.materialized == 'ephemeral' -%}
        {%- do ids.extend(healing_tables._nodes_read_by(graph.nodes[id]) if is_ephemeral else [id]) -%}
    {%- endfor -%}
    {{- return(ids) -}}
{%- endmacro %}
