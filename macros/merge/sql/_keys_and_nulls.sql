{#- Parts of statements and messages that several files of this folder use. -#}

{#- Keys as key_1, key_2 .., as no name of a user is: parts of a select. -#}
{% macro _numbered_keys(layout) -%}
    {%- set named = [] -%}
    {%- for key in layout['keys'] -%} {%- do named.append(key.quoted ~ ' as key_' ~ loop.index) -%} {%- endfor -%}
    {{- return(named) -}}
{%- endmacro %}

{#- Whether a row of the log is of no key: a full batch, or a truncation. -#}
{% macro _has_no_key(layout) -%}
    {%- set keys = layout['keys'] if layout.has_null_keys else layout['keys'][:1] -%}
    {%- set conditions = [] -%}
    {%- for key in keys -%} {%- do conditions.append(key.quoted ~ ' is null') -%} {%- endfor -%}
    {{- return(conditions[0] if conditions | length == 1 else '(' ~ (conditions | join(' and ')) ~ ')') -}}
{%- endmacro %}

{#- Whether a row has the key of another one, whose keys are key_1, key_2 .. (see _numbered_keys()). Arguments: what
    comes before the names of the columns. -#}
{% macro _is_same_key(layout, row, numbered) -%}
    {%- set same, equals = [], healing_tables._key_operator(layout) -%}
    {%- for key in layout['keys'] -%}
        {%- do same.append(row ~ key.quoted ~ equals ~ numbered ~ 'key_' ~ loop.index) -%}
    {%- endfor -%}
    {{- return(same | join(' and ')) -}}
{%- endmacro %}

{#- Whether the key of a row, with other columns of it, is one of `rows`, SQL for a `from`. NULL is in no
    list, but an array with NULL in it is; of a struct, Spark would compare the columns. -#}
{% macro _is_key_of(layout, rows, others=[]) -%}
    {%- set columns = (layout['keys'] | map(attribute='quoted') | list + others) | join(', ') -%}
    {%- set key = 'array(struct(' ~ columns ~ '))' if layout.has_null_keys else '(' ~ columns ~ ')' -%}
    {{- return(key ~ ' in (select ' ~ (key if layout.has_null_keys else columns) ~ ' from ' ~ rows ~ ')') -}}
{%- endmacro %}

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
