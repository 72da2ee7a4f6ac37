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
{{ 'living' if spec.deleted_rows else 'slices' }} as (
    select
        {{ keys }},
        at,
        {%- for column in healing_tables._further_columns(spec, spec.sources[0]) %}
        {{ column }},
        {%- endfor %}
        {%- for attribute in spec.attributes if attribute.scd_type == 0 %}
        case
            when ({{ exists }})
                and ({{ healing_tables._is_known_first(spec, attribute) }})
            then struct({{ healing_tables._owned_value(attribute) }} as value, at)
        end as {{ attribute.first_column }},
        {%- endfor %}
        {%- set overwritten = spec.attributes | selectattr('scd_type', 'in', [1, 3]) | list %}
        {%- if overwritten %}
        {{ healing_tables._owned_struct(overwritten, exists) }} as {{ 'living_' if spec.deleted_rows }}overwritten,
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
        {{ healing_tables._owned_struct(spec.attributes | selectattr('scd_type', 'in', [2, 6]), exists,
            ['false as ' ~ healing_tables._deleted_field()] if spec.deleted_rows else []) }} as {{
            'living_' if spec.deleted_rows }}versioned
    from {{ 'recent' if watched else 'points' }}
)
{%- if spec.deleted_rows -%}
,
slices as (
    {{- healing_tables._with_deleted_rows(spec, keys, overwritten) }}
)
{%- endif -%}
{%- endmacro %}

{#- The slices of deleted_rows: while a key does not exist, a slice has its last values, and is marked as deleted. -#}
{% macro _with_deleted_rows(spec, keys, overwritten) -%}
{%- set fields = [] -%}
{%- for attribute in spec.attributes | selectattr('scd_type', 'in', [2, 6]) -%}
    {%- do fields.append('known_versioned.' ~ attribute.quoted ~ ' as ' ~ attribute.quoted) -%}
{%- endfor -%}
{%- do fields.append('living_versioned is null as ' ~ healing_tables._deleted_field()) %}
    select *, if(known_versioned is null, null, struct({{ fields | join(', ') }})) as versioned
    from (
        select *,
            {%- if overwritten %}
            last_value(living_overwritten) ignore nulls over so_far as overwritten,
            {%- endif %}
            last_value(living_versioned) ignore nulls over so_far as known_versioned
        from living
        window so_far as (partition by {{ keys }} order by at rows between unbounded preceding and current row)
    )
{%- endmacro %}

{#- The field of `versioned` that says that the key is deleted then. -#}
{% macro _deleted_field() -%} {{ return('`healing_tables deleted`') }} {%- endmacro %}

{#- Whether a source has a value that type 0 can take; one that may leave it out has to have sent it. -#}
{% macro _is_known_first(spec, attribute) -%}
    {%- set conditions = {} -%}
    {%- for entry in attribute.from -%}
        {%- set source = spec.sources | selectattr('name', 'equalto', entry.source) | first -%}
        {%- set state = healing_tables._state_column(entry.source) -%}
        {%- do conditions.update({(state ~ '.' ~ healing_tables._sent_flag(entry.column)
            if entry.column in source.first_sent else state ~ ' is not null'): true}) -%}
    {%- endfor -%}
    {{- return(conditions | join(' or ')) -}}
{%- endmacro %}

{% macro _exists_condition(source_names) -%}
    {%- set conditions = [] -%}
    {%- for name in source_names -%}
        {%- do conditions.append(healing_tables._state_column(name) ~ ' is not null') -%}
    {%- endfor -%}
    {{- return(conditions | join(' or ')) -}}
{%- endmacro %}

{#- Attributes and other fields as one struct, NULL while the key does not exist. -#}
{% macro _owned_struct(attributes, exists, others=[]) -%}
    {%- set fields = [] + others -%}
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
