{#- Infer the structure of a table of versions from its columns and rows, whichever program wrote it. -#}

{#-
    A `history`: {relation, columns {name: type}, start, end, current, version (columns; the last two may be none),
    keys, attributes, left_out (names), given (the arguments), facts (see _history_facts), unit (of inclusive ends, or
    'none'), notes}. Mistakes name the arguments that it needs. `given`: {valid_from, valid_to, is_current,
    current_values, valid_to_current}; each may be none, and is_current false, if there is no such column.
-#}
{% macro _guess_history(mistakes, relation, key, given) -%}
    {%- set start, end = given.valid_from, given.valid_to -%}
    {%- set columns = healing_tables._columns_of(relation) -%}
    {%- set named = healing_tables._first_named -%}
    {%- if 'dbt_valid_from' in columns -%}
        {%- do healing_tables._mistake(mistakes, 'relation', 'a table of another program', 'a dbt snapshot',
            'healing_tables.generate_model writes its model; see docs/leaving-dbt-snapshots.md') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set moments = 'date|timestamp' -%}
    {%- set history = {
        'relation': relation, 'columns': columns, 'notes': [], 'attributes': [], 'left_out': [], 'given': given,
        'start': named(columns, [start | lower] if start else healing_tables._names_of_starts(), moments),
        'end': named(columns, [end | lower] if end else healing_tables._names_of_ends(), moments),
        'current': none if given.is_current is sameas false
            else named(columns, [given.is_current | lower] if given.is_current else healing_tables._names_of_flags()),
        'version': named(columns, ['version', 'version_no', 'version_number', 'row_version'], '.*int|decimal')} -%}
    {%- for argument in ['start', 'end'] if history[argument] is none -%}
        {%- do healing_tables._mistake(mistakes, 'valid_from' if argument == 'start' else 'valid_to',
            'the column with the ' ~ argument ~ ' of a version, a date or a timestamp', (start if argument == 'start'
            else end) or 'no column with such a name', 'columns are ' ~ (columns | join(', '))) -%}
    {%- endfor -%}
    {%- do healing_tables._check_adopted_flag(mistakes, history) -%}
    {%- if mistakes -%} {{ return(history) }} {%- endif -%}
    {%- set generated = [history.start, history.end, history.current, history.version] -%}
    {%- for name in columns if name not in generated -%}
        {%- do history[('left_out' if healing_tables._is_named_like_metadata(name) else 'attributes')].append(name) -%}
    {%- endfor -%}
    {%- do history.update({'keys': healing_tables._keys_of_history(mistakes, history, key)}) -%}
    {%- if mistakes -%} {{ return(history) }} {%- endif -%}
    {%- do history.update({'attributes': history.attributes | reject('in', history['keys']) | list}) -%}
    {%- if history.current is none and given.is_current is none -%}
        {%- do history.update({'current': healing_tables._flag_by_values(history)}) -%}
        {%- do history.attributes.remove(history.current) if history.current is not none -%}
    {%- endif -%}
    {%- do history.update({'facts': healing_tables._history_facts(history)}) -%}
    {%- do healing_tables._note_history(history) -%}
    {{- return(history) -}}
{%- endmacro %}

{#- Whether the program that fills the table has generated a column: such columns are not attributes. -#}
{% macro _is_named_like_metadata(name) -%}
    {{- return(modules.re.search('^(dbt|dw|dwh|etl|meta)_|(^|_)(hash|hashdiff|hash_diff|checksum|md5|sk|surrogate_key|'
        ~ 'batch_id|load_id|row_id|compressed_row_count)$|^(created|inserted|updated|modified|loaded)_(at|on|date|ts)$',
        name | lower) is not none) -}}
{%- endmacro %}

{#- The given columns; or the column that is unique together with the start, preferably one whose values repeat. -#}
{% macro _keys_of_history(mistakes, history, given) -%}
    {%- set keys = [] -%}
    {%- for name in healing_tables._as_list(given) -%}
        {%- set found = healing_tables._first_named(history.columns, [name | lower]) -%}
        {%- do healing_tables._mistake(mistakes, 'key', 'columns of ' ~ history.relation, name,
            'columns are ' ~ (history.columns | join(', '))) if found is none -%}
        {%- do keys.append(found) -%}
    {%- endfor -%}
    {%- if keys -%} {{ return(keys) }} {%- endif -%}
    {%- set candidates, counts = [], [] -%}
    {%- for name in history.attributes if healing_tables._is_named_like_a_key(name) -%}
        {%- do candidates.append(name) -%}
        {%- set column = healing_tables._quoted(name) -%}
        {%- do counts.append('count(distinct ' ~ column ~ ') as keys_' ~ loop.index ~ ', count(distinct ' ~ column
            ~ ', ' ~ healing_tables._quoted(history.start) ~ ') as starts_' ~ loop.index) -%}
    {%- endfor -%}
    {%- set found, value_counts = [], [] -%}
    {%- if candidates -%}
        {%- set row = run_query('select count(*) as all_rows, ' ~ (counts | join(', ')) ~ ' from '
            ~ history.relation).rows[0] -%}
        {%- for name in candidates -%}
            {%- set keys, starts = row['keys_' ~ loop.index], row['starts_' ~ loop.index] -%}
            {%- do found.append([keys < row['all_rows'], keys, name]) if starts == row['all_rows'] -%}
            {%- do value_counts.append(name ~ ' (' ~ keys ~ ' values, ' ~ starts ~ ' with the start, in '
                ~ row['all_rows']
                ~ ' rows)') -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if not found -%}
        {%- do healing_tables._mistake(mistakes, 'key', 'the column of the business key', 'none that is unique with '
            ~ history.start, 'give key, a name or a list of names' ~ (': ' ~ (value_counts | join(', '))
                if value_counts)) -%}
        {{- return([]) -}}
    {%- endif -%}
    {%- set chosen = (found | selectattr(0) | list or found)[0][2] -%}
    {%- do history.notes.append(chosen ~ ' is the key: no two rows have it and ' ~ history.start ~ ' in common') -%}
    {{- return([chosen]) -}}
{%- endmacro %}

{#-
    In one query: {all_rows, no_place (without a key or a start), doubled (rows that share key and start), no_end
    (NULL), marker (the latest open end, as text), overlapping, empty, flag_open, flag_closed, units {unit: rows
    that end this long before the next one starts}}.
-#}
{% macro _history_facts(history) -%}
    {%- set keys, start = healing_tables._quoted_list(history['keys']), healing_tables._quoted(history.start) -%}
    {%- set end, type = healing_tables._quoted(history.end), history.columns[history.end] -%}
    {%- set flag = healing_tables._quoted(history.current) if history.current is not none else 'null' -%}
    {%- set query %}
with ordered as (
    select {{ start }} as start, {{ end }} as ends, {{ healing_tables._is_open_end(history) }} as is_open,
        cast({{ flag }} as string) as flag,
        {{ keys | join(' is null or ') }} is null or {{ start }} is null as no_place,
        lead({{ start }}) over (partition by {{ keys | join(', ') }} order by {{ start }}, {{ end }} nulls last)
            as following,
        count(*) over (partition by {{ keys | join(', ') }}, {{ start }}) as sharing
    from {{ history.relation }}
)
select count(*) as all_rows, count_if(no_place) as no_place, count_if(not no_place and sharing > 1) as doubled,
    count_if(ends is null) as no_end,
    {{ healing_tables._as_text('max(ends) filter (where is_open)', type) }} as marker,
    count_if(not no_place and following is not null and (ends is null or following < ends)) as overlapping,
    count_if(ends <= start) as empty,
    {%- for unit in healing_tables._inclusive_units(type) %}
    count_if(not no_place and following = {{ healing_tables._end_after('ends', unit) }}) as next_{{ loop.index0 }},
    {%- endfor %}
    max_by(flag, start) filter (where is_open) as flag_open,
    {#- a closed row may have the flag of an open one by mistake #}
    get(array_except(collect_set(flag), array(max_by(flag, start) filter (where is_open))), 0) as flag_closed
from ordered
    {%- endset -%}
    {%- set row, units = run_query(query).rows[0], {} -%}
    {%- for unit in healing_tables._inclusive_units(type) -%}
        {%- do units.update({unit: row['next_' ~ loop.index0] | int}) -%}
    {%- endfor -%}
    {{- return(dict(healing_tables._row_map(row), units=units)) -}}
{%- endmacro %}

{#- The units by which a version may end before the next one starts; none: they touch. -#}
{% macro _inclusive_units(type) -%}
    {{- return(['none', 'day'] if type == 'date' else ['none', 'day', 'second', 'millisecond', 'microsecond']) -}}
{%- endmacro %}

{% macro _end_after(end, unit) -%}
    {%- set lengths = {'day': "'1' day", 'second': "'1' second", 'millisecond': "'0.001' second",
        'microsecond': "'0.000001' second"} -%}
    {{- return(end ~ (' + interval ' ~ lengths[unit] if unit != 'none')) -}}
{%- endmacro %}

{#- Derive the unit of inclusive ends from the facts, and a note for each finding. -#}
{% macro _note_history(history) -%}
    {%- set facts, notes, given = history.facts, history.notes, history.given -%}
    {%- do notes.append(history.start ~ ' is the start' ~ (' (valid_from)' if given.valid_from is none)) -%}
    {%- do notes.append(history.end ~ ' is the end' ~ (' (valid_to)' if given.valid_to is none) ~ ', open if it is '
        ~ (facts.marker or 'NULL') ~ (' or NULL' if facts.marker is not none and facts.no_end)
        ~ (' (valid_to_current)' if given.valid_to_current is none)) -%}
    {%- do notes.append('no column is a flag of the current row (is_current)' if history.current is none
        else history.current ~ ' is the flag of the current row' ~ (' (is_current)' if not given.is_current)
            ~ ': ' ~ healing_tables._adopted_flags(history) | join(' and ')
            ~ (' (current_values)' if given.current_values is none)) -%}
    {%- set most = facts.units.values() | max -%}
    {%- set chosen = [] -%}
    {%- for unit, count in facts.units.items() if count == most -%} {%- do chosen.append(unit) -%} {%- endfor -%}
    {%- do history.update({'unit': chosen[0]}) -%}
    {%- if history.unit != 'none' -%}
        {%- do notes.append(history.end ~ ' is inclusive: ' ~ healing_tables._counted(most, 'row')
            ~ (' ends one ' if most == 1 else ' end one ') ~ history.unit
            ~ ' before the next one starts; in the model, an end is the moment at which the next version starts') -%}
    {%- endif -%}
    {%- for count, text in [
        (facts.no_place, 'without a key or a start: set aside'),
        (facts.empty, 'with an end before the start, or at that moment: set aside'),
        (facts.overlapping, 'with an end after the start of the next row of the key: ended there'),
        (facts.doubled, 'with the key and start of another row: a build fails on them; exclude the wrong ones in the '
            ~ 'select below')] if count -%}
        {%- do notes.append(healing_tables._counted(count, 'row') ~ ' ' ~ text) -%}
    {%- endfor -%}
    {%- if history.left_out -%}
        {%- do notes.append('left out, as written by the old program: ' ~ (history.left_out | join(', '))) -%}
    {%- endif -%}
{%- endmacro %}
