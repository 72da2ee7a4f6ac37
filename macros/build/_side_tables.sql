{#- Tables of one run beside its candidate; they are dropped when it ends. -#}

{#- Rows as a table next to the candidate: several statements read it, and all see the same. -#}
{% macro _create_side_table(run, suffix, query) -%}
    {%- set table = healing_tables._side_table(run, suffix) -%}
    {%- do healing_tables._run(
        'create table ' ~ table ~ ' using ' ~ run.format.staging_format ~ ' as ' ~ query) -%}
    {{- return(table) -}}
{%- endmacro %}

{% macro _drop_side_tables(run) -%}
    {%- for table in run.side_tables -%}
        {%- do healing_tables._run('drop table if exists ' ~ table) -%}
    {%- endfor -%}
    {%- do run.side_tables.clear() -%}
{%- endmacro %}
