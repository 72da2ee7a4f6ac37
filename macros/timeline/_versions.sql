{#-
    Compression: touching slices with equal versioned attributes become one version; the other SCD types use the same
    windows. CTEs from `slices` to `versions`: one row per version.

    neighbours  the slices before and after each slice, and the newest values of the key
    turns       whether a version starts or ends here; the neighbours themselves are dropped, so that the next window
                buffers less
    edges       only slices where one does (or a type 1 or 3 value changes), numbered
    versions    the first slice of each version; `finish` has the values of its last one

    The row of a version is its first slice, so that versions keep the sort order of the window: a join or a check by
    key and start need not sort them again.

    Without an attribute of type 2 or 6 a key has one version: its neighbours are looked up across gaps. With
    deleted_rows there are none: whether the key is deleted is a part of `versioned`.
-#}
{% macro _versions(spec) -%}
{%- set keys = healing_tables._key_names(spec.key_columns) -%}
{%- set moves = healing_tables._inner_changes(spec) -%}
{%- set finish = healing_tables._finish(spec, keys, moves) -%}
{#- it contains columns of the previous window -#}
{%- set has_own_window = moves | selectattr('window', 'equalto', 'so_far') | list | length > 0 -%}
neighbours as (
    {{- healing_tables._neighbours(spec, keys, moves) }}
),
turns as (
    select
        {{ keys }},
        at,
        {%- for column in healing_tables._slice_columns(spec, moves) %}
        {{ column }},
        {%- endfor %}
        not (versioned <=> versioned_before) as starts,
        not (versioned <=> versioned_after) as ends,
        {{ healing_tables._is_gap(spec, 'versioned_before') }} as after_gap,
        {{ healing_tables._is_gap(spec, 'versioned_after') }} as before_gap
        {%- for move in moves %},
        {{ move.condition }} as {{ move.name }}_here
        {%- endfor %}
    from neighbours
    where versioned is not null
),
edges as (
    select *,
        count(if(starts, 1, null)) over so_far as version
        {%- if not has_own_window %},
        {{ finish }}
        {%- endif %}
        {%- for move in moves %},
        last_value(if({{ move.name }}_here, struct({{ move.fields }}), null)) ignore nulls
            over {{ move.window }} as {{ move.name }}
        {%- endfor %}
    from turns
    where starts or ends
        {%- for move in moves %} or {{ move.name }}_here
        {%- endfor %}
    window
        so_far as (partition by {{ keys }} order by at rows between unbounded preceding and current row)
        {%- if moves | selectattr('window', 'equalto', 'whole') | list %},
        whole as (partition by {{ keys }} order by at rows between unbounded preceding and unbounded following)
        {%- endif %}
),
versions as (
    select *,
        {{ healing_tables._start_of_version(spec) }} as valid_from
        {%- if spec.current_while_deleted %},
        lead(at) over (partition by {{ keys }} order by at) is null as is_last
        {%- endif %}
    from {{ '(select *, ' ~ finish ~ ' from edges)' if has_own_window else 'edges' }}
    where starts
)
{%- endmacro %}

{#- The first version of a key can start before its first slice. -#}
{% macro _start_of_version(spec) -%}
    {%- set first = 'opened' if spec.opened_by else healing_tables._micros_constant(spec.valid_from_first)
        if spec.valid_from_first is not none else none -%}
    {#- least() skips NULLs -#}
    {{- return('at' if first is none else 'if(version = 1, least(' ~ first ~ ', at), at)') -}}
{%- endmacro %}

{#- The columns whose changes begin a version: [{name, expression (over the CTE `versions`), type}]. -#}
{% macro _versioned_columns(spec) -%}
    {%- set columns = [] -%}
    {%- for attribute in spec.attributes | selectattr('scd_type', 'in', [2, 6]) -%}
        {%- do columns.append({'name': attribute.name, 'expression': 'versioned.' ~ attribute.quoted,
            'type': attribute.type}) -%}
    {%- endfor -%}
    {%- do columns.append({'name': spec.names.is_deleted, 'expression': 'versioned.'
        ~ healing_tables._deleted_field(), 'type': 'boolean'}) if spec.deleted_rows -%}
    {{- return(columns) -}}
{%- endmacro %}

{% macro _has_scd_type(spec, types) -%}
    {{- return(spec.attributes | selectattr('scd_type', 'in', types) | list | length > 0) -}}
{%- endmacro %}

{#- Whether the key does not exist in a neighbour. -#}
{% macro _is_gap(spec, versioned) -%}
    {{- return(versioned ~ ' is null' ~ (' or ' ~ versioned ~ '.' ~ healing_tables._deleted_field()
        if spec.deleted_rows else '')) -}}
{%- endmacro %}

{#- The columns of a slice that the result needs, besides those of `turns`. -#}
{% macro _slice_columns(spec, moves) -%}
    {%- set columns = ['versioned', 'valid_to', 'slice_no'] -%}
    {%- do columns.extend(healing_tables._further_columns(spec, spec.sources[0])) -%}
    {%- if healing_tables._has_scd_type(spec, [1]) -%} {%- do columns.append('newest') -%} {%- endif -%}
    {%- if healing_tables._has_scd_type(spec, [3]) -%}
        {%- do columns.extend(['overwritten', 'overwritten_known']) -%}
    {%- endif -%}
    {%- if healing_tables._has_scd_type(spec, [6]) -%}
        {%- do columns.extend(['newest_versioned', 'versioned_known']) -%}
    {%- endif -%}
    {%- if healing_tables._tracks_sources(spec) -%} {%- do columns.append('change_source') -%} {%- endif -%}
    {%- if spec.causes -%} {%- do columns.append('cause') -%} {%- endif -%}
    {%- for attribute in spec.attributes if attribute.scd_type == 0 -%}
        {%- do columns.append(attribute.first_column ~ '_value') -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The values of a version's last slice, as the column `finish` of its first. -#}
{% macro _finish(spec, keys, moves) -%}
    {%- set fields = ['valid_to', 'slice_no'] -%}
    {%- do fields.append('before_gap') if spec.names.ended_by_delete is not none or spec.current_while_deleted -%}
    {%- if healing_tables._has_scd_type(spec, [3]) -%} {%- do fields.append('overwritten') -%} {%- endif -%}
    {%- do fields.extend(moves | selectattr('window', 'equalto', 'so_far') | map(attribute='name')) -%}
    {%- set finish = 'struct(' ~ (fields | join(', ')) ~ ')' -%}
    {{- return('if(ends, ' ~ finish ~ ', lead(if(ends, ' ~ finish ~ ', null)) ignore nulls over (partition by ' ~ keys
        ~ ' order by at)) as finish') -}}
{%- endmacro %}

{#- One window over all slices of a key. -#}
{% macro _neighbours(spec, keys, moves) -%}
{%- set across = '' if healing_tables._has_scd_type(spec, [2, 6]) or spec.deleted_rows else ' ignore nulls' %}
    select *,
        lag(versioned){{ across }} over in_order as versioned_before,
        lead(versioned){{ across }} over in_order as versioned_after,
        {%- if moves | selectattr('name', 'equalto', 'reopened') | list %}
        lag(versioned) over in_order as slice_before,
        {%- endif %}
        lead(at) over in_order as valid_to,
        {%- if healing_tables._has_scd_type(spec, [1]) %}
        last_value(overwritten) ignore nulls over whole as newest,
        {%- endif %}
        {%- if moves | selectattr('of', 'in', [1, 3]) | list %}
        last_value(overwritten) ignore nulls over earlier as overwritten_known,
        {%- endif %}
        {%- if healing_tables._has_scd_type(spec, [6]) %}
        last_value(versioned) ignore nulls over whole as newest_versioned,
        last_value(versioned) ignore nulls over earlier as versioned_known,
        {%- endif %}
        {%- for attribute in spec.attributes if attribute.scd_type == 0 %}
        first_value({{ attribute.first_column }}) ignore nulls over whole
            as {{ attribute.first_column }}_value,
        {%- endfor %}
        count(versioned) over so_far as slice_no
    from slices
    window
        in_order as (partition by {{ keys }} order by at),
        so_far as (partition by {{ keys }} order by at rows between unbounded preceding and current row),
        earlier as (partition by {{ keys }} order by at rows between unbounded preceding and 1 preceding),
        whole as (partition by {{ keys }} order by at rows between unbounded preceding and unbounded following)
{%- endmacro %}

{#-
    Changes inside a version that affect a column: [{name, of (SCD type), condition, fields, window, column (in
    `versions`: of type 3 that of the last slice)}]. Type 3 needs each, with the value before it; changed_at and
    last_updated need the moment.
-#}
{% macro _inner_changes(spec) -%}
    {%- set dated = spec.names.last_updated is not none or spec.is_audited -%}
    {%- set moves = [] -%}
    {%- for attribute in spec.attributes -%}
        {%- set field = '.' ~ attribute.quoted -%}
        {%- if attribute.scd_type == 3 or (attribute.scd_type == 1 and (attribute.changed_at or dated)) -%}
            {%- do moves.append({
                'name': 'move_' ~ loop.index, 'attribute': attribute.name, 'of': attribute.scd_type,
                'condition': '(overwritten_known is null or not (overwritten' ~ field ~ ' <=> overwritten_known'
                ~ field ~ '))',
                'fields': 'at' ~ (', overwritten_known' ~ field ~ ' as previous' if attribute.scd_type == 3),
                'window': 'so_far' if attribute.scd_type == 3 else 'whole',
                'column': ('finish.' if attribute.scd_type == 3) ~ 'move_' ~ loop.index}) -%}
        {%- elif attribute.scd_type == 6 and dated -%}
            {%- do moves.append({
                'name': 'move_' ~ loop.index, 'attribute': attribute.name, 'of': 6,
                'condition': '(versioned_known is null or not (versioned' ~ field ~ ' <=> versioned_known' ~ field
                ~ '))',
                'fields': 'at', 'window': 'whole', 'column': 'move_' ~ loop.index}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if dated and not healing_tables._has_scd_type(spec, [2, 6]) and not spec.deleted_rows -%}
        {%- do moves.append({
            'name': 'reopened', 'attribute': none, 'of': none, 'condition': 'slice_before is null', 'fields': 'at',
            'window': 'whole', 'column': 'reopened'}) -%}
    {%- endif -%}
    {{- return(moves) -}}
{%- endmacro %}
