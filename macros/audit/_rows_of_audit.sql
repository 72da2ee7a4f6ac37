{#-
    The rows of the audit of a publish, without its own columns, as a select. `publish`: see _publish_id().
    `found`: what the publish has changed:

    rows        a row for each, as a select: key_1.., start, was_current, is_current, old, new (structs, or NULL), and
                if the audit is dated, audited (see timeline/_output.sql)
    stored, columns   those of old and new, {name: type}
-#}
{% macro _rows_of_audit(run, found, invocation, publish) -%}
{%- set audit, key_columns, changed = run.audit, run.settings.key_columns, [] -%}
{%- for name, condition in healing_tables._same_values('old', 'new', found.stored, found.columns).items() -%}
    {%- do changed.append('if(' ~ condition ~ ', null, ' ~ healing_tables._string_literal(name) ~ ')') -%}
{%- endfor -%}
{%- set key_names, texts, said, ended, end_keys = healing_tables._key_names(key_columns), {}, [], [], [] -%}
{%- set equals = healing_tables._key_operator(run.settings.metadata) -%}
{%- for name in ['actor', 'reason', 'source'] -%}
    {%- set given = audit.options.get(name) -%}
    {%- do texts.update({name: healing_tables._string_literal(given) if given is not none
        else 'current_user()' if name == 'actor' else 'cast(null as string)'}) -%}
{%- endfor -%}
{%- for name in ['reason', 'source'] if 'change_' ~ name in audit.causes -%}
    {%- do texts.update({name: 'coalesce(cause.change_' ~ name ~ ', ' ~ texts[name] ~ ')'}) -%}
{%- endfor -%}
{%- set key, moved_by = [], healing_tables._quoted(audit.change_source) if audit.get('change_source') in found.columns
    else none -%}
{%- do texts.update({'source': "coalesce(if(change_type = 'close', next_source, new." ~ moved_by ~ '), ' ~ texts.source
    ~ ')'}) if moved_by is not none -%}
{%- for name in key_columns -%}
    {%- do key.append('changes.key_' ~ loop.index ~ ' as ' ~ healing_tables._quoted(name)) -%}
    {%- do said.append('changes.key_' ~ loop.index ~ equals ~ 'said.key_' ~ loop.index) -%}
    {%- do ended.append('changes.key_' ~ loop.index ~ equals ~ 'ends.ended_' ~ loop.index) -%}
    {%- do end_keys.append('key_' ~ loop.index ~ ' as ended_' ~ loop.index) -%}
{%- endfor -%}
{%- set surrogate = healing_tables._quoted(audit.surrogate) if audit.surrogate else none -%}
{%- set start_type = audit.moment_type if audit.is_dated or run.settings.valid_from is none
    else healing_tables._comparable_column(run.settings.valid_from, found.stored, found.columns).type -%}
{%- set start = healing_tables._to_micros('start', start_type) if start_type not in [none, 'micros'] else 'start' -%}
{%- set json = ', ' ~ healing_tables._json_options() ~ ')' -%}
select
    {{ healing_tables._string_literal(healing_tables._plain_names(run.target)) }} as dimension,
    key,
    {{ 'cast(old.' ~ surrogate ~ ' as string)' if surrogate else 'cast(null as string)' }} as old_surrogate_key,
    {{ 'cast(new.' ~ surrogate ~ ' as string)' if surrogate else 'cast(null as string)' }} as new_surrogate_key,
    change_type,
    case
        when change_type = 'insert' then {{ 'audited.reason' if audit.is_dated
            else "if(has_old, 'changed', 'new')" }}
        when change_type = 'remove' then {{ "'replaced'" if not audit.ended else "'deleted'" }}
        when change_type = 'close' then if({{ 'new.' ~ healing_tables._quoted(audit.valid_to) ~ ' = next_start'
            if audit.valid_to else 'false' }}, 'changed', 'deleted')
        when is_current and not was_current then 'reopened'
        else {{ "'overwritten'" if not audit.row_start
            else "if(new." ~ healing_tables._quoted(audit.row_start) ~ ' <=> old.'
                ~ healing_tables._quoted(audit.row_start) ~ ", 'overwritten', 'changed')" }}
    end as change_reason,
    if(change_type = 'insert', null, array_compact(array({{ changed | join(', ') }}))) as changed_columns,
    {{ healing_tables._row_text('old', found.stored) }} as old_values,
    {{ healing_tables._row_text('new', found.columns) }} as new_values,
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
            case
                when old is null then 'insert'
                when new is null then 'remove'
                when was_current and not is_current then 'close'
                else 'update'
            end as change_type,
            {%- if audit.is_dated %}
            coalesce(audited.moment, {{ 'ended' if audit.ended else start }}) as moment,
            {%- else %}
            {{ 'if(was_current and not is_current, ' ~ healing_tables._to_micros('new.' ~ healing_tables._quoted(
                audit.valid_to), healing_tables._type_of_column(found.columns, audit.valid_to)) ~ ', ' ~ start ~ ')'
                if audit.valid_to else start }} as moment,
            max(old is not null) over (partition by {{ key_names }}) as has_old,
            {%- if moved_by is not none %}
            lead(new.{{ moved_by }}) over (partition by {{ key_names }} order by start) as next_source,
            {%- endif %}
            {%- endif %}
            cast({{ start }} as string) as start_text,
            lead(if(new is null, null, start)) ignore nulls over (partition by {{
                key_names }} order by start) as next_start
        from {{ healing_tables._changes_without_erased(run, found, start) }} as changes
        {%- if audit.ended %}
        left join (select {{ end_keys | join(', ') }}, ended from {{ audit.ended }}) as ends on {{ ended
            | join(' and ') }}
        {%- endif %}
    ) as changes
    {%- if audit.said is not none %}
    left join {{ audit.said }} as said on {{ said | join(' and ') }}
    {%- endif %}
)
{%- endmacro %}

{#- The changes, without those of erased keys: the audit of a build that was killed may be written later. -#}
{% macro _changes_without_erased(run, found, start) -%}
    {%- set rows, mistakes, columns = '(\n' ~ found.rows ~ '\n)', [], {} -%}
    {%- set erased = healing_tables._erased(mistakes, run.target) -%}
    {%- if erased is none -%} {{ return(rows) }} {%- endif -%}
    {%- for name in run.settings.key_columns -%}
        {%- do columns.update({name: {'expression': 'key_' ~ loop.index,
            'type': healing_tables._comparable_column(name, found.stored, found.columns).type}}) -%}
    {%- endfor -%}
    {%- set join = healing_tables._erased_join(mistakes, erased, columns, start) -%}
    {%- do healing_tables._raise_mistakes('audit', mistakes) -%}
    {{- return(healing_tables._without_erased(rows, join)) -}}
{%- endmacro %}
