{#-
    `since` and `until` of a source: its rows apply within [since, until), and not outside.

    log  id | at         | name      since: 2024-02-01    id | at         | name
         1  | 2024-01-01 | Ann                       ->   1  | 2024-02-01 | Bea
         1  | 2024-01-15 | Bea       until: 2024-04-01    1  | 2024-03-01 | Eve
         1  | 2024-03-01 | Eve                            1  | 2024-04-01 | (the source has no key 1)
         1  | 2024-05-01 | Dan

    A moment before `since` counts as `since`, and the last such row gives the state. At `until` every state ends.
-#}
{% macro _source_window(mistakes, at, given) -%}
    {%- set cut = {'cut_from': none, 'cut_to': none} -%}
    {%- for option, name in {'since': 'cut_from', 'until': 'cut_to'}.items()
        if given.get(option) is not none and given.get(option) is not undefined -%}
        {%- if healing_tables._parse_instant(given[option]) is none -%}
            {%- do healing_tables._mistake(
                mistakes, at ~ '.' ~ option, "a moment in UTC such as '2024-06-01' or '2024-06-01 12:00:00'",
                given[option], 'correct the text') -%}
        {%- else -%}
            {%- do cut.update({name: given[option] | string}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if cut.cut_from is not none and cut.cut_to is not none
        and healing_tables._parse_instant(cut.cut_from) >= healing_tables._parse_instant(cut.cut_to) -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.since', 'a moment before until, ' ~ cut.cut_to, cut.cut_from,
            'exchange them, or leave the source out') -%}
    {%- endif -%}
    {{- return(cut) -}}
{%- endmacro %}

{#- A cut at the end of time or after it would cut off nothing, or everything. -#}
{% macro _check_source_windows(mistakes, spec) -%}
    {%- for source in spec.sources -%}
        {%- for option, value in {'since': source.cut_from, 'until': source.cut_to}.items() if value is not none -%}
            {%- set end = healing_tables._end_of_time_text(spec.valid_to_current) -%}
            {%- if healing_tables._parse_instant(value) >= (healing_tables._parse_instant(end) or []) -%}
                {%- do healing_tables._mistake(
                    mistakes, 'sources.' ~ source.name ~ '.' ~ option, 'a moment before the end of time, ' ~ end,
                    value, 'leave it out') -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}

{#- Whether rows before `since` are moved to it row by row; the rows of full snapshots are moved by their
    calendar. -#}
{% macro _is_clamped_to_since(source) -%}
    {{- return(source.cut_from is not none and not healing_tables._has_absence_deletes(source)) -}}
{%- endmacro %}

{#- A cut within a day is a boundary that a date cannot represent. -#}
{% macro _window_splits_a_day(source) -%}
    {%- for value in [source.cut_from, source.cut_to] if value is not none -%}
        {%- if modules.re.match('^00:00:00([.]0*)?$', healing_tables._parse_instant(value)[1]) is none -%}
            {{- return(true) -}}
        {%- endif -%}
    {%- endfor -%}
    {{- return(false) -}}
{%- endmacro %}

{#- The moment of a row on the timeline. -#}
{% macro _windowed_moment(source) -%}
    {%- set moment = healing_tables._source_moment(source) -%}
    {%- if not healing_tables._is_clamped_to_since(source) -%} {{ return(moment) }} {%- endif -%}
    {{- return('greatest(' ~ moment ~ ', ' ~ healing_tables._micros_constant(source.cut_from) ~ ')') -}}
{%- endmacro %}

{#- The end of a row on the timeline. `until`: its own end, or none. none if the rows of the source have no end. -#}
{% macro _windowed_end(source, until) -%}
    {%- if source.cut_to is none -%} {{ return(until) }} {%- endif -%}
    {%- set cut_to = healing_tables._micros_constant(source.cut_to) -%}
    {#- least() skips NULLs: an open row ends at the cut #}
    {{- return(cut_to if until is none else 'least(' ~ until ~ ', ' ~ cut_to ~ ')') -}}
{%- endmacro %}

{#- The conditions of rows that apply within the cut, to add to a `where`. -#}
{% macro _window_conditions(source) -%}
    {%- set conditions = [] -%}
    {%- if source.cut_to is not none -%}
        {%- do conditions.append(healing_tables._source_moment(source) ~ ' < '
            ~ healing_tables._micros_constant(source.cut_to)) -%}
    {%- endif -%}
    {%- if source.cut_from is not none and source.kind == 'periods' -%}
        {%- do conditions.append(
            'coalesce(' ~ healing_tables._to_micros(healing_tables._quoted(source.until),
                healing_tables._source_column_type(source, source.until))
            ~ ' > ' ~ healing_tables._micros_constant(source.cut_from) ~ ', true)') -%}
    {%- endif -%}
    {{- return(conditions) -}}
{%- endmacro %}
