{#-
    Write an HTML page. The Python package of this project renders it, as a dbt plugin, because macros cannot write
    files.

    Args: page: explain or report; `content`: its content, see src/dbt_healing_tables/pages.
-#}
{% macro _write_page(page, content, file) -%}
    {%- if adapter.healing_tables_write_page is not defined -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(mistakes, 'html', "the Python library in dbt's environment, for the file",
            'dbt without it', 'install it, see docs/merging.md, or leave html out') -%}
        {%- do healing_tables._raise_mistakes(page, mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._print('healing_tables ' ~ page ~ ': the page is '
        ~ adapter.healing_tables_write_page(page, content, file | string)) -%}
{%- endmacro %}
