{#-
    Type 4: the dimension has the newest row of a key, its history the earlier ones. Both are parts of the versions
    that types 2 and 3 would have: type 4 starts a version as type 2 does, and an earlier row keeps the value of type 1
    that it had at its end, as type 3 does (docs/decisions/0025-type-4-beside-0-and-1.md).

    versions  id | name | from | until    dimension  id | name | last_updated    history  id | name | valid_from
              1  | Ann  | 1    | 3                   1  | Eve  | 3                        1  | Ann  | 1
              1  | Eve  | 3    | NULL
-#}
{% macro _has_history(layout) -%}
    {{- return(layout.attributes | selectattr('options.scd_type', 'equalto', 4) | list | length > 0) -}}
{%- endmacro %}

{#- The layout of the versions: its attributes have types that dimension() knows, and its generated columns other
    names. -#}
{% macro _layout_of_versions(layout) -%}
    {%- set attributes, names = [], {} -%}
    {%- for name in layout.names -%} {%- do names.update({name: none}) -%} {%- endfor -%}
    {%- for name in ['valid_from', 'valid_to', 'version', 'ended_by_delete', 'change_reason', 'change_source',
        'key_hash'] -%}
        {%- do names.update({name: 'healing_tables_' ~ name}) -%}
    {%- endfor -%}
    {%- do names.update({'change_source': none})
        if 'change_source' not in layout.causes | map(attribute='name') | list -%}
    {%- for attribute in layout.attributes -%}
        {%- do attributes.append(dict(attribute, options=dict(attribute.options,
            scd_type={1: 3, 4: 2}.get(attribute.options.scd_type, attribute.options.scd_type)))) -%}
        {%- do names.update({'previous_' ~ attribute.name: none}) if attribute.options.scd_type == 1 -%}
        {%- do names.update({attribute.name ~ '_changed_at': healing_tables._moment_column(layout, attribute)})
            if attribute.options.changed_at -%}
    {%- endfor -%}
    {{- return(dict(layout, attributes=attributes, names=names)) -}}
{%- endmacro %}

{#- The run of a merge of type 4, with its versions as a table. Arguments: see _run_of_keys(). -#}
{% macro _run_with_versions(run, spec, layout, shown, events, log_rows, has_full, condition, changed_keys) -%}
    {%- set sql = healing_tables._merged_dimension(dict(spec, valid_from_first=none, surrogate_key=none,
        deleted_values=none, current_while_deleted=false), healing_tables._layout_of_versions(layout), events, log_rows,
        {'end': none, 'flags': none}, has_full, condition) -%}
    {%- set versions = healing_tables._create_side_table(run, '_versions_' ~ run.side_tables | length,
        sql if changed_keys is none
        else healing_tables._with_changed_keys(sql, healing_tables._parse_call(sql), changed_keys)) -%}
    {%- set audit = run.audit -%}
    {%- if audit is not none -%}
        {%- set keys = healing_tables._numbered_keys(layout) | join(', ') -%}
        {%- set audit = dict(audit, row_start=layout.names.last_updated, ended='(select ' ~ keys ~ ', max('
            ~ healing_tables._to_micros('healing_tables_valid_to', layout.moment_type) ~ ') as ended from ' ~ versions
            ~ ' group by ' ~ (layout['keys'] | map(attribute='quoted') | join(', ')) ~ ')') -%}
    {%- endif -%}
    {{- return(dict(run, audit=audit, changed_keys=changed_keys,
        sql=healing_tables._newest_rows(spec, layout, shown, versions, audit is not none),
        settings=healing_tables._settings_of_newest_rows(spec, layout, run), versions=versions)) -}}
{%- endmacro %}

{#- As _settings_of_merge(): the dimension has one row per key, so there is nothing to check. -#}
{% macro _settings_of_newest_rows(spec, layout, run) -%}
    {%- set settings = dict(healing_tables._common_settings(spec, run.format, run.settings.session), **{
        'call': none, 'metadata': {'names': layout.names, 'versioned': [], 'hashes': [], 'scans': [],
            'has_null_keys': layout.has_null_keys},
        'key_columns': layout['keys'] | map(attribute='name') | list, 'valid_from': none, 'valid_to': none,
        'is_current': none, 'current_value': true, 'valid_to_current': none, 'tracked': [],
        'sequence': healing_tables._sequence_name(healing_tables._surrogate_key([], spec.get('surrogate_key'))),
        'checks': {}}) -%}
    {{- return(dict(settings, property=healing_tables._check_property(settings))) -}}
{%- endmacro %}

{#- The select of the dimension: the versions that have not ended, in its columns. -#}
{% macro _newest_rows(spec, layout, shown, versions, is_audited) -%}
{%- set type, names, columns = layout.moment_type, layout.names, [] -%}
{%- set keys = layout['keys'] | map(attribute='quoted') | join(', ') -%}
{%- set first = 'healing_tables_first' -%}
{%- set start = 'healing_tables_valid_from' -%}
{%- if spec.get('valid_from_first') is not none -%}
    {%- set earliest = healing_tables._open_end(spec.valid_from_first, type) -%}
    {%- set first = 'least(' ~ first ~ ', ' ~ earliest ~ ')' -%}
    {%- set start = 'if(healing_tables_version = 1, least(' ~ start ~ ', ' ~ earliest ~ '), ' ~ start ~ ')' -%}
{%- endif -%}
{%- set surrogate = healing_tables._surrogate_key([], spec.get('surrogate_key')) -%}
{%- if surrogate is not none and surrogate.strategy != 'sequence' -%}
    {%- do columns.append(healing_tables._version_key(surrogate.strategy,
        layout['keys'] | map(attribute='quoted') | list, first, 'healing_tables_key_hash',
        healing_tables._as_text(first, type), layout.has_null_keys) ~ ' as '
        ~ healing_tables._quoted(surrogate.name)) -%}
{%- endif -%}
{%- do columns.extend(layout['keys'] | map(attribute='quoted')) -%}
{%- for attribute in layout.attributes -%}
    {%- do columns.append(attribute.quoted) -%}
    {%- do columns.append(healing_tables._quoted(healing_tables._moment_column(layout, attribute)))
        if attribute.options.changed_at -%}
{%- endfor -%}
{%- set flags, deleted = shown.flags or [true, false], spec.get('deleted_values') or [true, false] -%}
{%- set generated = {
    'valid_from': start, 'valid_to': 'cast(' ~ healing_tables._open_end(shown.end, type) ~ ' as ' ~ type ~ ')',
    'is_current': healing_tables._literal(flags[0]), 'version': 'healing_tables_version',
    'compressed_row_count': '1L', 'ended_by_delete': healing_tables._literal(deleted[1]),
    'last_updated': 'healing_tables_valid_from', 'change_reason': 'healing_tables_change_reason',
    'change_source': 'healing_tables_change_source', 'key_hash': 'healing_tables_key_hash',
    'row_hash': healing_tables._hash([])} -%}
{%- for name, expression in generated.items() if names.get(name) is not none -%}
    {%- do columns.append(expression ~ ' as ' ~ healing_tables._quoted(names[name])) -%}
{%- endfor -%}
{%- set hidden = healing_tables._audit_column() -%}
{%- do columns.append("struct('new' as reason, " ~ hidden ~ '.moment as moment'
    ~ (', ' ~ hidden ~ '.cause as cause' if layout.causes) ~ ') as ' ~ hidden) if is_audited -%}
select {{ columns | join(', ') }}
from (select *, min(healing_tables_valid_from) over (partition by {{ keys }}) as healing_tables_first from {{ versions
    }})
where healing_tables_valid_to is null
{%- endmacro %}

{#-
    Where the versions are stored from which a new log begins: {rows (SQL for a `from`), columns {name: type}, layout,
    shown}. Of type 4, these are the rows of the history and of the dimension.
-#}
{% macro _stored_versions(run, spec, layout, shown) -%}
    {%- if not healing_tables._has_history(layout) -%}
        {{- return({'rows': run.existing, 'columns': run.stored.columns, 'layout': layout, 'shown': shown}) -}}
    {%- endif -%}
    {%- set history = healing_tables._history_relation(run.target, spec) -%}
    {%- set columns, selects = healing_tables._history_columns(layout), {'earlier': [], 'newest': []} -%}
    {%- set start = healing_tables._quoted(layout.names.last_updated) -%}
    {%- for name, type in columns.items() if name != 'history_id' -%}
        {%- set column = healing_tables._quoted(name) -%}
        {%- set reason = layout.names.get('change_reason') -%}
        {%- set nothing = 'cast(null as ' ~ type ~ ')' -%}
        {%- do selects.earlier.append((nothing if name == 'change_reason' else column) ~ ' as ' ~ column) -%}
        {%- do selects.newest.append(({'valid_from': start, 'valid_to': nothing, 'change_reason':
            healing_tables._quoted(reason) if reason is not none else nothing}.get(name) or column) ~ ' as '
            ~ column) -%}
    {%- endfor -%}
    {%- set attributes = [] -%}
    {%- for attribute in layout.attributes -%}
        {%- do attributes.append(dict(attribute, options=dict(attribute.options, scd_type=2))
            if attribute.options.scd_type == 4 else attribute) -%}
    {%- endfor -%}
    {{- return({
        'rows': '(select ' ~ (selects.earlier | join(', ')) ~ ' from ' ~ history ~ ' union all select '
            ~ (selects.newest | join(', ')) ~ ' from ' ~ run.existing ~ ')',
        'columns': columns, 'shown': {'end': none, 'flags': none},
        'layout': dict(layout, attributes=attributes, names=dict(layout.names, valid_from='valid_from',
            valid_to='valid_to', is_current=none, last_updated=none, change_reason='change_reason',
            change_source=none))}) -}}
{%- endmacro %}
