{#- What a run leaves out because its key was erased (spec/_erased_keys.sql), and how many rows that are. -#}

{#- `counts`: a select of name and number for each input. -#}
{% macro _report_left_out(relation, counts) -%}
    {%- for row in (run_query(counts | join(' union all ')).rows if counts else []) if row[1] > 0 -%}
        {%- do healing_tables._log_progress(relation, healing_tables._counted(row[1] | int, 'row') ~ ' of ' ~ row[0]
            ~ ' left out: their keys were erased') -%}
    {%- endfor -%}
{%- endmacro %}

{#- A select without the rows of keys that were erased from `relation`. `columns`: its possible key columns, {name:
    {expression, type}}; `moment`: of a row in microseconds, as SQL. -#}
{% macro _batch_without_erased(relation, sql, columns, moment) -%}
    {%- set mistakes = [] -%}
    {%- set erased = healing_tables._erased(mistakes, relation) -%}
    {%- if erased is none -%} {{ return(sql) }} {%- endif -%}
    {%- set join = healing_tables._erased_join(mistakes, erased, columns, moment) -%}
    {%- do healing_tables._raise_mistakes(config.get('materialized'), mistakes) -%}
    {%- set rows = '(\n' ~ healing_tables._as_subquery(sql) ~ '\n)' -%}
    {%- do healing_tables._report_left_out(relation, ["select 'the select' as name, count(*) as number from " ~ rows
        ~ ' left semi join ' ~ join]) -%}
    {{- return('select * from ' ~ healing_tables._without_erased(rows, join)) -}}
{%- endmacro %}
