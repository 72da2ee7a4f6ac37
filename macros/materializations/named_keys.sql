{#- The keys that a run names: `heal_keys`, a list; `heal_where`, a condition on key columns; `heal_since`, a moment. -#}

{% macro _names_keys() -%}
    {{- return(var('heal_keys', none) is not none or var('heal_where', none) is not none or var('heal_since', none) is not none) -}}
{%- endmacro %}

{#- Selects of these keys: from each source, and from the stored table, which may have a key that no source has any more. -#}
{% macro _named_keys(about, existing) -%}
    {%- set stored = [] -%}
    {%- set named = [] -%}
    {%- for key in about.key_columns -%}
        {%- do stored.append(healing_tables._id(key) ~ ' as key_' ~ loop.index) -%}
        {%- do named.append('key_' ~ loop.index ~ ' as ' ~ healing_tables._id(key)) -%}
    {%- endfor -%}
    {%- set conditions = healing_tables._named_conditions(about) -%}
    {%- set relations = {} -%}
    {%- do relations.update({'select ' ~ (stored | join(', ')) ~ ' from ' ~ existing: conditions}) if conditions -%}
    {%- for source in about.sources -%}
        {%- set since = [] -%}
        {%- if var('heal_since', none) is not none -%} {%- do since.append(healing_tables._since(source.reading)) -%} {%- endif -%}
        {%- do relations.update({healing_tables._read_rows(source.reading, source.reading.relation, 'true'): conditions + since}) -%}
    {%- endfor -%}
    {%- set selects = [] -%}
    {%- for rows, wanted in relations.items() -%}
        {%- do selects.append(
            'select ' ~ healing_tables._key_list(about) ~ ' from (select *, ' ~ (named | join(', ')) ~ ' from ('
            ~ rows ~ ')) where ' ~ (wanted | join(' or '))) -%}
    {%- endfor -%}
    {{- return(selects) -}}
{%- endmacro %}

{#- A key in the list is a value, or a map where the key has several columns. -#}
{% macro _named_conditions(about) -%}
    {%- set conditions = [] -%}
    {%- set mistakes = [] -%}
    {%- for key in healing_tables._list(var('heal_keys', none)) -%}
        {%- set values = key if key is mapping else {about.key_columns[0]: key} -%}
        {%- set parts = [] -%}
        {%- for column in about.key_columns if column in values -%}
            {%- do parts.append('cast(' ~ healing_tables._id(column) ~ ' as string) = ' ~ healing_tables._text(values[column])) -%}
        {%- endfor -%}
        {%- if parts | length != about.key_columns | length or values | length != parts | length -%}
            {%- do healing_tables._mistake(
                mistakes, 'heal_keys', 'a value of each of ' ~ (about.key_columns | join(', ')), key, "write e.g. --vars '{heal_keys: [1002, 1003]}'") -%}
        {%- endif -%}
        {%- do conditions.append('(' ~ (parts | join(' and ')) ~ ')') -%}
    {%- endfor -%}
    {%- if var('heal_since', none) is not none and healing_tables._parse_moment(var('heal_since')) is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'heal_since', "a moment in UTC such as '2024-01-01'", var('heal_since'), 'correct the text') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- if var('heal_where', none) is not none -%} {%- do conditions.append('(' ~ var('heal_where') ~ ')') -%} {%- endif -%}
    {{- return(conditions) -}}
{%- endmacro %}

{#- Rows that say something of the time from a moment on; who left at the first snapshot since then was in the one before. -#}
{% macro _since(reading) -%}
    {%- set since = healing_tables._constant_micros(var('heal_since')) -%}
    {%- if reading.kind != 'snapshots' -%} {{ return('at >= ' ~ since ~ (' or until >= ' ~ since if reading.until is not none)) }} {%- endif -%}
    {{- return('at >= coalesce((' ~ healing_tables._taken(reading) ~ ' select max(at) from taken where at < ' ~ since ~ '), ' ~ since ~ ')') -}}
{%- endmacro %}
