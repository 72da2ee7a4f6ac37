{#- Why a build cannot write only the rows that differ. -#}

{#- Why the whole table is written instead of merging the rows that differ; none if they can be merged. -#}
{% macro _merge_obstacle(build, is_comparable) -%}
    {%- if not is_comparable -%}
        {{- return('nothing is stored' if not build.stored else 'the stored table cannot be compared') -}}
    {%- endif -%}
    {%- set obstacle = build.format.part_obstacle(build.stored) -%}
    {%- if obstacle is not none -%} {{ return(obstacle) }} {%- endif -%}
    {%- if build.location is not none and not build.is_as_left -%}
        {{- return('another writer may have put rows into the wrong key buckets') -}}
    {%- endif -%}
    {%- if build.settings.publish == 'overwrite' and build.log_row.mode != 'heal' -%}
        {{- return('publish: overwrite') -}}
    {%- endif -%}
    {{- return(healing_tables._overwrite_reason(build)) -}}
{%- endmacro %}

{#- Why all rows must be written, even those that do not differ; none if writing the difference is enough. -#}
{% macro _overwrite_reason(build) -%}
    {{- return(healing_tables._replace_reason(build) or ('--full-refresh' if flags.FULL_REFRESH else none)) -}}
{%- endmacro %}

{#- Why the stored table must be replaced; none if rows can be written to it. -#}
{% macro _replace_reason(build) -%}
    {%- if build.stored.get('provider') != build.format.name -%}
        {{- return('it is stored as ' ~ build.stored.get('provider')) -}}
    {%- endif -%}
    {%- if build.stored.columns.items() | list != build.columns.items() | list -%}
        {{- return('the columns differ') -}}
    {%- endif -%}
    {%- for type in build.columns.values() if healing_tables._has_no_equality(type) -%}
        {{- return('a column has a type without equality') -}}
    {%- endfor -%}
    {%- if build.stored.partitions | map('lower') | list != healing_tables._as_list(config.get('partition_by'))
        | map('lower') | map('replace', ', ', ',') | list -%}
        {{- return('the partitions differ') -}}
    {%- endif -%}
    {%- if build.location is not none
        and healing_tables._stored_buckets(build.stored.location).buckets != healing_tables._key_buckets() -%}
        {{- return('the number of key buckets differs') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}
