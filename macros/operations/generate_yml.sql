{#-
    Print the yml of a model that calls dimension(), with the lineage of each attribute as its description: its sources
    and its rule. dbt shows it in its docs, and persist_docs writes it to the catalog.

    - name: credit_limit
      description: "From erp. Type 2: the value at that time."
    - name: email
      description: "From web, crm by most_recent_row: of the values that are not NULL, the one whose ... ..."
-#}
{% macro generate_yml(dimension=none, file=none) -%}
    {%- set node = healing_tables._find_sql_model('generate_yml', dimension) -%}
    {%- set rendering = healing_tables._new_rendering(node) -%}
    {%- do healing_tables._render_code(node, rendering) -%}
    {%- if rendering.spec is not defined -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(mistakes, 'dimension', 'a model that calls dimension()', node.name,
            'write its yml by hand') -%}
        {%- do healing_tables._raise_mistakes('generate_yml', mistakes) -%}
    {%- endif -%}
    {%- set attributes = {} -%}
    {%- for rule in healing_tables._explained_rules(rendering.spec) -%}
        {%- do attributes.update({rule.attribute: healing_tables._lineage(rule)}) -%}
    {%- endfor -%}
    {%- do healing_tables._print_code('generate_yml', healing_tables._generated_yml(node.name,
        rendering.spec.key_columns | map(attribute='name') | list, rendering.spec.names, attributes,
        healing_tables._types_of_columns(rendering.spec)), file) -%}
{%- endmacro %}

{#- The types of the columns of a dimension, as far as they are known: see docs/macros.md, Generated columns. -#}
{% macro _types_of_columns(spec) -%}
    {%- set types = {} -%}
    {%- for column in spec.key_columns + spec.attributes -%} {%- do types.update({column.name: column.type}) -%}
    {%- endfor -%}
    {%- set generated = {
        'valid_from': spec.moment_type, 'valid_to': spec.moment_type,
        'is_current': 'boolean' if spec.current_values[0] is boolean else none, 'version': 'int',
        'compressed_row_count': 'bigint', 'key_hash': 'string', 'row_hash': 'string'} -%}
    {%- for column, type in generated.items() if spec.names.get(column) is not none -%}
        {%- do types.update({spec.names[column]: type}) -%}
    {%- endfor -%}
    {{- return(types) -}}
{%- endmacro %}

{#- The ownership of one attribute as a sentence. -#}
{% macro _lineage(rule) -%}
    {%- set meaning = {
        'first_non_null': 'the first value that is not NULL',
        'first_present': 'the value of the first one that has the key, even if it is NULL',
        'most_recent_row': 'of the values that are not NULL, the one whose source row starts last',
        'most_recent_value': 'of the values that are not NULL, the one that starts last'} -%}
    {{- return(('From ' ~ rule.from if rule.rule == 'one source'
        else 'From ' ~ rule.from ~ ' by ' ~ rule.rule ~ ': ' ~ meaning[rule.rule])
        ~ '. Type ' ~ rule.scd_type ~ ': ' ~ rule.shows ~ '.') -}}
{%- endmacro %}
