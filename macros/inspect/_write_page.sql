{#-
    Write an HTML page. The Python package of this project renders it, as a dbt plugin, because macros cannot write
    files.

    Args: page: explain or report; `content`: its content, see src/dbt_healing_tables/pages.
-#}
{% macro _write_page(page, content, file) -%}
    {%- if adapter.healing_tables_write_page is not defined -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._needs_library(mistakes, 'html', 'to write the file', 'leave html out') -%}
        {%- do healing_tables._raise_mistakes(page, mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._print('healing_tables ' ~ page ~ ': the page is '
        ~ adapter.healing_tables_write_page(page, content, file | string)) -%}
{%- endmacro %}

{#- Print code as it is, without the time stamps and colours of a log line, also with --quiet; or write it to a
    file. -#}
{% macro _print_code(operation, code, file=none) -%}
    {%- if file is none -%}
        {%- do print(code) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- if adapter.healing_tables_write_text is not defined -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._needs_library(mistakes, 'file', 'to write the file',
            'leave file out, and redirect the output') -%}
        {%- do healing_tables._raise_mistakes(operation, mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._print('healing_tables ' ~ operation ~ ': written to '
        ~ adapter.healing_tables_write_text(operation, code ~ '\n', file | string)) -%}
{%- endmacro %}

{#- Report an argument that needs a file: macros can neither read nor write one. -#}
{% macro _needs_library(mistakes, argument, purpose, otherwise) -%}
    {%- set is_v2 = healing_tables._is_dbt_v2() -%}
    {%- do healing_tables._mistake(mistakes, argument, "the Python library in dbt's environment, " ~ purpose,
        'dbt v2, which has no plugins' if is_v2 else 'dbt without it',
        ('use dbt-core 1.x for it' if is_v2 else 'install it, see docs/merging.md') ~ ', or ' ~ otherwise) -%}
{%- endmacro %}
