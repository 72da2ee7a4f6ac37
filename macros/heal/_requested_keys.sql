{#- The keys that a run names: `heal_keys`, a list; `heal_where`, a condition on key columns; `heal_since`, a moment. -#}

{% macro _names_keys() -%}
    {{- return(var('heal_keys', none) is not none or var('heal_where', none) is not none or var('heal_since', none) is not none) -}}
{%- endmacro %}

{#- Selects of these keys: from each source, and from the stored table, which may have a key that no source has any more. -#}
{% macro _named_keys(about, existing) -%}
    {%- set listed = healing_tables._listed_keys(about) -%}
    {%- set where = healing_tables._whole_lines(var('heal_where', none)) -%}
    {%- set stored = [] -%}
    {%- set named = [] -%}
    {%- for key in about.key_columns -%}
        {%- do stored.append(healing_tables._id(key) ~ ' as key_' ~ loop.index) -%}
        {%- do named.append('key_' ~ loop.index ~ ' as ' ~ healing_tables._id(key)) -%}
    {%- endfor -%}
    {%- set stored = stored | join(', ') -%}
    {%- do healing_tables._not_looked_up('healing_table', {}, [
        {'argument': 'heal_where', 'relation': existing, 'condition': where, 'columns': about.key_columns,
         'rows': '(select ' ~ (named | join(', ')) ~ ' from (select ' ~ stored ~ ' from ' ~ existing ~ '))'}]) -%}
    {%- set places = [{'rows': 'select ' ~ stored ~ ' from ' ~ existing, 'conditions': listed}] -%}
    {%- for source in about.sources -%}
        {%- set since = [healing_tables._since(source.reading)] if var('heal_since', none) is not none else [] -%}
        {%- do places.append({
            'rows': healing_tables._read_rows(source.reading, source.reading.relation, 'true'), 'conditions': listed + since}) -%}
    {%- endfor -%}
    {%- set selects = [] -%}
    {%- for place in places -%}
        {%- if place.conditions -%}
            {%- do selects.append(
                'select ' ~ healing_tables._key_list(about) ~ ' from (' ~ place.rows ~ ') where ' ~ (place.conditions | join(' or '))) -%}
        {%- endif -%}
        {%- if where is not none -%}
            {#- it sees the key columns under their names, and nothing else -#}
            {%- do selects.append('select ' ~ stored ~ ' from (select ' ~ (named | join(', ')) ~ ' from (' ~ place.rows ~ ')) where (' ~ where ~ ')') -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(selects) -}}
{%- endmacro %}

{#- A condition for each key in the list: a value, or a map where the key has several columns. -#}
{% macro _listed_keys(about) -%}
    {%- set conditions = [] -%}
    {%- set mistakes = [] -%}
    {%- for key in healing_tables._list(var('heal_keys', none)) -%}
        {%- set values = key if key is mapping else {about.key_columns[0]: key} -%}
        {%- set parts = healing_tables._said_keys(about.key_columns, values) -%}
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
    {{- return(conditions) -}}
{%- endmacro %}

{#- Rows that say something of the time from a moment on; who left at the first snapshot since then was in the one before. -#}
{% macro _since(reading) -%}
    {%- set since = healing_tables._constant_micros(var('heal_since')) -%}
    {%- if reading.kind != 'snapshots' -%} {{ return('at >= ' ~ since ~ (' or coalesce(until >= ' ~ since ~ ', true)' if reading.until is not none)) }} {%- endif -%}
    {{- return('at >= coalesce((' ~ healing_tables._taken(reading) ~ ' select max(at) from taken where at < ' ~ since ~ '), ' ~ since ~ ')') -}}
{%- endmacro %}
