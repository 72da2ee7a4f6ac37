{#-
    Columns and types of a relation, as {name: type}, in order; none where they cannot be looked up: a CTE, an
    ephemeral model, a fixture of a unit test. Under --empty and --sample a ref is a sub-query, so the look-up
    goes to the plain relation.
-#}
{% macro _columns_of(relation) -%}
    {%- if relation is string or relation.is_cte -%} {{ return(none) }} {%- endif -%}
    {%- if relation.identifier.startswith('__dbt__cte__') -%} {{ return(none) }} {%- endif -%}
    {%- set plain = api.Relation.create(
        database=relation.database, schema=relation.schema, identifier=relation.identifier) -%}
    {{- return(healing_tables._described('describe table ' ~ plain)) -}}
{%- endmacro %}

{#- The same of what a `describe` lists, be it a table or `describe query select ...`. -#}
{% macro _described(describe) -%}
    {%- call statement('healing_tables_columns', fetch_result=true, auto_begin=false) -%}
        {{ describe }}
    {%- endcall -%}
    {%- set columns = {} -%}
    {%- set ended = [] -%}
    {%- for row in load_result('healing_tables_columns')['table'].rows -%}
        {#- sections on partitions follow the columns; their titles have no type -#}
        {%- if not row[1] -%} {%- do ended.append(true) -%} {%- endif -%}
        {#- a column called null is read as NULL -#}
        {%- if not ended -%}
            {%- do columns.update({('null' if row[0] is none else row[0] | string): healing_tables._type(row[1])}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The name as the relation spells it, or none. -#}
{% macro _find(name, columns) -%}
    {%- for column in columns if column | lower == name | string | lower -%}
        {{- return(column) -}}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}
