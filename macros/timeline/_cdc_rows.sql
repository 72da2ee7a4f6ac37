{#-
    The rows of a source with rules of change data capture (see spec/_cdc_options.sql), as rows of the timeline (see
    _source_rows.sql): values that were not sent are filled in, moments follow sequence_by, a truncation ends all keys.

    at | place | given                   at | state
    10 | {1}   | {a: {1}, b: {x}}   ->   10 | {a: 1, b: x}
    30 | {2}   | {a: {2}, b: NULL}       30 | {a: 2, b: x}
    20 | {3}   | {a: {3}, b: NULL}       30 | {a: 3, b: x}

    `kept`: further columns, {name: SQL over the source}.
-#}
{% macro _cdc_rows(spec, source, has_input=false, kept={}) -%}
{%- set keys, kept = healing_tables._key_names(spec.key_columns), dict(healing_tables._further_columns(spec, source),
    **kept) -%}
{%- set order, fields = 'partition by ' ~ keys ~ ' order by ', [] -%}
{%- for column in source.used -%}
    {%- do fields.append(healing_tables._filled_value(source, column) ~ ' as ' ~ column.quoted) -%}
    {%- do fields.append('coalesce(' ~ healing_tables._filled_value(source, column, 'is_sent') ~ ', false) as '
        ~ healing_tables._sent_flag(column.column)) if column.column in source.first_sent -%}
{%- endfor -%}
{%- set moment = 'at' if source.cut_from is none
    else 'greatest(at, ' ~ healing_tables._micros_constant(source.cut_from) ~ ')' %}
    select {{ ([keys, moment ~ ' as at', 'state'] + ([healing_tables._micros_constant(source.cut_to) ~ ' as until']
        if source.cut_to is not none else []) + ['place as tie'] + kept | list) | join(', ') }}
    from (
        select {{ ([keys, 'place', 'given'] + kept | list) | join(', ') }},
            {{ 'max(at) over so_far' if source.sequence_by else 'at' }} as at,
            case when given is not null then struct(
                {{- fields | join(', ') or 'true as present' }}) end as state
            {%- if source.on_tie != 'greatest' %},
            first_value(given) over peers as first_given
            {%- endif %}
        from (
            select *, {{ healing_tables._place_of_row(source) }} as place
            from (
                {{- healing_tables._truncated_rows(spec, source, has_input, kept) if source.truncated_when
                    else healing_tables._given_rows(spec, source, has_input, kept) }}
            )
        )
        window
            filling as ({{ order }}place rows between unbounded preceding and current row),
            so_far as ({{ order ~ healing_tables._place_of_row(source, has_values=false)
                }} range between unbounded preceding and current row),
            peers as ({{ order }}place range between current row and current row)
    )
    {%- set conditions = [] -%}
    {%- do conditions.append('case when not given <=> first_given then ' ~ healing_tables._raise_tie(spec, source)
        ~ ' else true end') if source.on_tie != 'greatest' -%}
    {%- do conditions.append('at < ' ~ healing_tables._micros_constant(source.cut_to)) if source.cut_to is not none -%}
    {%- if conditions %}
    where {{ conditions | join(' and ') }}
    {%- endif %}
{%- endmacro %}

{#- The rows as they were sent: `given` has their values, a struct with one if the source may leave it out, NULL if it
    was left out; and is NULL for a deletion. -#}
{% macro _given_rows(spec, source, has_input, kept) %}
                select
                    {%- for key in source.key_columns %}
                    {{ healing_tables._key_expression(spec, source, loop.index0) }} as key_{{ loop.index }},
                    {%- endfor %}
                    {{ healing_tables._source_moment(source) }} as at,
                    {{ healing_tables._given_values(source) }} as given
                    {%- for column in healing_tables._sequence_columns(source) %},
                    {{ column }} as order_{{ loop.index }}
                    {%- endfor %}
                    {%- for name, value in kept.items() %},
                    {{ value }} as {{ name }}
                    {%- endfor %}
                from {{ healing_tables._input_of(source) if has_input else source.relation }}
                where {{ healing_tables._placed_rows(source, source.where,
                    healing_tables._is_usable_row(spec, source)) }}
{%- endmacro %}

{#- The condition of rows that `where` includes, and that can be placed. A row after `until` is read if the moment of a
    later one may be moved to it. -#}
{% macro _placed_rows(source, where, is_usable) -%}
    {%- set conditions = ['(' ~ where ~ ')'] if where else [] -%}
    {%- do conditions.append('coalesce(' ~ is_usable ~ ', false)') -%}
    {%- do conditions.extend(healing_tables._window_conditions(source)) if not source.sequence_by -%}
    {{- return(conditions | join(' and ')) -}}
{%- endmacro %}

{#- The rows of all keys, and the truncations: after each row, the next one if it comes before the next row. -#}
{% macro _truncated_rows(spec, source, has_input, kept) -%}
{%- set keys, columns = healing_tables._key_names(spec.key_columns), healing_tables._sequence_columns(source) -%}
{%- set order, picked = [], [] -%}
{%- for name in kept -%} {%- do picked.append('if(is_row, ' ~ name ~ ', null) as ' ~ name) -%} {%- endfor -%}
{%- for column in columns -%}
    {%- do order.append('order_' ~ loop.index) -%}
    {%- do picked.append('if(is_row, order_' ~ loop.index ~ ', truncation.order_' ~ loop.index ~ ') as order_'
        ~ loop.index) -%}
{%- endfor -%}
{%- set place = order if source.sequence_by else ['at'] + order -%}
{%- set own, next = 'struct(' ~ (place + ['true']) | join(', ') ~ ')', [] -%}
{%- for name in place -%} {%- do next.append('truncation.' ~ name) -%} {%- endfor -%}
{%- set is_last = healing_tables._place_of_row(source, false) %}
                select {{ ([keys, 'if(is_row, at, truncation.at) as at', 'if(is_row, given, null) as given'] + picked)
                    | join(', ') }}, is_row
                from (
                    select *,
                        get(filter(truncations, truncation -> struct({{ next | join(', ') }}, false) > {{ own }}), 0)
                            as truncation
                        {%- if source.sequence_by %},
                        lead({{ own }}) over (partition by {{ keys }} order by {{ is_last }}) as next_place
                        {%- endif %}
                    from (
                        {{- healing_tables._given_rows(spec, source, has_input, kept) }}
                    )
                    cross join (
                        {{- healing_tables._truncations(spec, source) }}
                    )
                )
                lateral view explode(if(given is null or truncation is null
                    {{- ' or next_place < struct(' ~ next | join(', ') ~ ', false)' if source.sequence_by
                    }}, array(true), array(true, false))) pieces as is_row
{%- endmacro %}

{#- The truncations of a source, one array in their order. A heal and a shard read them all. -#}
{% macro _truncations(spec, source) -%}
{%- set fields, moment = [], healing_tables._source_moment(source) -%}
{%- for column in healing_tables._sequence_columns(source) -%}
    {%- do fields.append(column ~ ' as order_' ~ loop.index) -%}
{%- endfor -%}
{%- set fields = fields + [moment ~ ' as at'] if source.sequence_by else [moment ~ ' as at'] + fields -%}
{%- set is_placed = healing_tables._is_truncation(source) ~ ' and ' ~ moment ~ ' < '
    ~ healing_tables._end_of_time(spec.valid_to_current) %}
                        select array_sort(collect_set(struct({{ fields | join(', ') }}))) as truncations
                        from {{ source.get('all_rows', source.relation) }}
                        where {{ healing_tables._placed_rows(source, source.get('where_without_key', source.where),
                            is_placed) }}
{%- endmacro %}

{#- The columns that order the rows of a key, as SQL. -#}
{% macro _sequence_columns(source) -%}
    {%- set columns = [] -%}
    {%- for column in source.sequence_by or source.tie_break_by -%}
        {%- do columns.append(healing_tables._normalized_value(healing_tables._quoted(column),
            healing_tables._source_column_type(source, column))) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The place of a row among those of its key, by which they are sorted; with on_tie: greatest, a deletion and then the
    values decide last. Rows of one sequence have one moment, whatever their values. -#}
{% macro _place_of_row(source, has_truncations=true, has_values=true) -%}
    {%- set fields = [] if source.sequence_by else ['at'] -%}
    {%- for _ in source.sequence_by or source.tie_break_by -%} {%- do fields.append('order_' ~ loop.index) -%}
    {%- endfor -%}
    {%- do fields.append('is_row') if source.truncated_when and has_truncations -%}
    {%- do fields.extend(['given is null', 'given']) if source.on_tie == 'greatest' and has_values -%}
    {{- return('struct(' ~ (fields | join(', ') or 'true') ~ ')') -}}
{%- endmacro %}

{#- The values of a row as it was sent; NULL for a deletion. -#}
{% macro _given_values(source) -%}
    {%- set fields = [] -%}
    {%- for column in source.used -%}
        {%- set value, is_sent = healing_tables._normalized_value(column.quoted, column.type),
            healing_tables._sent_condition(source, column) -%}
        {%- do fields.append((value if is_sent is none else 'case when ' ~ is_sent ~ ' then struct(' ~ value
            ~ ' as value, true as is_sent) end') ~ ' as ' ~ column.quoted) -%}
    {%- endfor -%}
    {%- set given = 'struct(' ~ (fields | join(', ') or 'true as present') ~ ')' -%}
    {{- return('case when not coalesce((' ~ source.deleted_when ~ '), false) then ' ~ given ~ ' end'
        if source.deleted_when else given) -}}
{%- endmacro %}

{#- Whether a row says something of a column; none if every row does. -#}
{% macro _sent_condition(source, column) -%}
    {%- set conditions = [] -%}
    {%- do conditions.append(column.quoted ~ ' is not null') if source.ignore_nulls is sameas true
        or column.column | lower in source.ignore_nulls -%}
    {%- set unchanged = source.unchanged_value.get(column.column | lower) -%}
    {%- do conditions.append('not ' ~ healing_tables._normalized_value(column.quoted, column.type) ~ ' <=> '
        ~ unchanged) if unchanged is not none -%}
    {%- if not conditions -%} {{ return(none) }} {%- endif -%}
    {%- set is_sent = conditions | join(' and ') -%}
    {{- return(is_sent if source.get('partial_when') is none
        else '(not coalesce(' ~ source.partial_when ~ ', false) or ' ~ is_sent ~ ')') -}}
{%- endmacro %}

{#- The value of a column, or of the row before that has one; a deletion sends NULL. -#}
{% macro _filled_value(source, column, field='value') -%}
    {%- set given = 'given.' ~ column.quoted -%}
    {%- if healing_tables._sent_condition(source, column) is none -%} {{ return(given) }} {%- endif -%}
    {{- return('(last_value(if(given is null, struct(if(false, ' ~ given ~ '.value, null) as value, false as is_sent), '
        ~ given ~ ')) ignore nulls over filling).' ~ field) -}}
{%- endmacro %}

{#- What _count_ties() and _count_moved() read of such a source: all its ties count, since a row that loses one has
    values, too, that later rows may leave out. -#}
{% macro _cdc_metadata(spec, source) -%}
    {%- set place = healing_tables._sequence_columns(source) -%}
    {%- set place = place if source.sequence_by else [healing_tables._source_moment(source)] + place -%}
    {{- return({
        'at': 'struct(' ~ (place | join(', ')) ~ ')', 'state': healing_tables._given_values(source), 'order': 'true',
        'where': healing_tables._placed_rows(source, source.where, healing_tables._is_usable_row(spec, source))})
        -}}
{%- endmacro %}
