{#-
    The relation that an argument of an operation names: a ref, or as text the name of a model, a snapshot or a seed of
    the project, 'source.table', 'schema.table', or a table in the target's schema. It has to exist.
-#}
{% macro _relation_named(mistakes, argument, given) -%}
    {%- set relation = given -%}
    {%- if given is string -%} {%- set relation = healing_tables._relation_of_text(given) -%} {%- endif -%}
    {%- set found = load_relation(relation) if relation else none -%}
    {%- if found is none and given and given is not string -%} {%- set found = healing_tables._just_made(given) -%} {%- endif -%}
    {%- if found is none -%}
        {%- do healing_tables._mistake(
            mistakes, argument, 'a table or view that exists, or the name of the model that builds it', given | string,
            'build it first, or correct the name') -%}
    {%- endif -%}
    {#- spelled as asked for: dbt's cache has Spark's lower case, the log what the build says -#}
    {{- return(found.incorporate(path={'schema': relation.schema, 'identifier': relation.identifier}) if found is not none else none) -}}
{%- endmacro %}

{#- dbt does not know a table yet in the hooks of the run that makes it. -#}
{% macro _just_made(relation) -%}
    {%- for row in run_query('show tables in ' ~ relation.include(identifier=false)).rows if row['tableName'] | lower == relation.identifier | lower -%}
        {{- return(relation.incorporate(type='table')) -}}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}

{% macro _relation_of_text(text) -%}
    {%- set node = healing_tables._node_named(text) -%}
    {%- if node is not none -%}
        {{- return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias)) -}}
    {%- endif -%}
    {%- for node in graph.sources.values() if text == node.source_name ~ '.' ~ node.name -%}
        {{- return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.identifier)) -}}
    {%- endfor -%}
    {%- set parts = [] -%}
    {%- for part in modules.re.findall('`(?:[^`]|``)*`|[^.`]+', text) -%}
        {%- do parts.append(part[1:-1] | replace('``', '`') if part.startswith('`') else part | trim) -%}
    {%- endfor -%}
    {%- if parts | length == 3 and parts[0] == 'spark_catalog' -%} {%- do parts.pop(0) -%} {%- endif -%}
    {%- if parts | length not in [1, 2] -%} {{ return(none) }} {%- endif -%}
    {{- return(api.Relation.create(schema=parts[0] if parts | length == 2 else target.schema, identifier=parts[-1])) -}}
{%- endmacro %}

{#- A model, snapshot or seed by its name, `package.name` or `name.v2`; one of this project comes first. None if there is none. -#}
{% macro _node_named(text) -%}
    {%- set nodes = [] -%}
    {%- for node in graph.nodes.values() if node.resource_type in ['model', 'snapshot', 'seed'] and text in healing_tables._names_of(node) -%}
        {%- do nodes.append(node) -%}
    {%- endfor -%}
    {{- return(nodes | selectattr('package_name', 'equalto', project_name) | first or nodes | first or none) -}}
{%- endmacro %}

{#- What a node can be called. As in ref(), the name without a version is the latest one. -#}
{% macro _names_of(node) -%}
    {%- set version = node.get('version') -%}
    {%- set names = [] if version is not none and version | string != node.latest_version | string else [node.name] -%}
    {%- if version is not none -%} {%- do names.append(node.name ~ '.v' ~ version) -%} {%- endif -%}
    {%- for name in names[:] -%} {%- do names.append(node.package_name ~ '.' ~ name) -%} {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}
