{#- How many rows of a candidate violate each check and condition. -#}

{#- One row: for each check the number of violations and up to five keys, for each condition the rows that break it. -#}
{% macro _violation_summary(build) -%}
    {%- set counts = [] -%}
    {%- for condition in build.conditions -%} {%- do counts.append('count_if(broken_' ~ loop.index ~ ') as broken_'
        ~ loop.index) -%} {%- endfor -%}
    {%- if not build.settings.checks -%}
        {{- return('with ' ~ healing_tables._checked_candidate(build) ~ '\nselect ' ~ (counts | join(', '))
            ~ ' from checked') -}}
    {%- endif -%}
    {{- return(healing_tables._check_summary(dict(build.settings, relation='(\n'
        ~ healing_tables._as_subquery(build.query) ~ ')'), build.conditions, counts)) -}}
{%- endmacro %}

{#- The number of rows that violate each check and each condition, and some keys: see _violation_summary. -#}
{% macro _count_violations(build) -%}
    {#- the query of a build whose parts are complete reads them, and no source -#}
    {%- if not healing_tables._is_sharded(build) or not healing_tables._has_slot(build.query, 'inputs') -%}
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
        {%- for name, value in healing_tables._read_figures(healing_tables._of_shard(summary, number,
            build.settings.metadata.sources | length)).items() -%}
            {%- do found.update({name: (found.get(name) or value) if value is string
                else found.get(name, 0) + value}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
