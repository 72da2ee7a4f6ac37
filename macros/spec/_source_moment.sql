{#- The moment of a source, and what follows from how it is given. -#}

{#- The type of a source's column: looked up, or declared in column_types, or none. -#}
{% macro _source_column_type(source, name) -%}
    {{- return(source.types.get(name | string | lower)) -}}
{%- endmacro %}

{% macro _source_moment(source) -%}
    {{- return(healing_tables._to_micros(
        healing_tables._quoted(source.moment), healing_tables._source_column_type(source, source.moment))) -}}
{%- endmacro %}

{#- Whether rows of the source end at a snapshot that does not contain them. -#}
{% macro _has_absence_deletes(source) -%}
    {{- return(source.kind == 'snapshots' and source.on_absence == 'delete') -}}
{%- endmacro %}
