{#- Counts that a sharded build makes per shard, since one statement would sort all rows. -#}

{#- The number of ties in a source, as SQL: a select or a number. -#}
{% macro _ties_of_source(build, source, ctes) -%}
    {%- if not source.ties -%} {{ return('cast(0 as bigint)') }} {%- endif -%}
    {%- if not healing_tables._is_sharded(build) -%} {{ return(source.ties) }} {%- endif -%}
    {%- set shards, counted = build.settings.shards, [] -%}
    {%- set where = ' as tie from ' ~ source.relation ~ ' where ' -%}
    {%- set ties = source.ties.replace(where, where ~ healing_tables._is_in_shard(source['keys'], shards) ~ ' and ') -%}
    {%- for number in range(shards) -%}
        {%- do counted.append(run_query((ctes or '') ~ healing_tables._of_shard(ties, number)).rows[0][0] | int) -%}
    {%- endfor -%}
    {{- return('cast(' ~ (counted | sum) ~ ' as bigint)') -}}
{%- endmacro %}

{#- The number of rows that violate each check and each condition, and some keys: see _violation_summary. -#}
{% macro _count_violations(build) -%}
    {#- the query of a build whose parts are complete reads them, and no source -#}
    {%- if not healing_tables._is_sharded(build) or healing_tables._inputs_begin() not in build.query -%}
        {{- return(healing_tables._read_figures(healing_tables._violation_summary(build))) -}}
    {%- endif -%}
    {%- set numbers, found = range(build.settings.shards) | list, {} -%}
    {%- if build.changes is not none -%}
        {%- do numbers.clear() -%}
        {%- for row in run_query('select distinct part from ' ~ build.changes
            ~ ' where violations is not null').rows -%}
            {%- do numbers.append(row['part'] | int) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set summary = healing_tables._violation_summary(healing_tables._cut_to_shard(build)) -%}
    {%- for number in numbers -%}
        {%- for name, value in healing_tables._read_figures(healing_tables._of_shard(summary, number)).items() -%}
            {%- do found.update({name: (found.get(name) or value) if value is string
                else found.get(name, 0) + value}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
