{#-
    Slots: places in finished SQL that a later step fills. A slot stands between two comments and has a default, so that
    the SQL also runs as it is. Finished SQL is changed in no other way.

    /* healing_tables hash */ sha2(...) /* healing_tables hash end */ as `row_hash`     ->     NULL as `row_hash`

    inputs   the CTEs that read the sources        hash    of a key or of a row
    order    one more column of the select         shard   the number of a shard
-#}
{% macro _slot(name, default=' ') -%}
    {{- return(healing_tables._slot_begin(name) ~ default ~ healing_tables._slot_end(name)) -}}
{%- endmacro %}

{% macro _slot_begin(name) -%} {{ return('/* healing_tables ' ~ name ~ ' */') }} {%- endmacro %}

{% macro _slot_end(name) -%} {{ return('/* healing_tables ' ~ name ~ ' end */') }} {%- endmacro %}

{% macro _has_slot(sql, name) -%} {{ return(healing_tables._slot_begin(name) in sql) }} {%- endmacro %}

{#- The SQL with `text` in a slot that it has `times` times; an error if it has another number of them. -#}
{% macro _fill_slot(sql, name, text, times=1) -%}
    {%- set parts = sql.split(healing_tables._slot_begin(name)) -%}
    {%- set filled, end = [parts[0]], healing_tables._slot_end(name) -%}
    {%- for part in parts[1:] if end in part -%} {%- do filled.append(part.split(end, 1)[1]) -%} {%- endfor -%}
    {%- if filled | length != times + 1 or parts | length != times + 1 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'the SQL of the model', 'the comment ' ~ healing_tables._slot_begin(name) ~ ' ' ~ times
            ~ ' times, each with its end', parts | length - 1,
            'take comments that begin with "healing_tables" out of the model and its options') -%}
        {%- do healing_tables._raise_mistakes(none, mistakes) -%}
    {%- endif -%}
    {{- return(filled | join(text | string)) -}}
{%- endmacro %}
