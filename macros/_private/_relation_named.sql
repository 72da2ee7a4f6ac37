{#-
    The relation that an argument of an operation names: a model, snapshot or seed of the project, 'source.table',
    'schema.table', or a table in the target's schema.
-#}
{% macro _relation_of_text(text) -%}
    {%- for node in graph.nodes.values() if node.resource_type in ['model', 'snapshot', 'seed'] and text in [node.name, node.package_name ~ '.' ~ node.name] -%}
        {{- return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias)) -}}
    {%- endfor -%}
    {%- for node in graph.sources.values() if text == node.source_name ~ '.' ~ node.name -%}
        {{- return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.identifier)) -}}
    {%- endfor -%}
    {%- set parts = text.split('.') -%}
    {%- if parts | length == 2 -%} {{ return(api.Relation.create(schema=parts[0], identifier=parts[1])) }} {%- endif -%}
    {{- return(api.Relation.create(schema=target.schema, identifier=text)) -}}
{%- endmacro %}
