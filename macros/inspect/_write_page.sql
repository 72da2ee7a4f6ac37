{#-
    Write an HTML page. The Python package of this project renders it, as a dbt plugin, because macros cannot write
    files.

    Args: page: explain or report; `content`: its content, see src/dbt_healing_tables/pages.
-#}
{% macro _write_page(page, content, file) -%}
    {%- if adapter.healing_tables_write_page is not defined -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(mistakes, 'html', "the package dbt-healing-tables in dbt's environment, which "
            'writes the file', 'dbt without it', 'pip install dbt-healing-tables, or leave html out') -%}
        {%- do healing_tables._raise_mistakes(page, mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._print('healing_tables ' ~ page ~ ': the page is '
        ~ adapter.healing_tables_write_page(page, content, file | string)) -%}
{%- endmacro %}
