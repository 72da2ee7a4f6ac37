{#- The dimension as it is after a merge: a call of dimension() over the rows of the log and those of the batch. -#}

{#-
    The SQL of that call. `events`, `log_rows`: SQL for a `from`; `shown`: {end, flags}, see _shown_ends();
    `has_full`: log or batch has full batches; `condition`: on the rows of the log.
-#}
{% macro _merged_dimension(spec, layout, events, log_rows, shown, has_full, condition) -%}
{%- set columns = layout['keys'] + layout.carried -%}
{%- set types, attributes = {'changed_at': layout.moment_type, 'is_deleted': 'boolean'}, {} -%}
{%- for column in columns -%} {%- do types.update({column.name: column.type}) -%} {%- endfor -%}
{%- set rules = layout.rules -%}
{%- do types.update({healing_tables._moment_without_sequence(): 'timestamp'}) if rules.has_sequence -%}
{%- for attribute in layout.attributes -%}
    {%- do attributes.update({attribute.name: {'scd_type': attribute.options.scd_type,
        'changed_at': attribute.options.changed_at}}) -%}
{%- endfor -%}
{%- set names = columns | map(attribute='quoted') | join(', ') -%}
{%- set has_others = layout.causes or layout.flags -%}
{%- set rows = 'healing_tables_given' if has_others else 'healing_tables_events' -%}
{%- set keys, causes = layout['keys'] | map(attribute='quoted') | list, {} -%}
{%- for cause in layout.causes -%}
    {%- do causes.update({cause.name: healing_tables._string_literal(spec.audit.source)
        if cause.name == 'change_source' and (spec.get('audit') or {}).get('source') is not none
        else 'cast(null as string)' if cause.name == 'change_source' else none}) -%}
{%- endfor -%}
with healing_tables_events as (
    select {{ names }}, changed_at, is_deleted, is_full{{ ', true as healing_tables_logged' if has_others }}
    from {{ log_rows }}
    where {{ condition }}
    union all
    select {{ names }}, changed_at, is_deleted, is_full{{ ', false' if has_others }}
    from {{ events }}
),
{%- if has_others %}
healing_tables_given as (
    {#- a row that comes again with another cause is not another row; one that was complete stays so #}
    select {{ names }}, changed_at, is_deleted, is_full
    from (
        select {{ '*' if not layout.has_first_starts else healing_tables._with_first_start(layout, keys | join(', '))
            ~ ', healing_tables_logged' }}, row_number() over (partition by {{ healing_tables._competing_rows(layout)
            }} order by {{ healing_tables._rank_of_row(layout, 'healing_tables_logged') }}) as healing_tables_place
        from (select * from healing_tables_events distribute by {{ keys | join(', ') }})
    )
    where healing_tables_place = 1
),
{%- endif %}
{%- if has_full %}
{{ healing_tables._absences(layout, rows) }},
{%- endif %}
healing_tables_changes as (
    select {{ names }}, is_deleted, {{ 'changed_at' if layout.moment_type == 'timestamp'
        else healing_tables._from_micros('unix_micros(changed_at)', layout.moment_type) ~ ' as changed_at' }}
        {%- if rules.has_sequence %},
        {{ healing_tables._moment_if_unsequenced(layout.ties | map(attribute='quoted') | list) }} as {{
            healing_tables._moment_without_sequence() }}
        {%- endif %}
    from {{ 'healing_tables_present' if has_full else rows }}
    {%- if not has_full %}
    where not is_full
    {%- endif %}
)
{{ healing_tables._dimension_select(healing_tables._spec('dimension',
    {'changes': dict(healing_tables._rules_of_source(layout), relation='healing_tables_changes',
        changed_at='changed_at', deleted_when='is_deleted', on_tie=spec.get('on_tie') or 'error',
        columns=layout.attributes | map(attribute='name') | list)}, {
    'key_columns': layout['keys'] | map(attribute='name') | list, 'attributes': attributes,
    'column_names': layout.names, 'valid_to_current': shown.end, 'current_values': shown.flags,
    'deleted_values': spec.get('deleted_values'), 'valid_from_first': {'changes': 'valid_from_first'}
        if layout.has_first_starts else spec.get('valid_from_first'),
    'surrogate_key': spec.get('surrogate_key'), 'column_types': {'changes': types}, 'causes': causes,
    'is_audited': spec.get('audit') is not none,
    'partial_when': 'is_partial' if 'is_partial' in layout.flags | map(attribute='name') else none,
    'deleted_rows': spec.get('deleted_rows') is sameas true, 'null_keys': spec.get('null_keys'),
    'current_while_deleted': spec.get('current_while_deleted') is sameas true})) }}
{%- endmacro %}

{#- CTEs that end in `healing_tables_present`: the events, and the end of each key that the next full batch lacks. As
    ChangeLog.with_absences() of the library. `rows`: the CTE of the events. -#}
{% macro _absences(layout, rows) -%}
{%- set keys = layout['keys'] | map(attribute='quoted') | list -%}
{%- set names = (layout['keys'] + layout.carried) | map(attribute='quoted') | join(', ') -%}
{%- set no_values, same = healing_tables._typed_nulls(layout.carried), [] -%}
{%- set equals = healing_tables._key_operator(layout) -%}
{%- for key in keys -%} {%- do same.append('e.' ~ key ~ equals ~ 'p.' ~ key) -%} {%- endfor -%}
{#- a full batch without parts is complete for all -#}
{%- set moments = 'healing_tables_moments' if layout.part is none else 'transform(filter(healing_tables_moments, '
    ~ 'mark -> coalesce(mark.part = e.healing_tables_part, mark.part is null)), mark -> mark.at)' -%}
healing_tables_taken as (
    select collect_set({{ 'unix_micros(changed_at)' if layout.part is none
        else 'struct(within_values as part, unix_micros(changed_at) as at)' }}) as healing_tables_moments
    from {{ rows }}
    where is_full{{ ' and ' ~ healing_tables._has_no_key(layout) if layout.part is not none }}
),
healing_tables_seen as (
    select {{ keys | join(', ') }}, collect_set(unix_micros(changed_at)) as healing_tables_own
    from {{ rows }}
    where not {{ healing_tables._has_no_key(layout) }}
    group by {{ keys | join(', ') }}
),
healing_tables_absent as (
    select {{ keys | join(', ') }}, timestamp_micros(healing_tables_next_taken) as changed_at
    from (
        select e.{{ keys | join(', e.') }}, e.is_deleted,
            array_min(filter(array_except({{ moments }}, p.healing_tables_own),
                moment -> moment > unix_micros(e.changed_at))) as healing_tables_next_taken,
            lead(unix_micros(e.changed_at)) over (partition by e.{{ keys | join(', e.')
                }} order by e.changed_at, {{ healing_tables._tie_of_batch(layout, 'e.')
                }}, e.is_deleted) as healing_tables_next_at
        from {{ rows if layout.part is none else '(select *, ' ~ layout.part ~ ' as healing_tables_part from ' ~ rows
            ~ ')' }} as e
        cross join healing_tables_taken
        join healing_tables_seen as p on {{ same | join(' and ') }}
        where not e.is_full
    )
    where not is_deleted and healing_tables_next_taken < coalesce(healing_tables_next_at, healing_tables_next_taken + 1)
),
healing_tables_present as (
    select {{ names }}, changed_at, is_deleted
    from {{ rows }}
    where not is_full
    union all
    select {{ (keys + no_values) | join(', ') }}, changed_at, true
    from healing_tables_absent
)
{%- endmacro %}

{#- The settings that a merge has for every dimension. -#}
{% macro _common_settings(spec, format, session) -%}
    {{- return({
        'publish': 'merge', 'mode': 'rebuild', 'shards': 1, 'session': session, 'format': format,
        'ratios': {'max_removed_keys_ratio': spec.get('max_removed_keys_ratio', 0.5),
            'max_removed_versions_ratio': 1}}) -}}
{%- endmacro %}

{#-
    What the build of that call knows, as _build_settings() gives it for a model: only the rows of some keys are
    computed, and they are merged.
-#}
{% macro _settings_of_merge(spec, sql, format, session) -%}
    {%- set call = healing_tables._parse_call(sql) -%}
    {%- set metadata = call.metadata -%}
    {#- current_while_deleted: the flag of a deleted key hides that it has ended, its end does not -#}
    {%- set is_bounded = metadata.names.valid_from is not none and metadata.names.valid_to is not none -%}
    {%- set settings = dict(healing_tables._common_settings(spec, format, session), **{
        'call': call, 'metadata': metadata,
        'key_columns': metadata.key_columns, 'valid_from': metadata.names.valid_from,
        'valid_to': metadata.names.valid_to,
        'is_current': metadata.names.is_current if not spec.get('current_while_deleted') else none,
        'current_value': metadata.current_value, 'valid_to_current': metadata.valid_to_current,
        'tracked': metadata.versioned, 'sequence': metadata.get('sequence'),
        'checks': healing_tables._default_checks(metadata.can_delete, metadata.has_gaps,
            metadata.versioned | select | list | length > 0) if is_bounded else {}}) -%}
    {{- return(dict(settings, property=healing_tables._check_property(settings))) -}}
{%- endmacro %}
