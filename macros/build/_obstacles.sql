{#- Why a build cannot write only the rows that differ. -#}

{#- Why the whole table is written instead of merging the rows that differ; none if they can be merged. -#}
{% macro _merge_obstacle(run, candidate) -%}
    {%- if not candidate.is_comparable -%}
        {{- return('nothing is stored' if not run.stored else 'the stored table cannot be compared') -}}
    {%- endif -%}
    {%- set obstacle = run.format.part_obstacle(run.stored) if run.commit is none else none -%}
    {%- if obstacle is not none -%} {{ return(obstacle) }} {%- endif -%}
    {%- if run.location is not none and run.commit is none and not run.is_as_left -%}
        {{- return('another writer may have put rows into the wrong key buckets') -}}
    {%- endif -%}
    {%- if run.settings.publish == 'overwrite' and run.changed_keys is none -%}
        {{- return('publish: overwrite') -}}
    {%- endif -%}
    {%- set obstacle = healing_tables._overwrite_reason(run, candidate) -%}
    {%- if obstacle is not none -%} {{ return(obstacle) }} {%- endif -%}
    {#- a rebuild may find that nothing differs: it asks later -#}
    {{- return(healing_tables._bucket_obstacle(run, candidate) if run.changed_keys is not none else none) -}}
{%- endmacro %}

{#- Why only some key buckets cannot be written; none if they can. -#}
{% macro _bucket_obstacle(run, candidate) -%}
    {{- return('equal keys of this type can be in different key buckets' if run.key_buckets is not none
        and not healing_tables._has_hashable_keys(run.settings, run.stored.columns, candidate.columns) else none) -}}
{%- endmacro %}

{#- Why all rows must be written, even those that do not differ; none if writing the difference is enough. -#}
{% macro _overwrite_reason(run, candidate) -%}
    {{- return(healing_tables._replace_reason(run, candidate)
        or ('--full-refresh' if flags.FULL_REFRESH and (run.mode != 'merge' or should_full_refresh())
            else none)) -}}
{%- endmacro %}

{#- Why the stored table must be replaced; none if rows can be written to it. -#}
{% macro _replace_reason(run, candidate) -%}
    {%- set stored, columns = run.stored, candidate.columns -%}
    {%- if stored.get('provider') != run.format.name -%}
        {{- return('it is stored as ' ~ stored.get('provider')) -}}
    {%- endif -%}
    {%- if stored.columns.items() | list != columns.items() | list -%} {{ return('the columns differ') }} {%- endif -%}
    {%- for type in columns.values() if healing_tables._has_no_equality(type) -%}
        {{- return('a column has a type without equality') -}}
    {%- endfor -%}
    {#- a merge keeps the partitions of the table, whatever its model says -#}
    {%- set partitions = healing_tables._as_list(config.get('partition_by')) | map('lower')
        | map('replace', ', ', ',') | list -%}
    {%- if run.mode != 'merge' and stored.partitions | map('lower') | list != partitions -%}
        {{- return('the partitions differ') -}}
    {%- endif -%}
    {%- if run.location is not none and run.commit is none
        and healing_tables._stored_buckets(stored.location).buckets != run.key_buckets -%}
        {{- return('the number of key buckets differs') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}
