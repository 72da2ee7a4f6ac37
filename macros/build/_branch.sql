{#- A build in a branch of the stored table. -#}

{#- Whether all rows can be replaced in a branch of the stored table. -#}
{% macro _can_use_branch(build) -%}
    {{- return(build.format.has_branches and build.stored and not build.keeps_foreign
        and healing_tables._replace_reason(build) is none) -}}
{%- endmacro %}

{#- Create the branch of this build and delete its rows. INSERT OVERWRITE would keep partitions without new rows in a
    session with partitionOverwriteMode = dynamic. -#}
{% macro _empty_branch(build) -%}
    {%- set place = build.format.begin_commit(build.target, build.log_row.version_before) -%}
    {%- do healing_tables._run('delete from ' ~ place ~ ' where true') -%}
    {{- return(place) -}}
{%- endmacro %}

{% macro _insert_candidate(build, place, query) -%}
    {%- set columns = healing_tables._quoted_list(build.columns) -%}
    {{- return('insert into ' ~ place ~ ' (' ~ (columns | join(', ')) ~ ')\n' ~ query) -}}
{%- endmacro %}
