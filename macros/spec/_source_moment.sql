{#- The moment of a source, and what follows from how it is given. -#}

{#- The type of a source's column: looked up, or declared in column_types, or none. -#}
{% macro _source_column_type(source, name) -%}
    {#- looked-up types are spelled already; a type with members is read letter by letter for that -#}
    {%- if source.columns is not none -%} {{ return(healing_tables._type_of_column(source.columns, name)) }}
    {%- endif -%}
    {%- set types = source.column_types -%}
    {%- set found = healing_tables._find_column(name, types) -%}
    {{- return(healing_tables._type_name(types[found]) if found is not none and types[found] is string else none) -}}
{%- endmacro %}

{% macro _source_moment(source) -%}
    {{- return(healing_tables._to_micros(
        healing_tables._quoted(source.moment), healing_tables._source_column_type(source, source.moment))) -}}
{%- endmacro %}

{#- Whether rows of the source end at a snapshot that does not contain them. -#}
{% macro _has_absence_deletes(source) -%}
    {{- return(source.kind == 'snapshots' and source.on_absence == 'delete') -}}
{%- endmacro %}
