{#- A build in a branch of the stored table. -#}

{#- Whether all rows can be replaced in a branch of the stored table. -#}
{% macro _can_use_branch(run, candidate) -%}
    {{- return(run.format.has_branches and run.stored and not run.keeps_foreign
        and healing_tables._replace_reason(run, candidate) is none) -}}
{%- endmacro %}

{#- Create the branch of this run and delete its rows. INSERT OVERWRITE would keep partitions without new rows in a
    session with partitionOverwriteMode = dynamic. -#}
{% macro _empty_branch(run) -%}
    {%- set place = run.format.commits.begin(run.target, run.version_before) -%}
    {%- do healing_tables._run('delete from ' ~ place ~ ' where true') -%}
    {{- return(place) -}}
{%- endmacro %}

{% macro _insert_candidate(candidate, place, query) -%}
    {%- set columns = healing_tables._quoted_list(candidate.columns) -%}
    {{- return('insert into ' ~ place ~ ' (' ~ (columns | join(', ')) ~ ')\n' ~ query) -}}
{%- endmacro %}
