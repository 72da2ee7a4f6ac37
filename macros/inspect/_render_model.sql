{#-
    An operation or a test asks for the SQL of a model as it is now: its code is rendered here, in a context that says
    it is that model. `healing_tables_asked` is there meanwhile: {node, var (dbt's own), ctes (ephemeral models that it
    refers to), explain (a key, or none: then dimension() writes what explain shows)}.

    Returns that map with code (the SQL without those CTEs), relation, sql and about (as healing_table knows it; none when explaining).
-#}
{% macro _asked(node, explain=none) -%}
    {%- set asked = healing_tables._new_asked(node, explain) -%}
    {%- set sql = healing_tables._rendered(node, asked) -%}
    {%- do asked.update({'code': sql}) -%}
    {%- set ctes = [] -%}
    {%- for name, text in asked.ctes.items() -%} {%- do ctes.append(name ~ ' as (\n' ~ text ~ '\n)') -%} {%- endfor -%}
    {%- if ctes -%} {%- set sql = 'with ' ~ (ctes | join(', ')) ~ '\nselect * from (\n' ~ sql ~ '\n)' -%} {%- endif -%}
    {%- set about = none if explain is not none else healing_tables._as_model(node, asked, '_build_about', sql) -%}
    {{- return(dict(asked, relation=healing_tables._node_relation(node), sql=sql, about=about)) -}}
{%- endmacro %}

{% macro _new_asked(node, explain=none) -%}
    {{- return({'node': node, 'var': var, 'ctes': {}, 'explain': explain, 'explained': 0}) -}}
{%- endmacro %}

{% macro _rendered(node, asked) -%}
    {{- return(healing_tables._as_model(node, asked, 'render', node.raw_code).strip().rstrip(';')) -}}
{%- endmacro %}

{#- Calls `render` or a macro of this package in the context of a model. -#}
{% macro _as_model(node, asked, what, argument) -%}
    {%- set kept = {} -%}
    {%- for name in ['model', 'this', 'ref', 'var', 'healing_tables_asked'] -%} {%- do kept.update({name: context.get(name)}) -%} {%- endfor -%}
    {%- do context.update({
        'model': node, 'this': healing_tables._node_relation(node), 'ref': healing_tables._model_ref,
        'var': healing_tables._model_var, 'healing_tables_asked': asked}) -%}
    {%- set result = render(argument) if what == 'render' else healing_tables._build_about(argument) -%}
    {%- do context.update(kept) -%}
    {%- if kept.healing_tables_asked is none -%} {%- do context.pop('healing_tables_asked') -%} {%- endif -%}
    {{- return(result) -}}
{%- endmacro %}

{% macro _is_explaining() -%}
    {{- return(healing_tables_asked is defined and healing_tables_asked.explain is not none) -}}
{%- endmacro %}

{% macro _node_relation(node) -%}
    {{- return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias, type='table')) -}}
{%- endmacro %}

{#- ref() as the model means it: among what dbt has found that the model refers to. -#}
{% macro _model_ref() -%}
    {%- set version = kwargs.get('version', kwargs.get('v')) -%}
    {%- set asked = healing_tables_asked -%}
    {%- set found = [] -%}
    {%- for id in model.depends_on.nodes if id in graph.nodes -%}
        {%- set node = graph.nodes[id] -%}
        {%- if node.name == varargs[-1] and (varargs | length == 1 or node.package_name == varargs[0])
            and (node.get('version') is none or node.version | string == (version or node.latest_version) | string) -%}
            {%- do found.append(node) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not found -%}
        {{- exceptions.raise_compiler_error(
            'healing_tables: ref of ' ~ (varargs | join('.')) ~ ' in model ' ~ model.name ~ ' is none that dbt knows of') -}}
    {%- endif -%}
    {%- set node = found[0] -%}
    {%- if node.config.materialized == 'ephemeral' -%}
        {%- set name = '__dbt__cte__' ~ node.name -%}
        {%- if name not in asked.ctes -%}
            {#- first what it refers to itself -#}
            {%- set text = healing_tables._rendered(node, asked) -%}
            {%- do asked.ctes.update({name: text}) -%}
        {%- endif -%}
        {{- return(api.Relation.create(identifier=name, type='cte')) -}}
    {%- endif -%}
    {{- return(healing_tables._node_relation(node)) -}}
{%- endmacro %}

{#- var() as the model means it: a variable may be set for the package of the model. -#}
{% macro _model_var(name, default='(none)') -%}
    {%- set asked = healing_tables_asked -%}
    {%- set given = invocation_args_dict.get('vars') -%}
    {%- set given = fromyaml(given) if given is string else given -%}
    {%- if name not in (given or {}) and adapter.config.vars is defined -%}
        {%- set own = adapter.config.vars.to_dict().get(asked.node.package_name) -%}
        {%- if own is mapping and name in own -%} {{ return(own[name]) }} {%- endif -%}
    {%- endif -%}
    {%- if default == '(none)' -%} {{ return(asked.var(name)) }} {%- endif -%}
    {{- return(asked.var(name, default)) -}}
{%- endmacro %}

{#- The node of a model that is asked about by its name, or `package.name`. -#}
{% macro _asked_node(macro_name, dimension) -%}
    {%- set mistakes = [] -%}
    {%- set found = [] -%}
    {%- set models = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type == 'model' and node.language == 'sql' -%}
        {%- do models.append(node.name) if 'healing_tables.dimension' in node.raw_code or node.config.materialized == 'healing_table' -%}
        {%- if dimension == node.unique_id or dimension in healing_tables._names_of(node) -%}
            {%- do found.append(node) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if found | length != 1 -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'the name of one SQL model',
            (dimension if dimension is not none else 'none') ~ (', which several have' if found),
            'say its package too: package.name' if found else "give --args '{dimension: ...}', one of " ~ (models | sort | join(', '))) -%}
    {%- elif modules.re.search('config[.](meta_)?(get|require)', found[0].raw_code) -%}
        {#- only dbt's own run of the model has a config to look into -#}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a model that does not read its own config', dimension ~ ', which calls config.get or config.require',
            'take the value from a var, or from a variable that is set in the model') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(macro_name, mistakes) -%}
    {{- return(found[0]) -}}
{%- endmacro %}

{#-
    The node that a generic test belongs to. dbt shows a test only those macros that the test itself calls: the public
    ones are named here, so that a model may call them; others cannot be seen. That of `dbt show` is none of the model's.
-#}
{% macro _tested_node(test) -%}
    {%- set mistakes = [] -%}
    {%- set node = graph.nodes.get(test.attached_node or '', {}) -%}
    {%- if node.get('language') != 'sql' or node.get('resource_type') != 'model' -%}
        {%- do healing_tables._mistake(
            mistakes, 'model', 'a SQL model, whose code says what a rebuild is', test.attached_node or 'none', 'attach the test to the dimension') -%}
    {%- else -%}
        {%- for id in node.depends_on.macros if not id.startswith('macro.healing_tables.') and id != 'macro.dbt.get_limit_subquery_sql' -%}
            {%- do healing_tables._mistake(
                mistakes, 'model', 'a model that calls no macro but those of healing_tables, since dbt hides the others from a test', id,
                'put it into a model that this one refers to; or use: dbt run-operation healing_tables.compare --args \'{dimension: '
                ~ node.name ~ ', fail: true}\'') -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('matches_rebuild', mistakes) -%}
    {%- if false -%}
        {%- do healing_tables.dimension() -%}
        {%- do healing_tables.effectivity() -%}
        {%- do healing_tables.snapshot_effectivity() -%}
        {%- do healing_tables.period_effectivity() -%}
        {%- do healing_tables.time_slices() -%}
        {%- do healing_tables.unified_timeline() -%}
        {%- do healing_tables.compress() -%}
        {%- do healing_tables.key_hash() -%}
        {%- do healing_tables.row_hash() -%}
        {%- do healing_tables.set_aside() -%}
        {%- do healing_tables.as_of() -%}
        {%- do healing_tables.current_versions() -%}
        {%- do healing_tables.versions_at() -%}
        {%- do healing_tables.changes_between() -%}
    {%- endif -%}
    {{- return(healing_tables._asked_node('matches_rebuild', node.unique_id)) -}}
{%- endmacro %}
