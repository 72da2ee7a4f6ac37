{#- Print an `explained` (see _explained()), for one key, to the terminal. -#}

{% macro _print_explained(explained) -%}
    {%- do healing_tables._print_part('Rules', ['attribute', 'from', 'rule', 'type', 'a version shows'],
        healing_tables._fields(explained.rules, ['attribute', 'from', 'rule', 'scd_type', 'shows'])) -%}
    {%- do healing_tables._print_part('Rows of the sources', ['source', 'moment', 'became', 'values'],
        healing_tables._fields(explained.rows, ['source', 'moment', 'became', 'says']), 160) -%}
    {%- set has_overruled = explained.slices | selectattr('overruled') | list | length > 0 -%}
    {%- do healing_tables._print_part(
        'Timeline: ● new values, │ has the key, ○ the key ends',
        ['slice', 'from'] + explained.sources + ['version', 'attribute', 'value', 'by']
            + (['overruled by'] if has_overruled else []),
        healing_tables._timeline_lines(explained, has_overruled), 100) -%}
    {%- do healing_tables._print_part('Versions', ['version', 'valid_from', 'valid_to', 'slices', 'opened by'],
        healing_tables._fields(explained.versions, ['version', 'valid_from', 'valid_to', 'slices', 'opened_by'])) -%}
    {%- set known = ['known_from', 'known_to', 'valid_from', 'valid_to', 'says'] -%}
    {%- do healing_tables._print_part('What was known', known[:4] + ['values'],
        healing_tables._fields(explained.published, known), 100) if explained.published -%}
{%- endmacro %}

{#- One line per changed or overruled value, one for a slice without any. Time runs downwards; each source and the
    versions have a column. -#}
{% macro _timeline_lines(explained, has_overruled) -%}
    {%- set lines = [] -%}
    {%- for slice in explained.slices -%}
        {%- set before = none if loop.first else explained.slices[loop.index0 - 1].version -%}
        {%- for value in slice.changes + slice.overruled or [none] -%}
            {%- set begins = loop.first -%}
            {%- set line = [slice.slice or 'gap', slice.valid_from] if begins else ['', ''] -%}
            {%- for source in slice.sources -%}
                {%- do line.append(('●' if source.present else '○') if begins and source.changed
                    else '│' if source.present else '') -%}
            {%- endfor -%}
            {%- do line.append('' if slice.version is none else '● ' ~ slice.version
                if begins and slice.version != before else '│') -%}
            {%- set is_overruled = value and value.why is defined -%}
            {%- do line.extend([value.attribute, value.value,
                value.source if is_overruled else value.owner or '(no source)'] if value else ['', '', '']) -%}
            {%- do line.append(value.owner ~ ' (' ~ value.why ~ ')' if is_overruled else '') if has_overruled -%}
            {%- do lines.append(line) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(lines) -}}
{%- endmacro %}

{% macro _print_part(title, header, rows, longest=60) -%}
    {%- do healing_tables._print('') -%}
    {%- do healing_tables._print('  ' ~ title) -%}
    {%- do healing_tables._print_table(header, rows, longest) -%}
{%- endmacro %}

{#- A moment as the dimension shows it: a date if all moments are dates. -#}
{% macro _display_moment(spec, moment, open='(open)') -%}
    {%- if moment is none -%} {{ return(open) }} {%- endif -%}
    {{- return(moment[:10] if spec.moment_type == 'date' else moment) -}}
{%- endmacro %}
