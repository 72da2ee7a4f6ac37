{#- One place for quoting: identifiers, relations and text never reach SQL any other way. -#}

{% macro _id(name) -%}
    {%- if '${' in name | string -%}
        {{- exceptions.raise_compiler_error(
            'healing_tables: column ' ~ name ~ '\n  wanted: a name without ${\n  got:    ' ~ name
            ~ '\n  remedy: rename the column: Spark puts the value of a setting in the place of ${...}, also in quoted names') -}}
    {%- endif -%}
    {{- return('`' ~ (name | string | replace('`', '``')) ~ '`') -}}
{%- endmacro %}

{#- Text as one literal. Spark would put the value of a setting in the place of ${...}: an escaped dollar sign is none. -#}
{% macro _text(value) -%}
    {{- return("'" ~ (value | string | replace('\\', '\\\\') | replace("'", "\\'") | replace('${', '\\u0024{')) ~ "'") -}}
{%- endmacro %}

{#- The value of a setting of the session. -#}
{% macro _setting(name) -%}
    {{- return(run_query('set ' ~ healing_tables._id(name)).rows[0][1]) -}}
{%- endmacro %}

{#- A setting of the session; quoted, so that a comment that dbt appends is not taken for a part of the value. -#}
{% macro _set(name, value) -%}
    {%- do run_query('set ' ~ healing_tables._id(name) ~ ' = ' ~ healing_tables._id(value)) -%}
{%- endmacro %}

{#- A value of `current_values` as a SQL literal: true, 1 or 'Y'. -#}
{% macro _literal(value) -%}
    {%- if value is sameas true -%} {{ return('true') }}
    {%- elif value is sameas false -%} {{ return('false') }}
    {%- elif value is none -%} {{ return('null') }}
    {%- elif value is number -%} {{ return(value | string) }}
    {%- else -%} {{ return(healing_tables._text(value)) }}
    {%- endif -%}
{%- endmacro %}

{#- A list stays a list, a single value becomes a list of one, none becomes an empty list. -#}
{% macro _list(value) -%}
    {%- if value is none or value is undefined -%} {{ return([]) }}
    {%- elif value is string or value is mapping or value is not iterable -%} {{ return([value]) }}
    {%- else -%} {{ return(value | list) }}
    {%- endif -%}
{%- endmacro %}

{#- The names in `wanted` that `names` lacks, in their order; names compare without case, as in Spark. -#}
{% macro _missing(wanted, names) -%}
    {%- set known = names | map('lower') | list -%}
    {%- set missing = [] -%}
    {%- for name in wanted if (name | string | lower) not in known -%}
        {%- do missing.append(name) -%}
    {%- endfor -%}
    {{- return(missing) -}}
{%- endmacro %}
