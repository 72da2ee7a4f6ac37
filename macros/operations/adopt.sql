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
{% macro adopt(
    relation=none, key=none, valid_from=none, valid_to=none, is_current=none, current_values=none,
    valid_to_current=none, file=none
) -%}
    {%- set mistakes = [] -%}
    {%- set table = healing_tables._resolve_relation(mistakes, 'relation', relation) -%}
    {%- do healing_tables._raise_mistakes('adopt', mistakes) -%}
    {%- set history = healing_tables._guess_history(mistakes, table, key, {
        'valid_from': valid_from, 'valid_to': valid_to, 'is_current': is_current, 'current_values': current_values,
        'valid_to_current': valid_to_current}) -%}
    {%- do healing_tables._raise_mistakes('adopt', mistakes) -%}
    {%- set name = table.identifier | lower -%}
    {%- do healing_tables._print_code('adopt', '-- models/' ~ name ~ '.sql\n'
        ~ healing_tables._adopting_model(history, healing_tables._reference_to(relation)) ~ '\n\n# models/' ~ name
        ~ '.yml\n' ~ healing_tables._generated_yml(name, history['keys'], healing_tables._adopted_names(history)),
        file) -%}
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

{#- The rows of the table with half-open periods, as a select. `is_repaired`: a row that overlaps the next one ends
    where that one starts; otherwise the rows are as they are, and have their flag. -#}
{% macro _select_history(history, reference, is_repaired=true) -%}
    {%- set id, end = healing_tables._quoted, healing_tables._quoted(history.end) -%}
    {%- if history.facts.marker is not none -%}
        {%- set end = 'if(' ~ healing_tables._is_open_end(history) ~ ', null, ' ~ end ~ ')' -%}
    {%- endif -%}
    {%- set end = healing_tables._end_after(end, history.unit) -%}
    {%- if history.facts.overlapping and is_repaired -%}
        {%- set end = 'least(' ~ end ~ ', lead(' ~ id(history.start) ~ ') over (partition by '
            ~ (healing_tables._quoted_list(history['keys']) | join(', '))
            ~ ' order by ' ~ id(history.start) ~ '))' -%}
    {%- endif -%}
    {%- set columns = healing_tables._quoted_list(history['keys'] + history.attributes)
        + [id(history.start) ~ ' as valid_from', end ~ ' as valid_to'] -%}
    {%- do columns.append('cast(' ~ id(history.current) ~ ' as string) as is_current')
        if history.current is not none and not is_repaired -%}
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
    {%- set flags = healing_tables._adopted_flags(history) -%}
    {%- do options.update({'current_values': flags}) if history.current is not none and flags[0] is not none
        and history.columns[history.current] != 'boolean' -%}
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
        {%- set shown = "'" ~ value ~ "'" if value is string else value | string -%}
        {%- do lines.append('    ' ~ name ~ '=' ~ shown ~ (',' if not loop.last)) -%}
    {%- endfor -%}
    {{- return(lines | join('\n') ~ '\n) }}') -}}
{%- endmacro %}

{#- Print how the versions of the model differ from the rows of the table as it is, by key and start; an open end is
    NULL on both sides. -#}
{% macro _print_adoption(history) -%}
    {%- set rows = healing_tables._select_history(history, history.relation) -%}
    {%- set options = healing_tables._adopting_options(history) -%}
    {%- set dimension = healing_tables.dimension(
        {'history': {'relation': 'history', 'valid_from': 'valid_from', 'valid_to': 'valid_to'}},
        key_columns=options.key_columns, attributes=options.attributes, column_types=options.column_types,
        valid_to_current=none, current_values=options.get('current_values')) -%}
    {%- set columns = healing_tables._quoted_list(history['keys'] + history.attributes + ['valid_from', 'valid_to']) -%}
    {%- do columns.append('cast(is_current as string) as is_current') if history.current is not none -%}
    {%- set stored_rows = '(\n' ~ healing_tables._select_history(history, history.relation, is_repaired=false)
        ~ '\n)' -%}
    {%- set made = 'with history as (\n' ~ rows ~ '\n)\nselect ' ~ (columns | join(', ')) ~ ' from (\n' ~ dimension
        ~ '\n)' -%}
    {%- set inputs = healing_tables._row_report_inputs_of(
        {'key_columns': history['keys'], 'valid_from': 'valid_from'}, stored_rows, made,
        healing_tables._query_columns('select * from ' ~ stored_rows),
        healing_tables._query_columns(made), 'rebuilt') -%}
    {%- set found = healing_tables._row_report(inputs) -%}
    {%- do healing_tables._print_differences(history.relation ~ ' against this model', inputs, found) -%}
{%- endmacro %}
