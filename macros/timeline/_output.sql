{#- The select of a dimension, and its columns. -#}

{% macro _dimension_select(spec) -%}
{%- set columns = healing_tables._output_columns(spec) -%}
{{ healing_tables._call_begin(spec, columns) }}
select
    {%- for column in columns %}
    {{ healing_tables._slot('hash', ' ' ~ column.expression ~ ' ') if column.is_hash else column.expression
        }} as {{ column.quoted }}{{ ',' if not loop.last }}
    {%- endfor %}
    {%- if spec.is_audited %},
    {{ healing_tables._audited_version(spec) }} as {{ healing_tables._audit_column() }}
    {%- endif %}
    {{ healing_tables._slot('order') }}
from (
{{ healing_tables._timeline(spec, '\n' ~ healing_tables._inputs(spec.sources), true) }},
{{ healing_tables._slices(spec) }},
{{ healing_tables._versions(spec) }}
select * from versions
)
{{ healing_tables._call_end() }}
{%- endmacro %}

{#- What the audit says of a version besides its columns: why it began, the moment of the newest change in it (in
    microseconds), and the cause that its first row gives. -#}
{% macro _audited_version(spec) -%}
    {{- return('struct(' ~ healing_tables._began_because(spec) ~ ' as reason, '
        ~ healing_tables._newest_move(spec, healing_tables._inner_changes(spec)) ~ ' as moment'
        ~ (', cause' if spec.causes) ~ ')') -}}
{%- endmacro %}

{% macro _audit_column() -%} {{ return('`healing_tables audit`') }} {%- endmacro %}

{#- [{name, quoted, expression (over the CTE `versions`), is_hash}] -#}
{% macro _output_columns(spec) -%}
    {%- set columns = [] -%}
    {%- if spec.surrogate_key is not none and spec.surrogate_key.strategy != 'sequence' -%}
        {%- do columns.append({
            'name': spec.surrogate_key.name, 'quoted': healing_tables._quoted(spec.surrogate_key.name),
            'expression': healing_tables._surrogate_key_of(spec), 'is_hash': true}) -%}
    {%- endif -%}
    {%- for key in spec.key_columns -%}
        {%- do columns.append({'name': key.name, 'quoted': healing_tables._quoted(key.name),
            'expression': 'key_' ~ loop.index}) -%}
    {%- endfor -%}
    {%- set moves, move_of = healing_tables._inner_changes(spec), {} -%}
    {%- for move in moves -%} {%- do move_of.update({move.attribute: move}) -%} {%- endfor -%}
    {%- for attribute in spec.attributes -%}
        {%- do columns.extend(healing_tables._attribute_columns(spec, attribute, move_of.get(attribute.name))) -%}
    {%- endfor -%}
    {%- set generated = healing_tables._generated_columns(spec, moves) -%}
    {%- for column, name in spec.names.items() if name is not none -%}
        {%- do columns.append({'name': name, 'quoted': healing_tables._quoted(name), 'expression': generated[column],
            'is_hash': column in ['key_hash', 'row_hash']}) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The columns of an attribute, including those that its SCD type adds. `move`: see _inner_changes, or none. -#}
{% macro _attribute_columns(spec, attribute, move) -%}
    {%- set field = '.' ~ attribute.quoted -%}
    {%- set columns = [{'name': attribute.name, 'quoted': attribute.quoted, 'expression': {
        0: attribute.first_column ~ '_value.value' if attribute.scd_type == 0,
        1: 'newest' ~ field, 2: 'versioned' ~ field, 3: 'finish.overwritten' ~ field, 6: 'versioned' ~ field
    }[attribute.scd_type]}] -%}
    {%- set extra = {} -%}
    {%- if attribute.scd_type == 6 -%}
        {%- do extra.update({'current_' ~ attribute.name: 'newest_versioned' ~ field,
            'previous_' ~ attribute.name: 'versioned_known' ~ field}) -%}
    {%- elif attribute.scd_type == 3 -%}
        {%- do extra.update({'previous_' ~ attribute.name: move.column ~ '.previous'}) -%}
    {%- endif -%}
    {%- if attribute.changed_at -%}
        {%- do extra.update({attribute.name ~ '_changed_at': healing_tables._from_micros(move.column ~ '.at',
            spec.moment_type)}) -%}
    {%- endif -%}
    {%- for name, expression in extra.items() if spec.extra_names[name] is not none -%}
        {%- do columns.append({'name': spec.extra_names[name],
            'quoted': healing_tables._quoted(spec.extra_names[name]), 'expression': expression}) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{% macro _began_because(spec) -%}
    {{- return("case when version = 1 then 'new'" ~ (' when versioned.' ~ healing_tables._deleted_field()
        ~ " then 'deleted'" if spec.deleted_rows else '') ~ " when after_gap then 'returned' else 'changed' end") -}}
{%- endmacro %}

{#- The newest moment that a column of a version shows. `moves`: see _inner_changes. -#}
{% macro _newest_move(spec, moves) -%}
    {%- set moments = ['at', 'finish.valid_to'] -%}
    {%- for move in moves -%} {%- do moments.append(move.column ~ '.at') -%} {%- endfor -%}
    {%- for attribute in spec.attributes if attribute.scd_type == 0 -%}
        {%- do moments.append(attribute.first_column ~ '_value.at') -%}
    {%- endfor -%}
    {{- return('greatest(' ~ (moments | join(', ')) ~ ')') -}}
{%- endmacro %}

{% macro _generated_columns(spec, moves) -%}
    {{- return({
        'valid_from': healing_tables._from_micros('valid_from', spec.moment_type),
        'valid_to': healing_tables._valid_to(spec, 'finish.valid_to'),
        'is_current': healing_tables._flag(spec.current_values, 'finish.valid_to is null'
            ~ (' or (is_last and finish.before_gap)' if spec.current_while_deleted)),
        'version': 'cast(version as int)',
        'compressed_row_count': 'finish.slice_no - slice_no + 1',
        'ended_by_delete': healing_tables._flag(spec.deleted_values,
            'finish.valid_to is not null and finish.before_gap'),
        'last_updated': healing_tables._from_micros(healing_tables._newest_move(spec, moves), spec.moment_type),
        'change_reason': healing_tables._given_cause(spec, 'change_reason', healing_tables._began_because(spec)),
        'change_source': healing_tables._given_cause(spec, 'change_source', 'change_source'),
        'key_hash': healing_tables._key_hash_of(spec),
        'row_hash': healing_tables._row_hash_of(spec),
        'is_deleted': 'versioned.' ~ healing_tables._deleted_field(),
    }) -}}
{%- endmacro %}

{#- The value that the row of a version's start gives as its cause, or else another one. -#}
{% macro _given_cause(spec, name, otherwise) -%}
    {%- if name not in spec.causes -%} {{ return(otherwise) }} {%- endif -%}
    {{- return('coalesce(cause.' ~ name ~ ', ' ~ (spec.causes[name] or otherwise) ~ ')') -}}
{%- endmacro %}

{% macro _valid_to(spec, micros) -%}
    {{- return(
        'coalesce(' ~ healing_tables._from_micros(micros, spec.moment_type) ~ ', '
        ~ healing_tables._open_end(spec.valid_to_current, spec.moment_type) ~ ')') -}}
{%- endmacro %}

{#- A condition as one of two values. -#}
{% macro _flag(values, condition) -%}
    {#- 1 equals true in Jinja -#}
    {%- if values[0] is sameas true and values[1] is sameas false -%} {{ return(condition) }} {%- endif -%}
    {{- return(
        'if(' ~ condition ~ ', ' ~ healing_tables._literal(values[0]) ~ ', ' ~ healing_tables._literal(values[1])
        ~ ')') -}}
{%- endmacro %}

{#- none if a type is unknown: _spec() has already refused that if the column is needed. -#}
{% macro _key_hash_of(spec) -%}
    {%- set columns = [] -%}
    {%- for key in spec.key_columns -%}
        {%- do columns.append({'expression': 'key_' ~ loop.index, 'type': key.type}) -%}
    {%- endfor -%}
    {{- return(healing_tables._hash(columns) if columns | selectattr('type', 'none') | list | length == 0 else none) -}}
{%- endmacro %}

{% macro _row_hash_of(spec) -%}
    {%- set columns = healing_tables._versioned_columns(spec) | sort(attribute='name', case_sensitive=true) -%}
    {{- return(healing_tables._hash(columns) if columns | selectattr('type', 'none') | list | length == 0 else none) -}}
{%- endmacro %}

{% macro _surrogate_key_of(spec) -%}
    {%- set valid_from = healing_tables._from_micros('valid_from', spec.moment_type) -%}
    {%- set text = healing_tables._as_text(valid_from, spec.moment_type) if spec.moment_type is not none
        else 'if(typeof(moment_type) = \'date\', cast(date_from_unix_date(cast(valid_from div 86400000000 as int)) as '
        'string), '
        ~ healing_tables._as_text('timestamp_micros(valid_from)', 'timestamp') ~ ')' -%}
    {%- set keys = [] -%}
    {%- for key in spec.key_columns -%} {%- do keys.append('key_' ~ loop.index) -%} {%- endfor -%}
    {{- return(healing_tables._version_key(
        spec.surrogate_key.strategy, keys, valid_from, healing_tables._key_hash_of(spec), text, spec.has_null_keys)) -}}
{%- endmacro %}
