{#- The key map of a dimension with integer keys, see build/_sequence.sql: its name, and what identifies a version. -#}

{% macro _key_map_relation(target) -%}
    {{- return(api.Relation.create(
        database=target.database, schema=target.schema, identifier=target.identifier ~ '__keys', type='table')) -}}
{%- endmacro %}

{#- What identifies a version in the key map, as SQL: {key, valid_from}. Neither depends on the types of the
    columns. -#}
{% macro _version_id(prefix, settings, columns) -%}
    {%- set texts = [] -%}
    {%- for key in settings.key_columns -%}
        {%- do texts.append(healing_tables._key_map_text(prefix ~ healing_tables._quoted(key),
            healing_tables._type_of_column(columns, key))) -%}
    {%- endfor -%}
    {#- a row without versions has one number, whatever its start -#}
    {%- set start = '0L' if settings.valid_from is none else healing_tables._to_micros(
        prefix ~ healing_tables._quoted(settings.valid_from),
        healing_tables._type_of_column(columns, settings.valid_from)) -%}
    {{- return({
        'key': texts[0] if texts | length == 1 else "concat_ws('|', " ~ (texts | join(', ')) ~ ')',
        'valid_from': 'timestamp_micros(' ~ start ~ ')'}) -}}
{%- endmacro %}

{#- The text of a key as in key_hash, except that integers and decimals 1, 1.0 and 1.00 have the same text. -#}
{% macro _key_map_text(expression, type) -%}
    {%- set text = healing_tables._hash_text(healing_tables._normalized_value(expression, type), type) -%}
    {%- if healing_tables._type_family(type) == 'decimal' and healing_tables._precision_and_scale(type)[1] > 0 -%}
        {{- return("regexp_replace(" ~ text ~ ", '[.]?0+$', '')") -}}
    {%- endif -%}
    {{- return(text) -}}
{%- endmacro %}
