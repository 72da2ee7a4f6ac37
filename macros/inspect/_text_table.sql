{#-
    Print an aligned table: `header` is a list of names, `rows` a list of lists. none is printed as NULL, and long texts
    are truncated.
-#}
{% macro _print_table(header, rows, longest=60) -%}
    {%- set lines = [header] -%}
    {%- for row in rows -%}
        {%- set cells = [] -%}
        {%- for cell in row -%}
            {%- set text = 'NULL' if cell is none else healing_tables._plain_names(cell) | replace('\n', '\\n') -%}
            {%- do cells.append(text if text | length <= longest else text[:longest - 3] ~ '...') -%}
        {%- endfor -%}
        {%- do lines.append(cells) -%}
    {%- endfor -%}
    {%- set widths = [] -%}
    {%- for name in header -%}
        {%- set position = loop.index0 -%}
        {%- set lengths = [] -%}
        {%- for line in lines -%} {%- do lengths.append(line[position] | length) -%} {%- endfor -%}
        {%- do widths.append(lengths | max) -%}
    {%- endfor -%}
    {%- for line in lines -%}
        {%- set padded = [] -%}
        {%- for cell in line -%}
            {%- do padded.append(cell ~ ' ' * (widths[loop.index0] - cell | length)) -%}
        {%- endfor -%}
        {%- do healing_tables._print('  ' ~ (padded | join(' | '))) -%}
        {%- if loop.first -%}
            {%- set rules = [] -%}
            {%- for width in widths -%} {%- do rules.append('-' * width) -%} {%- endfor -%}
            {%- do healing_tables._print('  ' ~ (rules | join(' | '))) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- The rows of a table: of each entry, the fields with these names. -#}
{% macro _fields(entries, names) -%}
    {%- set rows = [] -%}
    {%- for entry in entries -%}
        {%- set row = [] -%}
        {%- for name in names -%} {%- do row.append(entry[name]) -%} {%- endfor -%}
        {%- do rows.append(row) -%}
    {%- endfor -%}
    {{- return(rows) -}}
{%- endmacro %}

{#- A table as Markdown. Texts are escaped: they stay in one cell, and are not read as Markdown or HTML. -#}
{% macro _markdown_table(header, rows, longest=60) -%}
    {%- set lines = [] -%}
    {%- for row in [header] + rows -%}
        {%- set cells = [] -%}
        {%- for cell in row -%}
            {%- set text = 'NULL' if cell is none else cell | string | replace('\n', '\\n') -%}
            {%- set text = text if text | length <= longest else text[:longest - 3] ~ '...' -%}
            {%- do cells.append(modules.re.sub('([\\\\|`*_<>&~]|\\[|\\])', '\\\\\\1', text)) -%}
        {%- endfor -%}
        {%- do lines.append('| ' ~ (cells | join(' | ')) ~ ' |') -%}
        {%- if loop.first -%} {%- do lines.append('|' ~ ' --- |' * (header | length)) -%} {%- endif -%}
    {%- endfor -%}
    {{- return(lines | join('\n')) -}}
{%- endmacro %}

{% macro _print(text) -%}
    {%- do log(healing_tables._plain_names(text.rstrip()), info=true) -%}
{%- endmacro %}
