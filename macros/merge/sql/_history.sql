{#- The table beside a dimension of type 4: the rows that have left it. The library makes the same one. -#}

{% macro _history_relation(target, spec) -%}
    {{- return(healing_tables._table_named_or_beside(target, spec.get('history'), '_history')) -}}
{%- endmacro %}

{#- The columns of the history {name: type}. -#}
{% macro _history_columns(layout) -%}
    {%- set columns = {} -%}
    {%- for column in layout['keys'] + layout.attributes -%} {%- do columns.update({column.name: column.type}) -%}
    {%- endfor -%}
    {%- for attribute in layout.attributes if attribute.options.changed_at -%}
        {%- do columns.update({healing_tables._moment_column(layout, attribute): layout.moment_type}) -%}
    {%- endfor -%}
    {%- do columns.update({'valid_from': layout.moment_type, 'valid_to': layout.moment_type, 'history_id': 'string',
        'change_reason': 'string'}) -%}
    {{- return(columns) -}}
{%- endmacro %}

{% macro _moment_column(layout, attribute) -%}
    {%- set name = attribute.name ~ '_changed_at' -%}
    {{- return(layout.names.get(name) or name) -}}
{%- endmacro %}

{#- `is_begun`: the dimension exists, or its log has rows. Returns `narrower` as _ensure_table_beside() does. -#}
{% macro _ensure_history(run, mistakes, layout, history, is_begun) -%}
    {%- set keys = layout['keys'] | map(attribute='name') | list -%}
    {%- set found = healing_tables._ensure_table_beside(run.format, mistakes, history, 'history',
        healing_tables._history_columns(layout), keys + ['valid_from', 'valid_to'], run.format.properties.audit, keys)
        -%}
    {%- if not mistakes and not is_begun and healing_tables._has_rows(history) -%}
        {%- do healing_tables._mistake(mistakes, history | string, 'no history, since the dimension does not exist',
            'the history of an earlier table of this name',
            'restore the dimension, or drop or rename its history, too') -%}
    {%- endif -%}
    {{- return(found.narrower) -}}
{%- endmacro %}

{#-
    The statement that makes the history of the keys of a merge what the table of versions says, which has no row of a
    key that is deleted at its first moment. It can be repeated. `merge`: see _begin_merge(); `id`: which merge has done
    it, for its commit.
-#}
{% macro _merge_history(merge, versions, id) -%}
{%- set layout, history = merge.layout, merge.history -%}
{%- set keys = layout['keys'] | map(attribute='quoted') | list -%}
{%- set equals = healing_tables._key_operator(layout) -%}
{%- set from_keys = 'select ' ~ (keys | join(', ')) ~ ' from ' -%}
{%- set computed = '(' ~ from_keys ~ versions ~ ' union ' ~ (from_keys ~ merge.changed_keys if merge.changed_keys
    is not none else from_keys ~ merge.log_rows ~ ' union ' ~ from_keys ~ merge.events) ~ ')' -%}
{%- set columns, values, same, pairs = healing_tables._history_columns(layout), [], [], [] -%}
{%- set assignments, inserted = [], [] -%}
{%- set said = 'change_reason' in layout.causes | map(attribute='name') | list -%}
{%- set start = 'healing_tables_valid_from' -%}
{%- for name in columns -%}
    {%- set column = healing_tables._quoted(name) -%}
    {%- do values.append(({
        'valid_from': start, 'valid_to': 'healing_tables_valid_to',
        'history_id': healing_tables._version_key('hash', [], start, 'healing_tables_key_hash',
            healing_tables._as_text(start, layout.moment_type), layout.has_null_keys),
        'change_reason': 'coalesce(' ~ ('healing_tables_said.reason, ' if said)
            ~ "if(healing_tables_ended_by_delete, 'deleted', 'changed'))"}.get(name) or 'versions.' ~ column) ~ ' as '
        ~ column) -%}
    {%- do assignments.append('t.' ~ column ~ ' = s.row.' ~ column) -%}
    {%- do inserted.append('s.row.' ~ column) -%}
{%- endfor -%}
{%- for column in keys + ['valid_from'] -%}
    {%- do same.append('made.row.' ~ column ~ equals ~ 'stored.row.' ~ column) -%}
    {%- do pairs.append('t.' ~ column ~ equals ~ 's.row.' ~ column) -%}
{%- endfor -%}
{%- set names = healing_tables._quoted_list(columns) -%}
merge into {{ history }} as t
using (
    select coalesce(made.row, stored.row) as row, made.row is null as is_gone, {{ healing_tables._string_literal(id)
        }} as id
    from (
        select struct({{ values | join(', ') }}) as row
        from {{ versions }} as versions
        {%- if said %}
        left join (
            select {{ healing_tables._numbered_keys(layout) | join(', ') }}, changed_at, max_by(change_reason, struct({{
                healing_tables._tie_of_batch(layout) }}, {{ healing_tables._state_of_batch(layout) }})) as reason
            from {{ merge.change_log }}
            where not is_full and {{ healing_tables._is_key_of(layout, versions) }}
            group by {{ keys | join(', ') }}, changed_at
        ) as healing_tables_said
        on healing_tables_said.changed_at = timestamp_micros({{ healing_tables._to_micros('healing_tables_valid_to',
            layout.moment_type) }}) and {{ healing_tables._is_same_key(layout, 'versions.', 'healing_tables_said.') }}
        {%- endif %}
        where healing_tables_valid_to is not null
    ) as made
    full outer join (
        select struct({{ names | join(', ') }}) as row
        from {{ history }}
        where {{ healing_tables._is_key_of(layout, computed) }}
    ) as stored
    on {{ same | join(' and ') }}
    where not (made.row <=> stored.row)
) as s
on {{ pairs | join(' and ') }} and s.id = {{ healing_tables._string_literal(id) }}
when matched and s.is_gone then delete
when matched then update set {{ assignments | join(', ') }}
when not matched then insert ({{ names | join(', ') }}) values ({{ inserted | join(', ') }})
{%- endmacro %}
