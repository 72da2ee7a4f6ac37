{#-
    A `scan`: how code other than the select reads a source, and counts its rows. Expressions are SQL over its rows,
    moments in microseconds:

    name, kind, key_columns (their names), relation (SQL text)
    parts (see _relation_parts; none: only the model's own select can read it)
    keys (one for each key column), filter (the option `where`, or none), where (the rows that count), alive (those
    after which the key exists; none if the source does not decide that), at, until (of periods), state (of snapshots),
    limit (the end of time), calendar (a select of `at`, or none)
    moment, moment_type; loaded_column, loaded_type, loaded_at (none without the option): the columns as they are
    set_aside: the rows that are not used; ties: see _tie_metadata, none where a tie is an error
    within: the columns for whose values a snapshot is complete
    deletion: see _deletion_metadata, none without deleted_when and truncated_when
    moved: the same where sequence_by can move a row to a later moment, or none; truncated: the rows that end all keys,
    or none
    erased: the rows of erased keys, which are left out, as SQL for a `from`; none if nothing was erased
    is_row_local: where and deleted_when depend only on their row; has_subquery: they contain a select
-#}
{% macro _scan(spec, source) -%}
    {%- set keys = [] -%}
    {%- for _ in source.key_columns -%}
        {%- do keys.append(healing_tables._key_expression(spec, source, loop.index0)) -%}
    {%- endfor -%}
    {%- set conditions = (source.where or '') ~ ' ' ~ (source.deleted_when or '') ~ ' '
        ~ (source.truncated_when or '') -%}
    {%- set filter = '(' ~ source.where ~ ')' if source.where else none -%}
    {%- set filtered = filter ~ ' and ' if filter is not none else '' -%}
    {%- set usable = filtered ~ 'coalesce(' ~ healing_tables._is_usable_row(spec, source) ~ ', false)' -%}
    {%- set truncated = filtered ~ healing_tables._is_truncation(source) if source.truncated_when else none -%}
    {%- set alive = [usable] + healing_tables._window_conditions(source) -%}
    {%- do alive.append('not coalesce((' ~ source.deleted_when ~ '), false)') if source.deleted_when -%}
    {%- set has_calendar = source.kind == 'snapshots' and source.calendar -%}
    {%- set loaded_type = healing_tables._source_column_type(source, source.loaded_at) if source.loaded_at else none -%}
    {{- return({
        'name': source.name, 'kind': source.kind, 'relation': source.relation,
        'key_columns': source.key_columns | map(attribute='column') | list,
        'parts': source.parts if not source.calendar or healing_tables._relation_parts(source.calendar) else none,
        'keys': keys,
        'filter': filter, 'where': usable if truncated is none else '(' ~ usable ~ ' or ' ~ truncated ~ ')',
        'alive': alive | join(' and ') if source.name in spec.exists_in else none,
        'at': healing_tables._source_moment(source),
        'until': healing_tables._to_micros(healing_tables._quoted(source.until),
            healing_tables._source_column_type(source, source.until))
            if source.kind == 'periods' else none,
        'state': healing_tables._state(source) if source.kind == 'snapshots' else none,
        'limit': healing_tables._end_of_time(spec.valid_to_current),
        'calendar': 'select ' ~ healing_tables._to_micros(healing_tables._quoted(source.moment), source.calendar_type)
        ~ ' as at from ' ~ source.calendar
            if has_calendar else none,
        'moment': healing_tables._quoted(source.moment), 'moment_type': healing_tables._source_column_type(source,
            source.moment),
        'loaded_column': healing_tables._quoted(source.loaded_at) if source.loaded_at else none,
            'loaded_type': loaded_type,
        'loaded_at': healing_tables._to_micros(healing_tables._quoted(source.loaded_at), loaded_type)
            if source.loaded_at
        else none,
        'set_aside': filtered ~ '(' ~ healing_tables._is_set_aside(spec, source) ~ ')',
        'ties': none if source.on_tie != 'greatest' else healing_tables._cdc_metadata(spec, source)
            if source.has_cdc_rules else healing_tables._tie_metadata(spec, source),
        'moved': healing_tables._cdc_metadata(spec, source) if source.sequence_by else none,
        'deletion': healing_tables._deletion_metadata(source, usable),
        'truncated': truncated, 'within': healing_tables._within_columns(source),
        'erased': source.get('erased'),
        'is_row_local': not healing_tables._reads_beyond_row(source.where)
        and not healing_tables._reads_beyond_row(source.deleted_when)
        and not healing_tables._reads_beyond_row(source.truncated_when),
        'has_subquery': healing_tables._reads_beyond_row(conditions, 'select')}) -}}
{%- endmacro %}

{#- What _count_ties() reads: {at, state, order, where}, SQL over its rows. -#}
{% macro _tie_metadata(spec, source) -%}
    {%- set best = [healing_tables._source_moment(source)] if healing_tables._is_clamped_to_since(source) else [] -%}
    {%- do best.extend(healing_tables._quoted_list(source.tie_break_by)) -%}
    {%- set within = healing_tables._window_conditions(source) -%}
    {{- return({
        'at': healing_tables._windowed_moment(source), 'state': healing_tables._state(source),
        'order': 'struct(' ~ (best | join(', ') or 'true') ~ ')',
        'where': ('(' ~ source.where ~ ') and ' if source.where else '') ~ 'coalesce('
            ~ healing_tables._is_usable_row(spec, source) ~ ', false)' ~ (' and ' ~ within | join(' and ') if within)})
        -}}
{%- endmacro %}

{#- {conditions (as they were given), is_deletion, place (among the rows of its key), where}, as SQL over its rows. -#}
{% macro _deletion_metadata(source, usable) -%}
    {%- set conditions = [source.deleted_when, source.truncated_when] | select | list -%}
    {%- if not conditions -%} {{ return(none) }} {%- endif -%}
    {{- return({
        'conditions': conditions, 'is_deletion': 'coalesce((' ~ (source.deleted_when or 'false') ~ '), false)',
        'place': 'struct(' ~ (healing_tables._quoted_list(source.sequence_by) | join(', ')
            or healing_tables._source_moment(source)) ~ ')', 'where': usable}) -}}
{%- endmacro %}

{#- The number of moments at which different rows of a key were equal in tie_break_by, so that the greatest was used.
    `condition`: on the rows, or none. -#}
{% macro _count_ties(scan, condition=none) -%}
    {%- set keys = healing_tables._key_names(scan['keys']) -%}
    {{- return(
        'select count(*) from (select count(distinct struct(state)) as states from (select ' ~ keys
        ~ ', at, state, rank() over (partition by ' ~ keys ~ ', at order by tie desc) as place from (select '
        ~ healing_tables._keys_of_scan(scan) ~ ', ' ~ scan.ties.at ~ ' as at, ' ~ scan.ties.state ~ ' as state, '
        ~ scan.ties.order ~ ' as tie from ' ~ scan.relation ~ ' where '
        ~ (condition ~ ' and ' if condition is not none else '') ~ scan.ties.where ~ ')) where place = 1 group by '
        ~ keys ~ ', at) where states > 1') -}}
{%- endmacro %}

{#- The number of rows that sequence_by moves: a row that precedes them in it has a later moment. `condition`: as
    above. -#}
{% macro _count_moved(scan, condition=none) -%}
    {{- return(
        'select count_if(at < newest) from (select at, max(at) over (partition by '
        ~ healing_tables._key_names(scan['keys']) ~ ' order by place range between unbounded preceding and current row)'
        ~ ' as newest from (select ' ~ healing_tables._keys_of_scan(scan) ~ ', ' ~ scan.at ~ ' as at, ' ~ scan.moved.at
        ~ ' as place from ' ~ scan.relation ~ ' where ' ~ (condition ~ ' and ' if condition is not none else '')
        ~ scan.moved.where ~ '))') -}}
{%- endmacro %}

{#- The key of a row, as a select list. -#}
{% macro _keys_of_scan(scan) -%}
    {%- set columns = [] -%}
    {%- for key in scan['keys'] -%} {%- do columns.append(key ~ ' as key_' ~ loop.index) -%} {%- endfor -%}
    {{- return(columns | join(', ')) -}}
{%- endmacro %}
