{#-
    The rows of sources with loaded_at since the marks of the last build. If they are few, one query reads them, and
    gives the new marks and the changed keys. If they are many, aggregates are queried: see _loaded_marks() and
    _rows_loaded_since().

    Of the time that is read again, the last load may have many rows: those loaded at one moment are one group, with
    their number and their hash. Only rows loaded later have keys.

    name | loaded           | is_past | is_new | is_in_last_overlap | is_counted | key_1 | type_1 | row_count | hash
    crm  | 1704067200000000 | true    | false  | true               | true       | NULL  | int    | 4000      | 18495605
    crm  | 1704153600000000 | true    | true   | false              | true       | =7    | int    | 1         | -2205401
-#}

{#-
    {source: mark}, each with `new_rows`, of the sources that have a last mark; {} where the groups are many.

    new_rows   the groups that count and are later than the last mark, as _recent_rows() selects them
-#}
{% macro _marks_of_recent_rows(scans, last_marks) -%}
    {%- set largest = 1000 -%}
    {%- set selects = [] -%}
    {%- for scan in scans if (last_marks.get(scan.name) or {}).get('loaded_until') is not none -%}
        {%- do selects.append(healing_tables._recent_rows(scan, last_marks[scan.name].loaded_until)) -%}
    {%- endfor -%}
    {%- set marks = {} -%}
    {%- if not selects -%} {{ return(marks) }} {%- endif -%}
    {%- set columns = [] -%}
    {%- for number in range(1, scans[0]['keys'] | length + 1) -%}
        {%- do columns.append('if(is_new, text_' ~ number ~ ', null) as key_' ~ number ~ ', type_' ~ number) -%}
    {%- endfor -%}
    {%- set found = run_query('select name, loaded, is_past, is_new, is_in_last_overlap, is_counted, '
        ~ (columns | join(', '))
        ~ ', count(*) as row_count, cast(sum(cast(hash as decimal(20,0))) as string) as hash from ('
        ~ (selects | join(' union all ')) ~ ') group by all limit ' ~ (largest + 1)).rows -%}
    {%- if found | length > largest -%} {{ return(marks) }} {%- endif -%}
    {%- set rows_of = {} -%}
    {%- for scan in scans -%} {%- do rows_of.update({scan.name: []}) -%} {%- endfor -%}
    {%- for row in found -%} {%- do rows_of[row['name']].append(row) -%} {%- endfor -%}
    {%- for scan in scans -%}
        {%- set rows = rows_of[scan.name] -%}
        {%- set newest = rows | selectattr('is_past') | map(attribute='loaded') | map('int') | max -%}
        {#- of a source that has lost its newest rows, all are read -#}
        {%- do marks.update({scan.name: healing_tables._mark_of_rows(rows, newest)}) if newest is defined -%}
    {%- endfor -%}
    {{- return(marks) -}}
{%- endmacro %}

{% macro _recent_rows(scan, until) -%}
    {%- set until_micros = healing_tables._instant_micros(until) -%}
    {%- set keys = [] -%}
    {%- for key in scan['keys'] -%}
        {#- the sign in front: a client may take an empty text, or 'null', for NULL; every snapshot has all keys -#}
        {%- set text = "'=' || cast(" ~ key ~ ' as string)' if scan.kind != 'snapshots' else 'cast(null as string)' -%}
        {%- do keys.append(text ~ ' as text_' ~ loop.index ~ ', typeof(' ~ key ~ ') as type_' ~ loop.index) -%}
    {%- endfor -%}
    {{- return(
        'select ' ~ healing_tables._string_literal(scan.name) ~ ' as name, ' ~ scan.loaded_at ~ ' as loaded, '
        ~ 'coalesce(' ~ healing_tables._is_past(scan) ~ ', false) as is_past, '
        ~ 'coalesce(' ~ healing_tables._compare_loaded_at(scan, '>', until_micros) ~ ', true) as is_new, '
        ~ 'coalesce(' ~ healing_tables._is_in_overlap(scan, until) ~ ', false) as is_in_last_overlap, '
        ~ 'coalesce(' ~ (scan.where if scan.is_row_local else 'true') ~ ', false) as is_counted, '
        ~ healing_tables._row_hash_of_source(scan) ~ ' as hash, ' ~ (keys | join(', ')) ~ ' from ' ~ scan.relation
        ~ healing_tables._where_loaded_since(scan, until)) -}}
{%- endmacro %}

{#- The mark of a source, as _loaded_marks() has it, from its recent rows. -#}
{% macro _mark_of_rows(rows, newest) -%}
    {%- set start = newest - healing_tables._overlap_micros() -%}
    {%- set overlap, last_overlap = [], [] -%}
    {%- for row in rows if row['is_counted'] -%}
        {%- do overlap.append(row) if row['is_past'] and (row['loaded'] | int) >= start -%}
        {%- do last_overlap.append(row) if row['is_in_last_overlap'] -%}
    {%- endfor -%}
    {{- return({
        'loaded_until': healing_tables._instant_text(newest),
        'overlap': healing_tables._count_and_hash(overlap),
        'last_overlap': healing_tables._count_and_hash(last_overlap),
        'rows_without_time': rows | rejectattr('is_past') | map(attribute='row_count') | map('int') | sum,
        'new_rows': rows | selectattr('is_counted') | selectattr('is_new') | list}) -}}
{%- endmacro %}

{#- As _overlap_hash() has it. -#}
{% macro _count_and_hash(rows) -%}
    {{- return((rows | map(attribute='row_count') | map('int') | sum) ~ ', '
        ~ (rows | map(attribute='hash') | map('int') | sum)) -}}
{%- endmacro %}

{#- The key of a recent row, as a row of VALUES; none where a literal might not be its value. -#}
{% macro _key_literals(row, columns) -%}
    {%- set literals = [] -%}
    {%- for number in range(1, columns + 1) -%}
        {%- set text, type = row['key_' ~ number], row['type_' ~ number] -%}
        {%- if not text or not modules.re.fullmatch('=[A-Za-z0-9 _.:@+-]{0,100}', text)
            or (type != 'string' and healing_tables._type_family(type) not in ['integer', 'decimal', 'date']) -%}
            {{- return(none) -}}
        {%- endif -%}
        {%- do literals.append('cast(' ~ healing_tables._string_literal(text[1:]) ~ ' as ' ~ type ~ ')') -%}
    {%- endfor -%}
    {{- return('(' ~ (literals | join(', ')) ~ ')') -}}
{%- endmacro %}
