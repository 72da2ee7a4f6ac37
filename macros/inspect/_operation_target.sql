{#- What the run-operations share: finding the table, printing, and the row of the log. -#}

{#-
    The table that an operation names: {relation, node}. A model or snapshot of this project, by its name or as
    `schema.table` (`table` alone is in the target's schema); node is none for another table. Afterwards, _option()
    finds the options of the model, as in its own build.
-#}
{% macro _operation_table(operation, dimension) -%}
    {%- set mistakes = [] -%}
    {%- set relation = healing_tables._resolve_relation(mistakes, 'dimension', dimension) -%}
    {%- do healing_tables._raise_mistakes(operation, mistakes) -%}
    {%- set node = healing_tables._find_node(dimension) or healing_tables._node_of_table(relation) -%}
    {%- do healing_tables._be_model(node, relation) if node is not none -%}
    {{- return({'relation': relation, 'node': node}) -}}
{%- endmacro %}

{#- As in a unit test, see _model_config(). -#}
{% macro _be_model(node, relation) -%}
    {%- set model = {'name': node.name, 'tested_node_unique_id': node.unique_id, 'config': node.config} -%}
    {#- dbt v2 cannot change the context, see _current_model() -#}
    {%- do graph.update({'healing_tables_model': model}) if healing_tables._is_dbt_v2()
        else context.update({'this': relation, 'model': model}) -%}
{%- endmacro %}

{#- The metadata of the call of dimension() in the model, as its build reads it; none without a call, or if its
    sources no longer exist. -#}
{% macro _spec_of_model(node) -%}
    {%- if node is none or node.language != 'sql' or (
        node.config.materialized != 'healing_table' and not modules.re.search('healing_tables[.]dimension *[(]',
            node.raw_code)) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- for id in node.depends_on.nodes -%}
        {%- set source = (graph.get('nodes') or {}).get(id) or (graph.get('sources') or {}).get(id) -%}
        {%- if source and source.config.get('materialized') != 'ephemeral' and load_relation(api.Relation.create(
            schema=source.schema, identifier=source.get('alias') or source.identifier)) is none -%}
            {{- return(none) -}}
        {%- endif -%}
    {%- endfor -%}
    {%- set call = healing_tables._parse_call(healing_tables._render_code(node,
        healing_tables._new_rendering(node))) -%}
    {{- return(call.metadata if call is not none else none) -}}
{%- endmacro %}

{#- The same; of another model or table, what its options say. -#}
{% macro _metadata_of_table(mistakes, node) -%}
    {{- return(healing_tables._spec_of_model(node) or dict(healing_tables._configured_metadata(mistakes, none),
        hash_key=healing_tables._surrogate_key(mistakes, healing_tables._option('surrogate_key', none)))) -}}
{%- endmacro %}

{% macro _report(operation, relation, text) -%}
    {%- do log(healing_tables._plain_names('healing_tables.' ~ operation ~ ' ' ~ relation ~ ': ' ~ text), info=true) -%}
{%- endmacro %}

{#- The end of an operation that may write: report it, and insert a row into the log. `outcome`: most of that row, with
    target and format_name. -#}
{% macro _end_operation(outcome) -%}
    {%- do healing_tables._report(outcome.mode, outcome.target, 'status ' ~ outcome.status ~ ', version '
        ~ outcome.version_before
        ~ (' -> ' ~ outcome.version_after if outcome.version_after != outcome.version_before)) -%}
    {%- set log = healing_tables._log_of(outcome.target, healing_tables._option('log_schema', none)) -%}
    {%- do healing_tables._ensure_log(outcome.target, log, outcome.format_name) -%}
    {%- do healing_tables._run(healing_tables._log_insert(log, dict(
        outcome, dimension=outcome.target.identifier, relation=healing_tables._plain_names(outcome.target),
        finished_at=healing_tables._utc_now(),
        invocation_id=invocation_id))) -%}
{%- endmacro %}
