{#- The id of the statement that wrote last to a table beside a dimension. In Delta, the history shows it in the
    predicate of the MERGE. In other formats, a table property contains it. -#}

{% macro _was_written_by(format, relation, id) -%}
    {%- if format.commits.shows_predicates -%}
        {{- return(id in format.commits.newest(relation) | map(attribute='parameters') | join(' ')) -}}
    {%- endif -%}
    {{- return(healing_tables._property(healing_tables._table_details(relation), 'healing_tables.written_by') == id) -}}
{%- endmacro %}

{#- The statement that follows such a MERGE, or none. -#}
{% macro _note_written_by(format, relation, id) -%}
    {{- return(none if format.commits.shows_predicates else 'alter table ' ~ relation ~ ' set '
        ~ healing_tables._properties_clause({'healing_tables.written_by': id})) -}}
{%- endmacro %}
