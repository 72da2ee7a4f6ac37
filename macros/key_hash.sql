{#-
    The hash of a business key: lower-case hex SHA-256 of the columns' texts, in the given order, joined by |.

    {{ healing_tables.key_hash(['source_system', 'customer_id'], {'source_system': 'string', 'customer_id': 'int'}) }}
-#}
{% macro key_hash(columns, column_types=none) -%}
    {{- return(healing_tables._hash_macro('key_hash', columns, column_types)) -}}
{%- endmacro %}

{#- Columns with their types: given, or taken from a relation. -#}
{% macro _hash_macro(macro_name, columns, column_types) -%}
    {%- if healing_tables._placeholder_select(macro_name, {'columns': columns}) is not none -%}
        {{- return('null') -}}
    {%- endif -%}
    {%- set types = healing_tables._columns_of(columns) if columns.identifier is defined else column_types or {} -%}
    {%- set names = types.keys() | list if columns.identifier is defined else healing_tables._as_list(columns) -%}
    {%- set mistakes = [] -%}
    {%- set typed = [] -%}
    {%- for name in (names | sort(case_sensitive=true) if macro_name == 'row_hash' else names) -%}
        {%- set found = healing_tables._find_column(name, types) -%}
        {%- if found is none -%}
            {%- do healing_tables._mistake(
                mistakes, 'column_types.' ~ name, 'the type of ' ~ name, 'none',
                "add column_types={'" ~ name ~ "': '...'}, or pass a relation") -%}
        {%- else -%}
            {%- set type = healing_tables._type_name(types[found]) -%}
            {%- do healing_tables._check_attribute_type(mistakes, 'columns.' ~ name, type, none) -%}
            {%- do typed.append({'expression': healing_tables._quoted(name), 'type': type}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes(macro_name, mistakes) -%}
    {{- return(healing_tables._hash(typed)) -}}
{%- endmacro %}
