{#- Parts of statements and messages that several files of this folder use. -#}

{#- Keys as key_1, key_2 .., as no name of a user is: parts of a select. -#}
{% macro _numbered_keys(layout) -%}
    {%- set named = [] -%}
    {%- for key in layout['keys'] -%} {%- do named.append(key.quoted ~ ' as key_' ~ loop.index) -%} {%- endfor -%}
    {{- return(named) -}}
{%- endmacro %}

{#- Whether a row of the log is of no key: a full batch, or a truncation. -#}
{% macro _has_no_key(layout) -%} {{ return(layout['keys'][0].quoted ~ ' is null') }} {%- endmacro %}

{#- NULL for each of these columns of the layout, in its type: parts of a select. -#}
{% macro _typed_nulls(columns) -%}
    {%- set nulls = [] -%}
    {%- for column in columns -%}
        {%- do nulls.append('cast(null as ' ~ column.type ~ ') as ' ~ column.quoted) -%}
    {%- endfor -%}
    {{- return(nulls) -}}
{%- endmacro %}

{#- The examples of some keys for a message: of several, with their number. -#}
{% macro _examples_of_keys(number, examples) -%}
    {{- return((number ~ ' keys: ' if number > 1) ~ examples ~ (' and ' ~ (number - 5) ~ ' more' if number > 5)) -}}
{%- endmacro %}
