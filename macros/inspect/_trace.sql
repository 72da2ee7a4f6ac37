{#-
    The query of explain for one key, which replaces the select of dimension(): the same timeline, slices and versions,
    from the rows of this key only. One row per source row, slice and version: kind, place (to sort by), fields (JSON).
-#}
{% macro _trace(spec) -%}
{%- set rendering = healing_tables._rendering() -%}
{%- set spec = healing_tables._spec_for_key(spec, rendering.explain) -%}
{%- do rendering.update({'spec': spec, 'explained': rendering.explained + 1}) -%}
{%- set began = healing_tables._watched_changes(spec) | selectattr('began') | list -%}
{%- set traced = [] -%}
{%- for source in spec.sources -%} {%- do traced.append(healing_tables._traced_rows(spec, source)) -%} {%- endfor -%}
select kind, place, fields
from (
{{ healing_tables._timeline(spec, traced | join('')) }},
{{ healing_tables._slices(spec) }},
{{ healing_tables._versions(spec) }},
owned as (
    select
        at,
        array(
            {%- for source in spec.sources %}
            struct({{ healing_tables._string_literal(source.name) }} as source, {{ healing_tables._state_column(
                source.name) }} is not null as present, {{ healing_tables._change_flag(spec,
                source) }} as changed){{ ',' if not loop.last }}
            {%- endfor %}
        ) as sources,
        array(
            {%- for attribute in spec.attributes %}
            struct({{ healing_tables._string_literal(attribute.name) }} as attribute, {{ healing_tables._trace_text(
                healing_tables._owned_value(attribute), attribute.type) }} as value, {{ healing_tables._owner(
                attribute) }} as owner){{ ',' if not loop.last }}
            {%- endfor %}
        ) as owned,
        array(
            {%- for attribute in spec.attributes %}
            {{ healing_tables._offered_values(attribute) }}{{ ',' if not loop.last }}
            {%- endfor %}
        ) as offered
    from {{ 'recent' if began else 'points' }}
)
{%- for source in spec.sources %}
{{ healing_tables._row_outcomes(spec, source) }}
union all
{%- endfor %}
select 'slice' as kind, slice.at as place, {{ healing_tables._trace_json({
    'valid_from': healing_tables._trace_moment('slice.at'), 'valid_to': healing_tables._trace_moment('slice.valid_to'),
    'slice': 'if(slice.versioned is null, null, slice.slice_no)', 'version': 'version.version',
    'sources': 'owned.sources', 'owned': 'owned.owned', 'offered': 'owned.offered'}) }} as fields
from neighbours as slice
join owned on owned.at = slice.at
left join versions as version
on slice.versioned is not null and slice.slice_no between version.slice_no and version.finish.slice_no
union all
select 'version' as kind, valid_from as place, {{ healing_tables._trace_json({
    'version': 'version', 'valid_from': healing_tables._trace_moment('valid_from'),
    'valid_to': healing_tables._trace_moment('finish.valid_to'),
    'first_slice': 'slice_no', 'last_slice': 'finish.slice_no'}) }} as fields
from versions
) {{ healing_tables._call_end() }}
{%- endmacro %}

{#- The value that each source has for an attribute, and since when, where a rule compares that. For an attribute of one
    source it is empty: its value is never overruled. -#}
{% macro _offered_values(attribute) -%}
    {%- set values = healing_tables._source_values(attribute) -%}
    {%- set offered = [] -%}
    {%- for entry in attribute.from if values | length > 1 -%}
        {%- set began = healing_tables._began_columns(attribute)[loop.index0]
            if attribute.rule.startswith('most_recent') else 'null' -%}
        {%- do offered.append('struct(' ~ healing_tables._string_literal(healing_tables._owner_name(attribute, entry))
            ~ ' as source, ' ~ healing_tables._state_column(entry.source) ~ ' is not null as present, '
            ~ healing_tables._trace_text(values[loop.index0], attribute.type) ~ ' as value, cast(' ~ began
            ~ ' as string) as began)') -%}
    {%- endfor -%}
    {{- return('array(' ~ (offered | join(', '))
        ~ ')' if offered else 'cast(array() as array<struct<source: string, present: boolean, value: string, '
        ~ 'began: string>>)') -}}
{%- endmacro %}

{#- The rows of a source with the key, also those that are not read, with the reason. `_timeline` begins with these
    CTEs. -#}
{% macro _traced_rows(spec, source) %}
{{ healing_tables._source_column(source, 'traced') }} as (
    {%- if source.has_cdc_rules %}
    select coalesce(sent_at, at) as at, at as counts_at, state, tie, cast(null as string) as left_out,
        coalesce(says, array()) as says
    from (
        {{- healing_tables._cdc_rows(spec, source, kept={'sent_at': healing_tables._source_moment(source),
            'says': healing_tables._says(source)}) }}
    )
    union all
    select *
    from (
    {%- endif %}
    select
        {{ healing_tables._source_moment(source) }} as at,
        {{ healing_tables._windowed_moment(source) }} as counts_at,
        {{ 'null' if source.has_cdc_rules else healing_tables._state(source) }} as state,
        {{ 'null' if source.has_cdc_rules else healing_tables._tie_order(source) if source.has_tie
            else 'cast(null as int)' }} as tie,
        case
            {%- if source.where_without_key %}
            when not coalesce(({{ source.where_without_key }}), false) then 'not read: where'
            {%- endif %}
            when not coalesce({{ healing_tables._is_usable_row(spec, source) }}, false)
            then concat('set aside: ', {{ healing_tables._set_aside_reason(spec, source) }})
            {%- if healing_tables._window_conditions(source) and not source.sequence_by %}
            when not ({{ healing_tables._window_conditions(source) | join(' and ') }})
            then 'not read: outside of since and until'
            {%- endif %}
        end as left_out,
        {{ healing_tables._says(source) }} as says
    from {{ source.relation }}
    where {{ source.of_key }}
    {%- if source.has_cdc_rules %}
    )
    where left_out is not null
    {%- endif %}
),
{%- endmacro %}

{#- The columns of a row, as texts. -#}
{% macro _says(source) -%}
        array(
            {%- for column in ((source.used | map(attribute='column') | list) + source.tie_break_by
                + source.sequence_by + ([source.until, source.loaded_at] | select | list)) | unique %}
            struct({{ healing_tables._string_literal(column) }} as column, {{ healing_tables._trace_text(
                healing_tables._quoted(column), healing_tables._source_column_type(source, column)) }} as value){{ ','
                if not loop.last }}
            {%- else %}
            cast(null as struct<column: string, value: string>)
            {%- endfor %}
        )
{%- endmacro %}

{#- The outcome of each row: the timeline has the state of the source from each moment on, and whether it is a
    change. -#}
{% macro _row_outcomes(spec, source) -%}
{%- set lost = "'no change: a later row has its moment'" if source.sequence_by else "'lost a tie'" -%}
select 'row' as kind, row.at as place, {{ healing_tables._trace_json({
    'source': healing_tables._string_literal(source.name), 'moment': healing_tables._trace_moment('row.at'),
    'deletes': 'row.state is null',
    'says': 'row.says',
    'became': "case when row.left_out is not null then row.left_out when not (row.state <=> point.state) then "
        ~ ("if(row.at < " ~ healing_tables._micros_constant(source.cut_from)
            ~ ", 'no change: before since', " ~ lost ~ ")" if source.cut_from is not none else lost) ~ " "
        ~ "when row.nth > 1 then 'no change: equal row' when row.counts_at = point.at and point.changed then 'change' "
        "else 'no change' end"}) }} as fields
from (
    select *, row_number() over (partition by counts_at, state, left_out order by tie desc) as nth
    from {{ healing_tables._source_column(source, 'traced') }}
) as row
left join (
    select at, {{ healing_tables._state_column(source.name) }} as state, {{ healing_tables._change_flag(spec,
        source) }} as changed, lead(at) over (order by at) as next_at
    from points
) as point
on point.at <= row.counts_at and (point.next_at is null or row.counts_at < point.next_at)
{%- endmacro %}

{% macro _trace_json(fields) -%}
    {%- set parts = [] -%}
    {%- for name, expression in fields.items() -%}
        {%- do parts.append(expression ~ ' as ' ~ healing_tables._quoted(name)) -%}
    {%- endfor -%}
    {{- return('to_json(struct(' ~ (parts | join(', ')) ~ "), map('ignoreNullFields', 'false'))") -}}
{%- endmacro %}

{% macro _trace_moment(micros) -%}
    {{- return(healing_tables._as_text('timestamp_micros(' ~ micros ~ ')', 'timestamp')) -}}
{%- endmacro %}

{% macro _trace_text(expression, type) -%}
    {{- return('cast(' ~ expression ~ ' as string)' if type is none else healing_tables._as_text(expression, type)) -}}
{%- endmacro %}

{#- The spec for one key: each source is filtered first. -#}
{% macro _spec_for_key(spec, given) -%}
    {%- set mistakes = [] -%}
    {%- set names = spec.key_columns | map(attribute='name') | list -%}
    {%- set values = given if given is mapping else {names[0]: given} -%}
    {%- set missing = healing_tables._missing_names(names, values) -%}
    {%- set unknown = healing_tables._missing_names(values, names) -%}
    {%- if missing or unknown or none in values.values() -%}
        {%- do healing_tables._mistake(
            mistakes, 'key', 'a value for each of ' ~ (names | join(', ')), given | string,
            'write {key: {' ~ (names | join(': ..., ')) ~ ': ...}}') -%}
        {%- do healing_tables._raise_mistakes('explain', mistakes) -%}
    {%- endif -%}
    {%- set sources = [] -%}
    {%- for source in spec.sources -%}
        {%- set conditions = [] -%}
        {%- for name in names -%}
            {%- do conditions.append(healing_tables._equals_key(spec, source, loop.index0,
                values[healing_tables._find_column(name, values)])) -%}
        {%- endfor -%}
        {%- set of_key = conditions | join(' and ') -%}
        {%- do sources.append(dict(
            source, of_key=of_key, where_without_key=source.where,
            where=('(' ~ source.where ~ ') and ' if source.where else '') ~ of_key)) -%}
    {%- endfor -%}
    {#- with change_source, the timeline tracks changes of every source -#}
    {{- return(dict(spec, sources=sources, names=dict(spec.names, change_source='change_source'))) -}}
{%- endmacro %}

{% macro _equals_key(spec, source, position, value) -%}
    {%- set type = spec.key_columns[position].type -%}
    {%- set key = healing_tables._key_expression(spec, source, position) -%}
    {%- if type is none -%} {{ return('cast(' ~ key ~ ' as string) <=> '
        ~ healing_tables._string_literal(value)) }} {%- endif -%}
    {%- if type == 'timestamp' and healing_tables._parse_instant(value) is not none -%}
        {{- return(key ~ ' <=> ' ~ healing_tables._open_end(value, type)) -}}
    {%- endif -%}
    {{- return(key ~ ' <=> ' ~ healing_tables._cast(healing_tables._string_literal(value), 'string', type)) -}}
{%- endmacro %}
