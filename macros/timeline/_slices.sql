{#- Slices: each point of the timeline, with the value of every output attribute. -#}

{#- CTEs from `points` to `slices`: key, at, `versioned` (NULL while the key does not exist), and columns for other
    types. -#}
{% macro _slices(spec) -%}
{%- set keys = healing_tables._key_names(spec.key_columns) -%}
{%- set watched = healing_tables._watched_changes(spec) | selectattr('began') | list -%}
{%- set exists = healing_tables._exists_condition(spec.exists_in) -%}
{%- if watched -%}
recent as (
    select *
        {%- for change in watched %},
        last_value(if({{ change.name }}, at, null)) ignore nulls over so_far as {{ change.began }}
        {%- endfor %}
    from points
    window so_far as (partition by {{ keys }} order by at rows between unbounded preceding and current row)
),
{% endif -%}
slices as (
    select
        {{ keys }},
        at,
        {%- if spec.moment_type is none %}
        moment_type,
        {%- endif %}
        {%- for attribute in spec.attributes if attribute.scd_type == 0 %}
        case
            when ({{ exists }})
                and ({{ healing_tables._exists_condition(attribute.from | map(attribute='source') | unique) }})
            then struct({{ healing_tables._owned_value(attribute) }} as value, at)
        end as {{ attribute.first_column }},
        {%- endfor %}
        {%- set overwritten = spec.attributes | selectattr('scd_type', 'in', [1, 3]) | list %}
        {%- if overwritten %}
        {{ healing_tables._owned_struct(overwritten, exists) }} as overwritten,
        {%- endif %}
        {%- if spec.causes %}
        struct({{ healing_tables._state_column(spec.sources[0].name) }}.{{ spec.causes | join(', '
            ~ healing_tables._state_column(spec.sources[0].name) ~ '.') }}) as cause,
        {%- endif %}
        {%- if healing_tables._tracks_sources(spec) %}
        concat_ws(','
            {%- for source in spec.sources -%}
            , if({{ healing_tables._change_flag(spec, source) }}, {{ healing_tables._string_literal(
                source.name) }}, null)
            {%- endfor -%}
        ) as change_source,
        {%- endif %}
        {{ healing_tables._owned_struct(spec.attributes | selectattr('scd_type', 'in', [2, 6]),
            exists) }} as versioned
    from {{ 'recent' if watched else 'points' }}
)
{%- endmacro %}

{% macro _exists_condition(source_names) -%}
    {%- set conditions = [] -%}
    {%- for name in source_names -%}
        {%- do conditions.append(healing_tables._state_column(name) ~ ' is not null') -%}
    {%- endfor -%}
    {{- return(conditions | join(' or ')) -}}
{%- endmacro %}

{#- Attributes as one struct, NULL while the key does not exist. -#}
{% macro _owned_struct(attributes, exists) -%}
    {%- set fields = [] -%}
    {%- for attribute in attributes -%}
        {%- do fields.append(healing_tables._owned_value(attribute) ~ ' as ' ~ attribute.quoted) -%}
    {%- endfor -%}
    {{- return(
        'case when ' ~ exists ~ ' then struct(\n            '
        ~ (fields | join(',\n            ') or 'true as present') ~ '\n        ) end') -}}
{%- endmacro %}

{#- The column of `points` that shows whether a source's row changes; with change_source, every source has one. -#}
{% macro _change_flag(spec, source) -%}
    {{- return((healing_tables._watched_changes(spec) | selectattr('column', 'none') | selectattr('source.name',
        'equalto', source.name) | first).name) -}}
{%- endmacro %}
