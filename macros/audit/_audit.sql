{#-
    The audit of a dimension: one row for each row that a publish adds, changes or removes. The library writes the same
    table (src/healing_tables/merge/audit.py); docs/merging.md explains its columns.
-#}

{% macro _audit_columns() -%}
    {{- return({
        'dimension': 'string', 'key': 'string', 'old_surrogate_key': 'string', 'new_surrogate_key': 'string',
        'change_type': 'string', 'change_reason': 'string', 'changed_columns': 'array<string>', 'old_values': 'string',
        'new_values': 'string', 'changed_at': 'timestamp', 'actor': 'string', 'reason': 'string', 'source': 'string',
        'batch_id': 'string', 'row_id': 'string', 'correlation_id': 'string'}) -}}
{%- endmacro %}

{#-
    `audit`: what a run writes its audit with.

    table       the relation
    surrogate, valid_to   these columns of the dimension, or none; moment_type: of valid_from, none without it
    options     actor, reason and source, as they are set
    causes      the names of causes that rows of a batch can have
    row_start, ended   of type 4: the column with the start of a row; the end of each key, {key_1.., ended (in
                microseconds)}, as SQL for a `from`. None of other dimensions: only a late change removes a row
    said        the causes of its rows, {key_1.., causes (a map from a moment to them), newest}, as SQL for a `from`; or
                none
-#}

{% macro _ensure_audit(run, mistakes, audit) -%}
    {%- set columns = healing_tables._audit_columns() -%}
    {#- older audits lack the cause of a row -#}
    {%- do healing_tables._ensure_table_beside(run.format, mistakes, audit.table, 'audit', columns,
        columns | reject('equalto', 'correlation_id') | list, run.format.properties.audit, ['changed_at']) -%}
{%- endmacro %}

{#- The statement that adds rows of the outbox of the library. `rows`: SQL for a `from`. -#}
{% macro _deliver_audit(format, audit, rows) -%}
{%- set names = healing_tables._audit_columns() | list -%}
merge into {{ audit.table }} as t
using (select audit.{{ names | join(', audit.') }} from {{ rows }}) as s
on t.row_id = s.row_id
{{ healing_tables._insert_missing(format, names) }}
{%- endmacro %}

{#- The id of a publish, which the commit of its audit names. -#}
{% macro _publish_id(invocation, version) -%} {{ return(invocation ~ '/' ~ version) }} {%- endmacro %}

{#- Add the audit of a publish, once. `found`: what the publish has changed, as _difference_of_commit() returns it
    (build/_audited.sql); `version`: the version of the commit. -#}
{% macro _write_audit(run, found, invocation, version) -%}
    {%- do healing_tables._run(healing_tables._append_to_audit(
        run, found.staged, found.columns, invocation, version)) -%}
    {%- do healing_tables._run(healing_tables._note_written_by(
        run.format, run.audit.table, healing_tables._publish_id(invocation, version))) -%}
{%- endmacro %}

{#- The statement for that. `staged`: a table of changes (build/_difference.sql); `columns`: those of the dimension. -#}
{% macro _append_to_audit(run, staged, columns, invocation, version) -%}
{%- set names = healing_tables._audit_columns() | list -%}
{%- set publish = healing_tables._string_literal(healing_tables._publish_id(invocation, version)) -%}
merge into {{ run.audit.table }} as t
using (
    select *, {{ publish }} as publish
    from (
{{ healing_tables._rows_of_audit(run, staged, columns, invocation, version) }}
    )
) as s
on t.batch_id = {{ healing_tables._string_literal(invocation) }} and t.row_id = s.row_id and s.publish = {{ publish }}
{{ healing_tables._insert_missing(run.format, names) }}
{%- endmacro %}

{#- The rows of the audit of a publish, as a select. -#}
{% macro _rows_of_audit(run, staged, columns, invocation, version) -%}
{%- set audit, key_columns, changed = run.audit, run.settings.key_columns, [] -%}
{%- set publish = healing_tables._publish_id(invocation, version) -%}
{%- for name in columns -%}
    {%- set column = healing_tables._quoted(name) -%}
    {%- do changed.append('if(new.' ~ column ~ ' <=> old.' ~ column ~ ', null, ' ~ healing_tables._string_literal(name)
        ~ ')') -%}
{%- endfor -%}
{%- set texts, same, key_names = {}, [], healing_tables._key_names(key_columns) -%}
{%- for name in ['actor', 'reason', 'source'] -%}
    {%- set given = audit.options.get(name) -%}
    {%- do texts.update({name: healing_tables._string_literal(given) if given is not none
        else 'current_user()' if name == 'actor' else 'cast(null as string)'}) -%}
{%- endfor -%}
{%- for name in ['reason', 'source'] if 'change_' ~ name in audit.causes -%}
    {%- do texts.update({name: 'coalesce(cause.change_' ~ name ~ ', ' ~ texts[name] ~ ')'}) -%}
{%- endfor -%}
{%- set key = [] -%}
{%- for name in key_columns -%}
    {%- do key.append('changes.key_' ~ loop.index ~ ' as ' ~ healing_tables._quoted(name)) -%}
    {%- do same.append('changes.key_' ~ loop.index ~ ' = said.key_' ~ loop.index) -%}
{%- endfor -%}
{%- set surrogate = healing_tables._quoted(audit.surrogate) if audit.surrogate else none -%}
{%- set start = healing_tables._to_micros('start', audit.moment_type) if audit.moment_type is not none else 'start' -%}
{%- set json = ', ' ~ healing_tables._json_options() ~ ')' -%}
select
    {{ healing_tables._string_literal(healing_tables._plain_names(run.target)) }} as dimension,
    key,
    {{ 'cast(old.' ~ surrogate ~ ' as string)' if surrogate else 'cast(null as string)' }} as old_surrogate_key,
    {{ 'cast(new.' ~ surrogate ~ ' as string)' if surrogate else 'cast(null as string)' }} as new_surrogate_key,
    change_type,
    case
        when change_type = 'insert' then audited.reason
        when change_type = 'remove' then {{ "'replaced'" if not audit.ended else "'deleted'" }}
        when change_type = 'close' then if({{ 'new.' ~ healing_tables._quoted(audit.valid_to) ~ ' = next_start'
            if audit.valid_to else 'false' }}, 'changed', 'deleted')
        when is_current and not was_current then 'reopened'
        else {{ "'overwritten'" if not audit.row_start
            else "if(new." ~ healing_tables._quoted(audit.row_start) ~ ' <=> old.'
                ~ healing_tables._quoted(audit.row_start) ~ ", 'overwritten', 'changed')" }}
    end as change_reason,
    if(change_type = 'insert', null, array_compact(array({{ changed | join(', ') }}))) as changed_columns,
    to_json(old{{ json }} as old_values,
    to_json(new{{ json }} as new_values,
    timestamp_micros(moment) as changed_at,
    {{ texts.actor }} as actor,
    {{ texts.reason }} as reason,
    {{ texts.source }} as source,
    {{ healing_tables._string_literal(invocation) }} as batch_id,
    sha2(concat_ws('|', {{ healing_tables._string_literal(publish) }}, key, start_text), 256) as row_id,
    {{ 'cause.correlation_id' if 'correlation_id' in audit.causes else 'cast(null as string)' }} as correlation_id
from (
    select *,
        to_json(struct({{ key | join(', ') }}){{ json }} as key
        {%- if audit.said is not none %},
        coalesce(if(change_type = 'insert', audited.cause, try_element_at(causes, moment)), newest) as cause
        {%- endif %}
    from (
        select {{ 'changes.*' if audit.ended else '*' }},
            candidate_row as new, stored_whole as old,
            case
                when stored_whole is null then 'insert'
                when candidate_row is null then 'remove'
                when was_current and not is_current then 'close'
                else 'update'
            end as change_type,
            coalesce(audited.moment, {{ 'ended' if audit.ended else start }}) as moment,
            cast({{ start }} as string) as start_text,
            lead(if(candidate_row is null, null, start)) ignore nulls over (partition by {{
                key_names }} order by start) as next_start
        from {{ staged }} as changes
        {%- if audit.ended %}
        left join {{ audit.ended }} as ends using ({{ key_names }})
        {%- endif %}
        where differs
    ) as changes
    {%- if audit.said is not none %}
    left join {{ audit.said }} as said on {{ same | join(' and ') }}
    {%- endif %}
)
{%- endmacro %}
