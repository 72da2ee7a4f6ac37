{#- How many rows of a candidate violate each check and condition. -#}

{#- One row: for each check the number of violations and up to five keys, for each condition the rows that break it. -#}
{% macro _violation_summary(run, candidate) -%}
    {%- set counts = [] -%}
    {%- for condition in candidate.conditions -%} {%- do counts.append('count_if(broken_' ~ loop.index ~ ') as broken_'
        ~ loop.index) -%} {%- endfor -%}
    {%- if not candidate.checks -%}
        {{- return('with ' ~ healing_tables._checked_candidate(run, candidate) ~ '\nselect ' ~ (counts | join(', '))
            ~ ' from checked') -}}
    {%- endif -%}
    {{- return(healing_tables._check_summary(dict(run.settings, checks=candidate.checks, relation='(\n'
        ~ healing_tables._as_subquery(candidate.query) ~ ')'), candidate.conditions, counts)) -}}
{%- endmacro %}

{#- The number of rows that violate each check and each condition, and some keys: see _violation_summary. -#}
{% macro _count_violations(run, candidate) -%}
    {#- the query of a candidate whose parts are complete reads them, and no source -#}
    {%- if not healing_tables._is_sharded(run) or not healing_tables._has_slot(candidate.query, 'inputs') -%}
        {{- return(healing_tables._read_figures(healing_tables._violation_summary(run, candidate))) -}}
    {%- endif -%}
    {%- set numbers, found = range(run.settings.shards) | list, {} -%}
    {%- if candidate.changes is not none -%}
        {%- do numbers.clear() -%}
        {%- for row in run_query('select distinct part from ' ~ candidate.changes
            ~ ' where violations is not null').rows -%}
            {%- do numbers.append(row['part'] | int) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set summary = healing_tables._violation_summary(run, healing_tables._cut_to_shard(run, candidate)) -%}
    {%- for number in numbers -%}
        {%- for name, value in healing_tables._read_figures(healing_tables._of_shard(summary, number,
            run.settings.metadata.scans | length)).items() -%}
            {%- do found.update({name: (found.get(name) or value) if value is string
                else found.get(name, 0) + value}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
