{#-
    The hash of a row's attributes: as key_hash, but in the order of the columns' names by code point, so that the
    order of a list in a configuration never changes it.

    {{ healing_tables.row_hash(['name', 'limit'], {'name': 'string', 'limit': 'int'}) }}
-#}
{% macro row_hash(columns, column_types=none) -%}
    {{- return(healing_tables._hash_macro('row_hash', columns, column_types)) -}}
{%- endmacro %}
