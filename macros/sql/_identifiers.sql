{#- One place for quoting: identifiers, relations and text never reach SQL any other way. -#}

{% macro _quoted(name) -%}
    {%- if '${' in name | string -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'column ' ~ name, 'a name without ${', name,
            'rename the column: Spark puts the value of a setting in the place of ${...}, also in quoted names') -%}
        {%- do healing_tables._raise_mistakes(none, mistakes) -%}
    {%- endif -%}
    {{- return('`' ~ (name | string | replace('`', '``')) ~ '`') -}}
{%- endmacro %}

{#- Text as one literal. Spark would replace ${...} with the value of a setting; it does not if the dollar sign is
    escaped. -#}
{% macro _string_literal(value) -%}
    {{- return("'" ~ (value | string | replace('\\', '\\\\') | replace("'", "\\'") | replace('${', '\\u0024{'))
        ~ "'") -}}
{%- endmacro %}

{#- Text as an expression: of a statement, or of JSON, whose quotes a literal would escape. dbt-glue takes away the
    backslashes of a literal. -#}
{% macro _text_without_backslash(value) -%}
    {%- if "'" not in value and '\\' not in value -%} {{ return(healing_tables._string_literal(value)) }} {%- endif -%}
    {{- return("url_decode('" ~ (value | urlencode) ~ "')") -}}
{%- endmacro %}

{#- A list stays a list, a single value becomes a list of one, none becomes an empty list. -#}
{% macro _as_list(value) -%}
    {%- if value is none or value is undefined -%} {{ return([]) }}
    {%- elif value is string or value is mapping or value is not iterable -%} {{ return([value]) }}
    {%- else -%} {{ return(value | list) }}
    {%- endif -%}
{%- endmacro %}

{#- The names in `wanted` that `names` lacks, in their order; names are case-insensitive, as in Spark. -#}
{% macro _missing_names(wanted, names) -%}
    {%- set lower_names = names | map('lower') | list -%}
    {%- set missing = [] -%}
    {%- for name in wanted if (name | string | lower) not in lower_names -%}
        {%- do missing.append(name) -%}
    {%- endfor -%}
    {{- return(missing) -}}
{%- endmacro %}

{% macro _quoted_list(names) -%}
    {%- set quoted = [] -%}
    {%- for name in names -%} {%- do quoted.append(healing_tables._quoted(name)) -%} {%- endfor -%}
    {{- return(quoted) -}}
{%- endmacro %}

{#- key_1, key_2, .. for a list of keys. -#}
{% macro _key_names(keys) -%}
    {%- set names = [] -%}
    {%- for _ in keys -%} {%- do names.append('key_' ~ loop.index) -%} {%- endfor -%}
    {{- return(names | join(', ')) -}}
{%- endmacro %}

{#- The name in the relation's spelling, or none. -#}
{% macro _find_column(name, columns) -%}
    {%- for column in columns if column | lower == name | string | lower -%}
        {{- return(column) -}}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}

{#- {lower-case name: name}, to look up many names: the first of several, as _find_column(). -#}
{% macro _spellings(names) -%}
    {%- set spellings = {} -%}
    {%- for name in names -%}
        {%- do spellings.update({name | string | lower: name}) if name | string | lower not in spellings -%}
    {%- endfor -%}
    {{- return(spellings) -}}
{%- endmacro %}

{#- The type of a column, none if it cannot be looked up. -#}
{% macro _type_of_column(columns, name) -%}
    {%- set found = healing_tables._find_column(name, columns or {}) -%}
    {{- return(columns[found] if found is not none else none) -}}
{%- endmacro %}
