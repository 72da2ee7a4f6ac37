{#-
    Print a model that has a table of versions of another program as its history, with the same columns, and how the
    rows of that model differ from the table:

    customer_id | city | start_date | end_date   | current_flag
    1           | Oslo | 2024-01-01 | 2024-02-29 | N
    1           | Rome | 2024-03-01 | 9999-12-31 | Y

    with history as (
        select customer_id, city, start_date as valid_from,
            if(year(end_date) >= 2100, null, end_date) + interval '1' day as valid_to from ...
    )
    {{ healing_tables.dimension({'history': {'relation': 'history', 'valid_from': ..., 'valid_to': ...}}, ...) }}
-#}
{% macro adopt(relation=none, key=none, valid_from=none, valid_to=none) -%}
    {%- set mistakes = [] -%}
    {%- set table = healing_tables._resolve_relation(mistakes, 'relation', relation) -%}
    {%- do healing_tables._raise_mistakes('adopt', mistakes) -%}
    {%- set history = healing_tables._guess_history(mistakes, table, key, valid_from, valid_to) -%}
    {%- do healing_tables._raise_mistakes('adopt', mistakes) -%}
    {%- set name = table.identifier | lower -%}
    {%- do healing_tables._print('-- models/' ~ name ~ '.sql') -%}
    {%- do healing_tables._print(healing_tables._adopting_model(history, healing_tables._reference_to(relation))) -%}
    {%- do healing_tables._print('\n# models/' ~ name ~ '.yml') -%}
    {%- do healing_tables._print(healing_tables._generated_yml(name, history['keys'],
        healing_tables._adopted_names(history))) -%}
    {%- do healing_tables._print('') -%}
    {%- if history.facts.doubled -%}
        {%- do healing_tables._report('adopt', table, 'not compared, since rows share key and start; see '
            ~ 'healing_tables.diagnose') -%}
    {%- else -%}
        {%- do healing_tables._print_adoption(history) -%}
    {%- endif -%}
{%- endmacro %}

{#- The generated columns, with their names in the table; none for missing ones. -#}
{% macro _adopted_names(history) -%}
    {{- return({
        'valid_from': history.start, 'valid_to': history.end, 'is_current': history.current,
        'version': history.version}) -}}
{%- endmacro %}

{#- The rows of the table with half-open periods, as a select. -#}
{% macro _select_history(history, reference) -%}
    {%- set id, end = healing_tables._id, healing_tables._id(history.end) -%}
    {%- if history.facts.marker is not none -%} {%- set end = 'if(year(' ~ end ~ ') >= 2100, null, ' ~ end ~ ')' -%}
    {%- endif -%}
    {%- set end = healing_tables._end_after(end, history.unit) -%}
    {%- if history.facts.overlapping -%}
        {%- set end = 'least(' ~ end ~ ', lead(' ~ id(history.start) ~ ') over (partition by '
            ~ (healing_tables._ids(history['keys']) | join(', '))
            ~ ' order by ' ~ id(history.start) ~ '))' -%}
    {%- endif -%}
    {%- set columns = healing_tables._ids(history['keys'] + history.attributes)
        + [id(history.start) ~ ' as valid_from', end ~ ' as valid_to'] -%}
    {{- return('    select\n        ' ~ (columns | join(',\n        ')) ~ '\n    from ' ~ reference) -}}
{%- endmacro %}

{#- The arguments of dimension() besides its source. -#}
{% macro _adopting_options(history) -%}
    {%- set types = {} -%}
    {%- for name in history['keys'] + history.attributes -%}
        {%- do types.update({name: history.columns[name]}) -%}
    {%- endfor -%}
    {%- do types.update({'valid_from': history.columns[history.start], 'valid_to': history.columns[history.end]}) -%}
    {%- set names = {} -%}
    {%- for generated, name in healing_tables._adopted_names(history).items() if name != generated -%}
        {%- do names.update({generated: name}) -%}
    {%- endfor -%}
    {%- set options = {'key_columns': history['keys'], 'attributes': history.attributes, 'column_types': types} -%}
    {%- do options.update({'column_names': names}) if names -%}
    {%- set open_end = history.facts.marker if not history.facts.no_end else none -%}
    {%- do options.update({'valid_to_current': open_end}) if open_end is none or not open_end.startswith('9999-12-31')
        or open_end | length > 10 and not open_end.endswith(' 00:00:00') -%}
    {%- if history.current is not none and history.columns[history.current] != 'boolean'
        and history.facts.flag_open is not none -%}
        {%- do options.update({'current_values': [history.facts.flag_open, history.facts.flag_closed]}) -%}
    {%- endif -%}
    {{- return(options) -}}
{%- endmacro %}

{% macro _adopting_model(history, reference) -%}
    {%- set lines = ["{{ config(materialized='healing_table', unique_key="
        ~ (history['keys'][0] | tojson if history['keys'] | length == 1 else history['keys'] | string) ~ ") }}", '{#-',
        '    Adopted from ' ~ history.relation ~ ':'] -%}
    {%- for note in history.notes -%} {%- do lines.append('    - ' ~ note) -%} {%- endfor -%}
    {%- do lines.extend(['-#}', 'with history as (', healing_tables._select_history(history,
        '{{ ' ~ reference ~ ' }}'), ')', '{{ healing_tables.dimension(',
        "    {'history': {'relation': 'history', 'valid_from': 'valid_from', 'valid_to': 'valid_to'}},"]) -%}
    {%- for name, value in healing_tables._adopting_options(history).items() -%}
        {%- do lines.append('    ' ~ name ~ '=' ~ (value | string) ~ (',' if not loop.last)) -%}
    {%- endfor -%}
    {{- return(lines | join('\n') ~ '\n) }}') -}}
{%- endmacro %}

{#- Print how the versions of the model differ from the rows of the table, by key and start; an open end is NULL on both
    sides. -#}
{% macro _print_adoption(history) -%}
    {%- set rows = healing_tables._select_history(history, history.relation) -%}
    {%- set options = healing_tables._adopting_options(history) -%}
    {%- set dimension = healing_tables.dimension(
        {'history': {'relation': 'history', 'valid_from': 'valid_from', 'valid_to': 'valid_to'}},
        key_columns=options.key_columns, attributes=options.attributes, column_types=options.column_types,
        valid_to_current=none) -%}
    {%- set columns = healing_tables._ids(history['keys'] + history.attributes + ['valid_from', 'valid_to']) -%}
    {%- set stored_rows = '(\n' ~ rows ~ '\n)' -%}
    {%- set made = 'with history as (\n' ~ rows ~ '\n)\nselect ' ~ (columns | join(', ')) ~ ' from (\n' ~ dimension
        ~ '\n)' -%}
    {%- set inputs = healing_tables._row_report_inputs_of(
        {'key_columns': history['keys'], 'valid_from': 'valid_from'}, stored_rows, made,
        healing_tables._query_columns('select * from ' ~ stored_rows),
        healing_tables._query_columns(made), 'rebuilt') -%}
    {%- set found = healing_tables._row_report(inputs) -%}
    {%- do healing_tables._print_differences(history.relation ~ ' against this model', inputs, found) -%}
{%- endmacro %}
