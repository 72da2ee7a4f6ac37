{#- The audit of a healing_table: its option, and the changes of a build as _rows_of_audit() takes them. -#}

{#- The option, checked; none without it. -#}
{% macro _checked_audit(mistakes, format) -%}
    {%- set given = healing_tables._option('audit', none) -%}
    {%- if given is none -%} {{ return(none) }} {%- endif -%}
    {%- if given is not mapping -%}
        {%- do healing_tables._mistake(mistakes, 'audit', 'a map; {} turns the audit on',
            healing_tables._display_value(given), 'write audit: {}, or leave it out') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set texts = ['table', 'actor', 'reason', 'source'] -%}
    {%- do healing_tables._check_options(mistakes, 'audit', given, texts + ['first_build']) -%}
    {%- for name, value in given.items() if name in texts and value is not string -%}
        {%- do healing_tables._mistake(mistakes, 'audit.' ~ name, 'text', healing_tables._display_value(value),
            'write it as text, or leave it out') -%}
    {%- endfor -%}
    {%- do healing_tables._check_choice(
        mistakes, 'audit.first_build', given.get('first_build', true), [true, false]) -%}
    {%- if format is not none and not format.has_commits -%}
        {%- set able = healing_tables._formats_with('has_commits') -%}
        {%- do healing_tables._mistake(mistakes, 'audit', 'a table in ' ~ (able | join(' or '))
            ~ ', whose versions can be compared', format.name, 'set file_format: ' ~ able[0] ~ '; or leave it out') -%}
    {%- endif -%}
    {{- return(given) -}}
{%- endmacro %}

{#- The `audit` of a run (see _audit.sql); none without the option. -#}
{% macro _audit_of_build(run) -%}
    {%- set given, metadata = run.settings.audit, run.settings.metadata -%}
    {%- if given is none -%} {{ return(none) }} {%- endif -%}
    {{- return({
        'table': healing_tables._table_named_or_beside(run.target, given.get('table'), '_audit'),
        'surrogate': metadata.get('sequence') or (metadata.get('hash_key') or {}).get('name'),
        'valid_to': run.settings.valid_to, 'moment_type': none, 'row_start': none, 'ended': none, 'options': given,
        'causes': [], 'said': none, 'change_source': metadata.names.change_source, 'is_dated': false,
        'is_left_out': not run.stored and not given.get('first_build', true)}) -}}
{%- endmacro %}

{#- The settings of a run that compares the rows of a table: `metadata` of its model, and its columns. -#}
{% macro _settings_of_rows(mistakes, metadata, columns, format) -%}
    {%- set names = {} -%}
    {%- for name in ['valid_from', 'valid_to', 'is_current'] -%}
        {%- do names.update({name: healing_tables._find_column(metadata.names[name] or '', columns)}) -%}
    {%- endfor -%}
    {#- the flag of a deleted key hides that it has ended, its end does not -#}
    {%- do names.update({'is_current': none})
        if healing_tables._option('current_while_deleted', none) is sameas true and names.valid_to is not none -%}
    {{- return(dict(names, session=healing_tables._session_settings(), call=none, metadata=metadata,
        audit=healing_tables._checked_audit(mistakes, format), key_columns=metadata.key_columns,
        current_value=metadata.current_value, valid_to_current=metadata.valid_to_current)) -}}
{%- endmacro %}

{#-
    The rows that differ between two versions of a table, as _rows_of_audit() takes them. `before`, `after`: SQL for a
    `from`; `stored`, `columns`: their columns {name: type}; `is_unique`: no two rows have the same key and start.
-#}
{% macro _audited_versions(settings, before, after, stored, columns, is_unique) -%}
{%- set named, pairs = {}, {} -%}
{%- for key in settings.key_columns -%} {%- do named.update({'key_' ~ loop.index: key}) -%} {%- endfor -%}
{%- do named.update({'start': settings.valid_from}) if settings.valid_from is not none -%}
{%- for name, column in named.items() -%}
    {%- do pairs.update({name: healing_tables._comparable_column(column, stored, columns)}) -%}
{%- endfor -%}
{%- set sides = {} -%}
{%- for side, table in {'stored': before, 'candidate': after}.items() -%}
    {%- set names, list = stored if side == 'stored' else columns, [] -%}
    {%- for name, pair in pairs.items() -%} {%- do list.append(pair[side] ~ ' as ' ~ name) -%} {%- endfor -%}
    {%- do list.append('cast(null as bigint) as start') if settings.valid_from is none -%}
    {%- do list.append((healing_tables._current_condition(settings) if settings.is_current in names
        or settings.valid_to in names else 'true') ~ ' as is_current') -%}
    {%- do list.append(healing_tables._row_struct(names) ~ ' as whole') -%}
    {%- set rows = '(select ' ~ (list | join(', ')) ~ ' from ' ~ table ~ ')' -%}
    {%- do sides.update({side: rows if is_unique else '(select *, row_number() over (partition by '
        ~ (named | join(', ')) ~ ' order by to_json(whole)) as nth from ' ~ rows ~ ')'}) -%}
{%- endfor -%}
{%- set same = [] -%}
{%- for name in named | list + ([] if is_unique else ['nth']) -%}
    {%- do same.append('made.' ~ name ~ ' <=> stored.' ~ name) -%}
{%- endfor -%}
    select
        {%- for name in named %}
        coalesce(made.{{ name }}, stored.{{ name }}) as {{ name }},
        {%- endfor %}
        {%- if settings.valid_from is none %}
        cast(null as bigint) as start,
        {%- endif %}
        coalesce(stored.is_current, false) as was_current,
        coalesce(made.is_current, false) as is_current,
        made.whole as new,
        stored.whole as old
    from {{ sides.candidate }} as made
    full outer join {{ sides.stored }} as stored
    on {{ same | join(' and ') }}
    where made.whole is null or stored.whole is null or not ({{ healing_tables._same_values(
        'stored.whole', 'made.whole', stored, columns).values() | join(' and ') }})
{%- endmacro %}

{#- For each column that one of two rows has, whether both have the same value, as SQL {name: condition}. A column that
    a row lacks is NULL. `stored`, `columns`: the columns of the rows `old` and `new`, {name: type}. -#}
{% macro _same_values(old, new, stored, columns) -%}
    {%- set conditions = {} -%}
    {%- for name in dict(columns, **stored) -%}
        {%- set column = '.' ~ healing_tables._quoted(name) -%}
        {%- set was, is = stored.get(name), columns.get(name) -%}
        {%- if was is none or is is none -%}
            {%- set condition = (new if was is none else old) ~ column ~ ' is null' -%}
        {%- elif was == is and not healing_tables._has_no_equality(was) -%}
            {%- set condition = new ~ column ~ ' <=> ' ~ old ~ column -%}
        {%- else -%}
            {#- equal numbers of two types are the same value -#}
            {%- set before = 'cast(' ~ old ~ column ~ ' as ' ~ is ~ ')' if is != 'string'
                and healing_tables._type_holds(is, was) else old ~ column -%}
            {%- set condition = 'to_json(array(' ~ new ~ column ~ ')) <=> to_json(array(' ~ before ~ '))' -%}
        {%- endif -%}
        {%- do conditions.update({name: condition}) -%}
    {%- endfor -%}
    {{- return(conditions) -}}
{%- endmacro %}
