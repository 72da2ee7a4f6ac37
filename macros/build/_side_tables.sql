{#- Tables of one build beside its candidate; they are dropped when it ends. -#}

{#- Rows as a table next to the candidate: several statements read it, and all see the same. -#}
{% macro _create_side_table(build, suffix, query) -%}
    {%- set table = build.candidate.incorporate(path={'identifier': build.candidate.identifier ~ suffix}) -%}
    {%- do build.side_tables.append(table) -%}
    {%- do healing_tables._run(
        'create table ' ~ table ~ ' using ' ~ build.format.side_table_format ~ ' as ' ~ query) -%}
    {{- return(table) -}}
{%- endmacro %}

{% macro _drop_side_tables(build) -%}
    {%- for table in build.side_tables -%}
        {%- do healing_tables._run('drop table if exists ' ~ table) -%}
    {%- endfor -%}
    {%- do build.side_tables.clear() -%}
{%- endmacro %}
