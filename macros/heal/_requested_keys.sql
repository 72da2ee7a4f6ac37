{#- The keys that a run names: `heal_keys`, a list; `heal_where`, a condition on key columns; `heal_since`, a
    moment. -#}

{#- Selects of these keys: from each source, and from the stored table, which may have a key that no source has any
    more. -#}
{% macro _requested_keys(settings, existing) -%}
    {%- set listed = healing_tables._listed_key_conditions(settings) -%}
    {%- set where = healing_tables._close_line_comment(var('heal_where', none)) -%}
    {%- set stored = [] -%}
    {%- set named = [] -%}
    {%- for key in settings.key_columns -%}
        {%- do stored.append(healing_tables._quoted(key) ~ ' as key_' ~ loop.index) -%}
        {%- do named.append('key_' ~ loop.index ~ ' as ' ~ healing_tables._quoted(key)) -%}
    {%- endfor -%}
    {%- set stored = stored | join(', ') -%}
    {%- do healing_tables._placeholder_select('healing_table', {}, [
        {'argument': 'heal_where', 'relation': existing, 'condition': where, 'columns': settings.key_columns,
         'rows': '(select ' ~ (named | join(', ')) ~ ' from (select ' ~ stored ~ ' from ' ~ existing ~ '))'}]) -%}
    {%- set places = [{'rows': 'select ' ~ stored ~ ' from ' ~ existing, 'conditions': listed}] -%}
    {%- for scan in settings.metadata.scans -%}
        {%- set since = [healing_tables._heal_since_condition(scan)] if var('heal_since', none) is not none
            else [] -%}
        {%- set rows = healing_tables._read_rows(scan, scan.relation, 'true') -%}
        {%- do places.append({
            'rows': 'select * from (' ~ rows ~ ') where not is_truncation' if scan.truncated else rows,
            'conditions': listed + since}) -%}
    {%- endfor -%}
    {%- set selects = [] -%}
    {%- for place in places -%}
        {%- if place.conditions -%}
            {%- do selects.append(
                'select ' ~ healing_tables._key_names(settings.key_columns) ~ ' from (' ~ place.rows ~ ') where '
                ~ (place.conditions | join(' or '))) -%}
        {%- endif -%}
        {%- if where is not none -%}
            {#- it sees the key columns under their names, and nothing else; in `where (a)`, `where` can be an alias -#}
            {%- do selects.append('select ' ~ stored ~ ' from (select ' ~ (named | join(', ')) ~ ' from (' ~ place.rows
                ~ ')) where true and (' ~ where ~ ')') -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(selects) -}}
{%- endmacro %}

{#- A condition for each key in the list: a value, or a map where the key has several columns. -#}
{% macro _listed_key_conditions(settings) -%}
    {%- set conditions = [] -%}
    {%- set mistakes = [] -%}
    {%- for key in healing_tables._as_list(var('heal_keys', none)) -%}
        {%- set values = key if key is mapping else {settings.key_columns[0]: key} -%}
        {%- set parts = healing_tables._key_conditions(settings.key_columns, values) -%}
        {%- if parts | length != settings.key_columns | length or values | length != parts | length -%}
            {%- do healing_tables._mistake(
                mistakes, 'heal_keys', 'a value of each of ' ~ (settings.key_columns | join(', ')), key,
                "write e.g. --vars '{heal_keys: [1002, 1003]}'") -%}
        {%- endif -%}
        {%- do conditions.append('(' ~ (parts | join(' and ')) ~ ')') -%}
    {%- endfor -%}
    {%- if var('heal_since', none) is not none and healing_tables._parse_instant(var('heal_since')) is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'heal_since', "a moment in UTC such as '2024-01-01'", var('heal_since'), 'correct the text') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {{- return(conditions) -}}
{%- endmacro %}

{#- Rows that say something of the time from a moment on; who left at the first snapshot since then was in the one
    before. -#}
{% macro _heal_since_condition(scan) -%}
    {%- set since = healing_tables._micros_constant(var('heal_since')) -%}
    {%- if scan.kind != 'snapshots' -%}
        {#- a truncation says something of every key -#}
        {{- return('at >= ' ~ since ~ (' or coalesce(until >= ' ~ since ~ ', true)' if scan.until is not none)
            ~ (' or (select count(*) from ' ~ scan.relation ~ ' where ' ~ scan.truncated ~ ' and ' ~ scan.at ~ ' >= '
                ~ since ~ ') > 0' if scan.truncated else '')) -}}
    {%- endif -%}
    {%- if scan.within -%} {{ return('true') }} {%- endif -%}
    {{- return('at >= coalesce((' ~ healing_tables._snapshots_taken(scan) ~ ' select max(at) from taken where at < '
        ~ since ~ '), ' ~ since ~ ')') -}}
{%- endmacro %}
