{#-
    Render the current SQL of a model for an operation or a test, in the context of that model. Meanwhile,
    _rendering() returns: {node, var (dbt's own), ctes (ephemeral models that it refers to), explain (a
    key, or none: with a key, dimension() returns the query of explain)}; dimension() adds its spec.

    Returns that map with code (the SQL without those CTEs), relation, sql and settings (as in healing_table; none
    when explaining).
-#}
{% macro _render_model(node, explain=none) -%}
    {%- set rendering = healing_tables._new_rendering(node, explain) -%}
    {%- set sql = healing_tables._render_code(node, rendering) -%}
    {%- do rendering.update({'code': sql}) -%}
    {%- set ctes = [] -%}
    {%- for name, text in rendering.ctes.items() -%}
        {%- do ctes.append(name ~ ' as (\n' ~ text ~ '\n)') -%}
    {%- endfor -%}
    {%- if ctes -%} {%- set sql = 'with ' ~ (ctes | join(', ')) ~ '\nselect * from (\n' ~ sql ~ '\n)' -%} {%- endif -%}
    {%- set settings = none if explain is not none else healing_tables._in_model_context(node, rendering,
        '_build_settings', sql) -%}
    {{- return(dict(rendering, relation=healing_tables._node_relation(node), sql=sql, settings=settings)) -}}
{%- endmacro %}

{% macro _new_rendering(node, explain=none) -%}
    {{- return({'node': node, 'var': var, 'ctes': {}, 'explain': explain, 'explained': 0}) -}}
{%- endmacro %}

{% macro _render_code(node, rendering) -%}
    {{- return(healing_tables._in_model_context(node, rendering, 'render', node.raw_code).strip().rstrip(';')) -}}
{%- endmacro %}

{#- Call `render` or a macro of this package in the context of a model. -#}
{% macro _in_model_context(node, rendering, what, argument) -%}
    {%- if healing_tables._is_dbt_v2() -%}
        {{- return(healing_tables._in_model_context_of_v2(node, rendering, what, argument)) -}}
    {%- endif -%}
    {%- set kept = {} -%}
    {%- for name in ['model', 'this', 'ref', 'var', 'healing_tables_rendering'] -%}
        {%- do kept.update({name: context.get(name)}) -%}
    {%- endfor -%}
    {%- do context.update({
        'model': node, 'this': healing_tables._node_relation(node), 'ref': healing_tables._model_ref,
        'var': healing_tables._model_var, 'healing_tables_rendering': rendering}) -%}
    {%- set result = render(argument) if what == 'render' else healing_tables._build_settings(argument) -%}
    {%- do context.update(kept) -%}
    {%- if kept.healing_tables_rendering is none -%} {%- do context.pop('healing_tables_rendering') -%} {%- endif -%}
    {{- return(result) -}}
{%- endmacro %}

{#- dbt v2 cannot change the context. What the text of the model calls is defined before it; macros find the rendering
    in `graph`. -#}
{% macro _in_model_context_of_v2(node, rendering, what, argument) -%}
    {%- set name = healing_tables._rendering_name() -%}
    {%- set outer = graph.get(name) -%}
    {%- do graph.update({name: {'rendering': rendering, 'node': node}}) -%}
    {%- set names = '{%- set model, this, ref, var = healing_tables._current_model(), healing_tables._node_relation('
        ~ 'healing_tables._current_model()), healing_tables._model_ref, healing_tables._model_var -%}' -%}
    {%- set result = render(names ~ argument) if what == 'render' else healing_tables._build_settings(argument) -%}
    {%- do graph.update({name: outer}) -%}
    {{- return(result) -}}
{%- endmacro %}

{% macro _is_tracing() -%}
    {%- set rendering = healing_tables._rendering() -%}
    {{- return(rendering is not none and rendering.explain is not none) -}}
{%- endmacro %}

{#- ref() of the model, resolved among the nodes that the model depends on. -#}
{% macro _model_ref() -%}
    {%- set version = kwargs.get('version', kwargs.get('v')) -%}
    {%- set rendering = healing_tables._rendering() -%}
    {%- set found = [] -%}
    {%- for id in healing_tables._current_model().depends_on.nodes if id in graph.nodes -%}
        {%- set node = graph.nodes[id] -%}
        {%- if node.name == varargs[-1] and (varargs | length == 1 or node.package_name == varargs[0])
            and (node.get('version') is none or node.version | string == (version or node.latest_version) | string) -%}
            {%- do found.append(node) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not found -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'ref', 'a node that the model refers to, as dbt has parsed it', varargs | join('.'),
            'write the ref in the model as dbt can find it') -%}
        {%- do healing_tables._raise_mistakes('ref', mistakes) -%}
    {%- endif -%}
    {%- set node = found[0] -%}
    {%- if node.config.materialized == 'ephemeral' -%}
        {%- set name = '__dbt__cte__' ~ node.name -%}
        {%- if name not in rendering.ctes -%}
            {#- first the ephemeral models that it refers to -#}
            {%- set text = healing_tables._render_code(node, rendering) -%}
            {%- do rendering.ctes.update({name: text}) -%}
        {%- endif -%}
        {{- return(api.Relation.create(identifier=name, type='cte')) -}}
    {%- endif -%}
    {{- return(healing_tables._node_relation(node)) -}}
{%- endmacro %}

{#- var() of the model: a variable may be set for the model's package. -#}
{% macro _model_var(name, default='(none)') -%}
    {%- set rendering = healing_tables._rendering() -%}
    {%- set given = invocation_args_dict.get('vars') -%}
    {%- set given = fromyaml(given) if given is string else given -%}
    {%- if name not in (given or {}) and adapter.config is defined and adapter.config.vars is defined -%}
        {%- set own = adapter.config.vars.to_dict().get(rendering.node.package_name) -%}
        {%- if own is mapping and name in own -%} {{ return(own[name]) }} {%- endif -%}
    {%- endif -%}
    {%- if default == '(none)' -%} {{ return(rendering.var(name)) }} {%- endif -%}
    {{- return(rendering.var(name, default)) -}}
{%- endmacro %}

{#- The node of a model, by its name or `package.name`. -#}
{% macro _find_sql_model(macro_name, dimension) -%}
    {%- set mistakes = [] -%}
    {%- set found = [] -%}
    {%- set models = [] -%}
    {%- set in_python = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' -%}
        {%- do models.append(node.name) if node.language == 'sql' and ('healing_tables.dimension' in node.raw_code
            or node.config.materialized == 'healing_table') -%}
        {%- if dimension == node.unique_id or dimension in healing_tables._node_names(node) -%}
            {%- do (found if node.language == 'sql' else in_python).append(node) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if in_python and not found -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a SQL model, whose sources have the history', dimension ~ ', a Python model',
            'what its batches changed is in its audit: docs/merging.md, Causes and the audit') -%}
    {%- elif found | length != 1 -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'the name of one SQL model',
            (dimension if dimension is not none else 'none') ~ (', a name of several models' if found),
            'add its package: package.name' if found else healing_tables._did_you_mean(dimension, models)
            or "give --args '{dimension: ...}', one of " ~ (models | sort | join(', '))) -%}
    {%- elif modules.re.search('config[.](meta_)?(get|require)', found[0].raw_code) -%}
        {#- config is available only when dbt itself runs the model -#}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a model that does not read its own config',
            dimension ~ ', which calls config.get or config.require',
            'take the value from a var, or from a variable that is set in the model') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(macro_name, mistakes) -%}
    {{- return(found[0]) -}}
{%- endmacro %}

{#-
    The node that a generic test belongs to. dbt gives a test only the macros that the test itself calls, and none that
    the model calls (the macro for the limit of `dbt show` is dbt's own).
-#}
{% macro _tested_node(test) -%}
    {%- set mistakes = [] -%}
    {%- set node = graph.nodes.get(test.attached_node or '', {}) -%}
    {%- if node.get('language') != 'sql' or node.get('resource_type') != 'model' -%}
        {%- do healing_tables._mistake(
            mistakes, 'model', 'a SQL model, whose code can be rebuilt', test.attached_node or 'none',
            'attach the test to the dimension') -%}
    {%- else -%}
        {%- for id in node.depends_on.macros if not id.startswith('macro.healing_tables.')
            and id != 'macro.dbt.get_limit_subquery_sql' -%}
            {%- do healing_tables._mistake(
                mistakes, 'model', 'a model that calls no macro but those of healing_tables, since dbt hides the '
                'others from a test', id,
                'put it into a model that this one refers to; or use: dbt run-operation healing_tables.compare --args '
                '\'{dimension: '
                ~ node.name ~ ', fail: true}\'') -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('matches_rebuild', mistakes) -%}
    {{- return(healing_tables._find_sql_model('matches_rebuild', node.unique_id)) -}}
{%- endmacro %}
