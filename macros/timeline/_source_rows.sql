{#-
    One source as rows of the timeline:

    key_1..n  at (microseconds)  state (struct of the used columns, NULL if the row is a deletion)
              until (microseconds or NULL = open; periods, and sources that are cut)  tie (sources with a tie rule only)
              within_1..n (where a snapshot is complete for some values only), and those of _further_columns

    Rows that cannot be placed on the timeline are excluded here, and listed by set_aside. `has_input`: a CTE reads the
    relation.
-#}
{% macro _source_rows(spec, source, has_input=false) -%}
{#- explain reads the rows of one key, but the moments of all; in `where (a)`, Spark takes `where` for an alias -#}
{%- set where = source.get('where_without_key', source.where) -%}
{%- set limit = healing_tables._end_of_time(spec.valid_to_current) %}
    select
        {%- for key in source.key_columns %}
        {{ healing_tables._key_expression(spec, source, loop.index0) }} as key_{{ loop.index }},
        {%- endfor %}
        {{ healing_tables._windowed_moment(source) }} as at,
        {{ healing_tables._state(source) }} as state
        {%- set until = none if healing_tables._has_absence_deletes(source)
            else healing_tables._windowed_end(source, healing_tables._row_end(source, limit)) %}
        {%- if until is not none %},
        {{ until }} as until
        {%- endif %}
        {%- if source.has_tie %},
        {{ healing_tables._tie_order(source) }} as tie
        {%- endif %}
        {%- for column in healing_tables._within_columns(source) %},
        {{ column }} as within_{{ loop.index }}
        {%- endfor %}
        {%- for name, value in healing_tables._further_columns(spec, source).items() %},
        {{ value }} as {{ name }}
        {%- endfor %}
    from {{ healing_tables._input_of(source) if has_input else source.relation }}
    where {% if source.where %}({{ source.where }})
        and {% endif -%}
        coalesce({{ healing_tables._is_usable_row(spec, source) }}, false)
        {%- for condition in healing_tables._window_conditions(source) %}
        and {{ condition }}
        {%- endfor %}
{%- endmacro %}

{#-
    What some dimensions need of their rows, {name: SQL}; the timeline passes it on:

    moment_type   NULL of the type of the moments, if that is not known
    opened        the start that a row gives to the first version of its key, in microseconds
-#}
{% macro _further_columns(spec, source) -%}
    {%- set columns = {} -%}
    {%- do columns.update({'moment_type': 'if(false, ' ~ healing_tables._quoted(source.moment) ~ ', null)'})
        if spec.moment_type is none -%}
    {%- set opened = spec.opened_by.get(source.name) -%}
    {%- do columns.update({'opened': healing_tables._to_micros(healing_tables._quoted(opened),
        healing_tables._source_column_type(source, opened)) if opened is not none else 'cast(null as bigint)'})
        if spec.opened_by -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The CTE that reads a source, with the relation's name as an alias if a condition may use that name. -#}
{% macro _input_of(source) -%}
    {%- set is_qualified = source.alias is not none and '.' in (source.where or '') ~ (source.deleted_when or '')
        ~ (source.truncated_when or '') -%}
    {{- return(healing_tables._quoted(source.name ~ ' input') ~ (' as ' ~ healing_tables._quoted(source.alias)
        if is_qualified)) -}}
{%- endmacro %}

{#- The end of a row, NULL if it is open; none for a source without periods. -#}
{% macro _row_end(source, limit) -%}
    {%- if source.kind != 'periods' -%} {{ return(none) }} {%- endif -%}
    {%- set column = healing_tables._quoted(source.until) -%}
    {%- set until = healing_tables._to_micros(column, healing_tables._source_column_type(source, source.until)) -%}
    {%- set is_closed = until ~ ' < ' ~ limit ~ (' and ' ~ column ~ ' is distinct from (' ~ source.open_end ~ ')'
        if source.open_end else '') -%}
    {{- return('if(' ~ is_closed ~ ', ' ~ until ~ ', null)') -}}
{%- endmacro %}

{#- A key column in the common type. -#}
{% macro _key_expression(spec, source, position) -%}
    {%- set key = source.key_columns[position] -%}
    {{- return(healing_tables._cast(
        healing_tables._normalized_value(healing_tables._quoted(key.column), key.type),
        healing_tables._plain_type(key.type), spec.key_columns[position].type)) -}}
{%- endmacro %}

{#- True for a row that can be placed: it has a key, a moment before the end of time, a period that is not empty, and is
    no truncation. -#}
{% macro _is_usable_row(spec, source) -%}
    {%- set moment = healing_tables._source_moment(source) -%}
    {%- set conditions = [] -%}
    {%- do conditions.append(healing_tables._has_key_in(spec, source)) -%}
    {%- do conditions.append(moment ~ ' < ' ~ healing_tables._end_of_time(spec.valid_to_current)) -%}
    {%- do conditions.append('not ' ~ healing_tables._is_truncation(source)) if source.truncated_when -%}
    {%- if source.kind == 'periods' -%}
        {%- set until = healing_tables._quoted(source.until) -%}
        {%- do conditions.append(
            '(' ~ until ~ ' is null or ' ~ moment ~ ' < '
            ~ healing_tables._to_micros(until, healing_tables._source_column_type(source, source.until)) ~ ')') -%}
    {%- endif -%}
    {{- return(conditions | join(' and ')) -}}
{%- endmacro %}

{#- Whether a row has a key: no column of it is NULL, or with null_keys: keep not all. -#}
{% macro _has_key_in(spec, source) -%}
    {%- set conditions = [] -%}
    {%- for key in source.key_columns -%}
        {%- do conditions.append(healing_tables._quoted(key.column) ~ ' is not null') -%}
    {%- endfor -%}
    {{- return('(' ~ (conditions | join(' or ')) ~ ')' if spec.has_null_keys else conditions | join(' and ')) -}}
{%- endmacro %}

{#- The opposite, as direct comparisons of columns, so that files without such a row can be skipped. -#}
{% macro _is_set_aside(spec, source) -%}
    {%- set conditions = [] -%}
    {%- set is_no_end = ' and not ' ~ healing_tables._is_truncation(source) if source.truncated_when else '' -%}
    {%- for missing in healing_tables._missing_keys(spec, source) -%}
        {%- do conditions.append(missing.condition ~ is_no_end) -%}
    {%- endfor -%}
    {%- set moment = healing_tables._quoted(source.moment) -%}
    {%- set type = healing_tables._source_column_type(source, source.moment) -%}
    {%- do conditions.append(moment ~ ' is null') -%}
    {%- set end = healing_tables._end_of_time_text(spec.valid_to_current) -%}
    {%- set is_midnight = healing_tables._parse_instant(end)[1] == '00:00:00' -%}
    {%- set is_plain = type == 'timestamp' or (type == 'date' and is_midnight) -%}
    {%- do conditions.append(moment ~ ' >= ' ~ healing_tables._open_end(end, type) if is_plain
        else healing_tables._source_moment(source) ~ ' >= ' ~ healing_tables._end_of_time(spec.valid_to_current)) -%}
    {%- if source.kind == 'periods' -%}
        {%- set until = healing_tables._quoted(source.until) -%}
        {%- do conditions.append(until ~ ' is not null and ' ~ healing_tables._source_moment(source) ~ ' >= '
            ~ healing_tables._to_micros(until, healing_tables._source_column_type(source, source.until))) -%}
    {%- endif -%}
    {{- return(conditions | join(' or ')) -}}
{%- endmacro %}

{#- How a row can lack a key: [{condition, of (which columns)}]. -#}
{% macro _missing_keys(spec, source) -%}
    {%- set missing = [] -%}
    {%- for key in source.key_columns -%}
        {%- do missing.append({'condition': healing_tables._quoted(key.column) ~ ' is null',
            'of': 'key column ' ~ key.column}) -%}
    {%- endfor -%}
    {{- return([{'condition': missing | map(attribute='condition') | join(' and '), 'of': 'all key columns'}]
        if spec.has_null_keys else missing) -}}
{%- endmacro %}

{#- Why a row is set aside. -#}
{% macro _set_aside_reason(spec, source) -%}
case
        {%- for missing in healing_tables._missing_keys(spec, source) %}
        when {{ missing.condition }}{{ ' and not ' ~ healing_tables._is_truncation(source) if source.truncated_when }}
        then {{ healing_tables._string_literal('NULL in ' ~ missing.of) }}
        {%- endfor %}
        when {{ healing_tables._quoted(source.moment) }} is null
        then {{ healing_tables._string_literal('NULL moment in ' ~ source.moment) }}
        when {{ healing_tables._source_moment(source) }} >= {{ healing_tables._end_of_time(spec.valid_to_current) }}
        then {{ healing_tables._string_literal('moment at or after the end of time in ' ~ source.moment) }}
        else 'period that does not end after it starts'
    end
{%- endmacro %}

{#- The state of a row: the columns that the build uses, in the order of their names. -#}
{% macro _state(source) -%}
    {%- set fields, of_type, mark = [], {}, healing_tables._column_mark() -%}
    {%- for column in source.used -%}
        {%- do of_type.update({column.type: healing_tables._normalized_value(mark, column.type)})
            if column.type not in of_type -%}
        {%- do fields.append((of_type[column.type] | replace(mark, column.quoted)) ~ ' as ' ~ column.quoted) -%}
    {%- endfor -%}
    {%- set state = 'struct(' ~ (fields | join(', ') or 'true as present') ~ ')' -%}
    {%- if source.deleted_when -%}
        {%- set state = 'case when not coalesce((' ~ source.deleted_when ~ '), false) then ' ~ state ~ ' end' -%}
    {%- endif -%}
    {{- return(state) -}}
{%- endmacro %}

{#- The sort order of rows with the same moment; the greatest wins. With on_tie: greatest, a deletion and then the
    values decide last. -#}
{% macro _tie_order(source) -%}
    {%- set fields = [] -%}
    {#- of the rows that `since` moves to the same moment, the newest one counts -#}
    {%- if healing_tables._is_clamped_to_since(source) or (source.cut_from is not none and source.within) -%}
        {%- do fields.append(healing_tables._source_moment(source) ~ ' as moment') -%}
    {%- endif -%}
    {%- for column in source.tie_break_by -%}
        {%- set name = healing_tables._quoted(column) -%}
        {%- do fields.append(healing_tables._normalized_value(name, healing_tables._source_column_type(source, column))
            ~ ' as tie_' ~ loop.index) -%}
    {%- endfor -%}
    {%- if source.on_tie == 'greatest' -%}
        {%- set state = healing_tables._state(source) -%}
        {%- do fields.append('(' ~ state ~ ') is null as is_deleted') -%}
        {%- do fields.append(state ~ ' as state') -%}
        {%- do fields.extend(healing_tables._within_columns(source)) -%}
    {%- endif -%}
    {{- return('struct(' ~ (fields | join(', ')) ~ ')') -}}
{%- endmacro %}
