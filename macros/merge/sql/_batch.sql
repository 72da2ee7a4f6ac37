{#- The batch of a model as a table of the run, and its rows for the change log. -#}

{#- The batch as a table of the run. `sql`: of the model; others: see _batch_query(). -#}
{% macro _table_of_batch(run, spec, layout, sql, micros, end, change_log, has_seeds) -%}
    {%- set query = healing_tables._batch_query(spec, layout, sql, micros, end) -%}
    {%- set missing = layout.attributes | selectattr('is_missing', 'defined') | list -%}
    {%- if missing -%}
        {%- set are_kept = spec.missing_columns == 'keep' -%}
        {#- a value that was not sent is kept by its rule -#}
        {%- set filled = [] -%}
        {%- for column in missing if column.name | lower not in layout.rules.ignore_nulls -%}
            {%- do filled.append(column.quoted) -%}
        {%- endfor -%}
        {%- do exceptions.warn(healing_tables._plain_names(run.target ~ ': the batch lacks '
            ~ (missing | map(attribute='name') | join(', ')) ~ ', which the table has: '
            ~ ('their stored values stay' if are_kept else 'they become NULL') ~ ' (missing_columns)')) -%}
        {%- if are_kept and filled -%}
            {%- set query = healing_tables._with_kept_values(layout, filled,
                healing_tables._create_side_table(run, '_given', query), change_log) -%}
        {%- endif -%}
    {%- endif -%}
    {{- return(healing_tables._create_side_table(run, '_batch', query if not has_seeds
        else healing_tables._with_seeded_rows(layout, query, change_log))) -}}
{%- endmacro %}

{#-
    The query of that table. `micros`: the moment of the batch, as SQL; `end`: the open end. The row as it was given
    (see _set_aside_batch.sql) is kept where it is set aside.

    id   | name | changed_at | is_deleted | healing_tables_reason     | healing_tables_given
    1    | Ann  | 2024-01-01 | false      | NULL                      | NULL
    2    | NULL | 2024-01-01 | true       | NULL                      | NULL
    NULL | Bo   | 2024-01-01 | false      | NULL in key column id     | {NULL, Bo, 2024-01-01}
-#}
{% macro _batch_query(spec, layout, sql, micros, end) -%}
{%- set moment = healing_tables._moment_of_row(layout, micros) -%}
{%- set moment_name = layout.moment.name if layout.moment is not none else 'the moment of the batch' -%}
{%- set columns, conditions, ties = [], [], layout.ties | map(attribute='name') | map('lower') | list -%}
{%- for key in layout['keys'] -%}
    {%- set value = healing_tables._value_in_batch(key) -%}
    {%- do columns.append(('if(healing_tables_truncated, null, ' ~ value ~ ')' if spec.get('truncated_when')
        else value) ~ ' as ' ~ key.quoted) -%}
{%- endfor -%}
{%- for option in ['deleted_when', 'truncated_when'] if spec.get(option) -%}
    {%- do conditions.append('coalesce((' ~ healing_tables._close_line_comment(spec[option]) ~ '), false)') -%}
{%- endfor -%}
{%- for attribute in layout.attributes -%}
    {%- set value = healing_tables._value_in_batch(attribute) -%}
    {#- a row that ends its key has no attributes, but still needs its tie breakers -#}
    {%- do columns.append((value if attribute.name | lower in ties or not conditions
        else 'if(healing_tables_end, null, ' ~ value ~ ')') ~ ' as ' ~ attribute.quoted) -%}
{%- endfor -%}
{%- for tie in layout.extra_ties -%} {%- do columns.append(tie.column ~ ' as ' ~ tie.quoted) -%} {%- endfor -%}
{%- for column in layout.causes + layout.flags -%}
    {%- do columns.append('cast(' ~ column.column ~ ' as ' ~ column.type ~ ') as ' ~ column.quoted) -%}
{%- endfor -%}
{%- set has_no_key = ' and not healing_tables_truncated' if spec.get('truncated_when') else '' -%}
{%- set missing = {} -%}
{%- for key in layout['keys'] -%} {%- do missing.update({key.column ~ ' is null': 'key column ' ~ key.given_name}) -%}
{%- endfor -%}
{%- set missing = {missing | join(' and '): 'all key columns'} if layout.has_null_keys else missing -%}
select
    {{ columns | join(',\n    ') }},
    timestamp_micros({{ 'healing_tables_at - pmod(healing_tables_at, 86400000000)' if layout.moment_type == 'date'
        else 'healing_tables_at' }}) as changed_at,
    healing_tables_end as is_deleted,
    healing_tables_reason,
    if(healing_tables_reason is null, null, {{ healing_tables._row_as_given(layout) }}) as healing_tables_given
from (
    select *,
        case
            {%- for condition, columns in missing.items() %}
            when {{ condition ~ has_no_key }} then {{ healing_tables._string_literal('NULL in ' ~ columns) }}
            {%- endfor %}
            when healing_tables_at is null then {{ healing_tables._string_literal('NULL moment in ' ~ moment_name) }}
            when healing_tables_at >= {{ healing_tables._end_of_time(end) }}
            then {{ healing_tables._string_literal('moment at or after the end of time in ' ~ moment_name) }}
        end as healing_tables_reason
    from (
        select *, {{ moment }} as healing_tables_at, {{ conditions | join(' or ') or 'false' }} as healing_tables_end
            {{- ', ' ~ conditions[-1] ~ ' as healing_tables_truncated' if spec.get('truncated_when') }}
        from (
{{ healing_tables._as_subquery(sql) }}
        )
    )
)
{%- endmacro %}

{#-
    The query, with `healing_tables_seeded` for a row that a seed of the log (see _seeds.sql) stands for: a stored
    version, which does not tell the first values of type 0, nor of types 1 and 3 the values before the newest one. As
    ChangeLog.agrees() of the library.
-#}
{% macro _with_seeded_rows(layout, query, change_log) -%}
{%- set agrees, seeds, exact = [], [], [] -%}
{%- for attribute in layout.attributes -%}
    {%- do seeds.append(attribute.quoted) -%}
    {%- set others = ['not seeds.is_last'] if attribute.options.scd_type not in [2, 4, 6] else [] -%}
    {%- set is_sent = healing_tables._is_sent(layout, attribute, 'batch.') -%}
    {%- do others.append('not (' ~ is_sent ~ ')') if is_sent is not none -%}
    {%- set is_same = (others + ['batch.' ~ attribute.quoted ~ ' <=> seeds.seed.' ~ attribute.quoted]) | join(' or ')
        -%}
    {%- do exact.append('batch.' ~ attribute.quoted ~ ' <=> seeds.seed.' ~ attribute.quoted) -%}
    {%- do agrees.append('(' ~ is_same ~ ')' if others else is_same) if attribute.options.scd_type != 0 -%}
{%- endfor -%}
{#- a row with an earlier start of its key is logged for that -#}
{%- do agrees.append('not coalesce(' ~ (['batch.valid_from_first < batch.changed_at'] + exact) | join(' and ')
    ~ ', false)') if layout.has_first_starts -%}
select batch.*, coalesce({{ (['seeds.seed is not null and not batch.is_deleted'] + agrees) | join(' and ') }}, false)
    as healing_tables_seeded
from (
{{ query }}
) as batch
left join (
    select {{ healing_tables._numbered_keys(layout) | join(', ') }}, changed_at, struct({{ seeds | join(', ')
        or 'true as present' }}) as seed, changed_at = max(changed_at) over (partition by {{ layout['keys']
        | map(attribute='quoted') | join(', ') }}) as is_last
    from {{ change_log }}
    where is_seed and not is_deleted
) as seeds
on seeds.changed_at = batch.changed_at and {{ healing_tables._is_same_key(layout, 'batch.', 'seeds.') }}
{%- endmacro %}

{#-
    A query of the table `batch`, where a row has the value of its key's row before it in the log for each attribute
    that the batch lacks. As with_kept_values() of the library.
-#}
{% macro _with_kept_values(layout, missing, batch, change_log) -%}
{%- set keys = layout['keys'] | map(attribute='quoted') | list -%}
{%- set own = ['changed_at', 'is_deleted', 'healing_tables_reason', 'healing_tables_given'] -%}
{%- set columns, given = keys + [], keys + layout.carried | map(attribute='quoted') | list + own -%}
{%- for column in layout.carried -%}
    {%- do columns.append(column.quoted if column.quoted not in missing
        else 'if(is_deleted, null, healing_tables_before.' ~ column.quoted ~ ') as ' ~ column.quoted) -%}
{%- endfor -%}
{%- set logged = keys + healing_tables._typed_nulls(layout.carried) + ['changed_at', 'cast(null as boolean)',
    'cast(null as string)', 'null', 'if(is_deleted, null, struct(' ~ (missing | join(', ')) ~ '))', 'true'] -%}
select {{ (columns + own) | join(', ') }}
from (
    select *, last(healing_tables_logged, true) over (partition by {{ keys | join(', ') }}
        order by {{ healing_tables._tie_of_batch(layout) ~ ', ' if layout.rules.has_sequence
        }}changed_at, healing_tables_is_logged desc) as healing_tables_before
    from (
        select {{ given | join(', ') }}, null as healing_tables_logged, false as healing_tables_is_logged
        from {{ batch }}
        union all
        select {{ logged | join(', ') }}
        from {{ change_log }}
        where not is_full and {{ healing_tables._is_key_of(layout, batch) }}
    )
)
where not healing_tables_is_logged
{%- endmacro %}

{#- The moment of a row of the batch, as SQL. `micros`: of the batch. -#}
{% macro _moment_of_row(layout, micros) -%}
    {{- return(micros if layout.moment is none
        else healing_tables._to_micros(layout.moment.column, layout.moment.given)) -}}
{%- endmacro %}

{#- The keys of a row of the batch, as they are stored: {name: {expression, type}}. -#}
{% macro _keys_of_batch(layout) -%}
    {%- set columns = {} -%}
    {%- for key in layout['keys'] -%}
        {%- do columns.update({key.name: {'expression': healing_tables._value_in_batch(key), 'type': key.type}}) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#-
    The rows of the batch for the change log, as SQL for a `from`: keys, what they carry, changed_at, is_deleted,
    is_full. A full batch has more than those of the model; `full_at`: its moment as SQL, or none.

    - A row of its own, without a key, says that there was a full batch; with within, one for each of its parts.
    - With moments of its own, a row of the model may be older than the batch. It is repeated at the moment of the
      batch, since a deletion may be newer than the row.
    - A key that has only later rows, or rows that are set aside, is present nevertheless: a row says that.
-#}
{% macro _events_of_batch(layout, batch, full_at, has_seeds) -%}
{%- set keys = layout['keys'] | map(attribute='quoted') | list -%}
{%- set columns = (layout['keys'] + layout.carried) | map(attribute='quoted') | join(', ') -%}
{%- set usable = batch ~ ' where healing_tables_reason is null' -%}
{%- set rows = 'select ' ~ columns ~ ', changed_at, is_deleted, false as is_full from ' ~ usable
    ~ (' and not healing_tables_seeded' if has_seeds) -%}
{%- if full_at is none -%} {{ return('(' ~ rows ~ ')') }} {%- endif -%}
{%- set no_keys = healing_tables._typed_nulls(layout['keys']) -%}
{%- set no_values = healing_tables._typed_nulls(layout.carried) -%}
{%- set no_marks = [] -%}
{%- for column in layout.carried -%}
    {%- do no_marks.append(column.quoted if column.name == 'within_values' and column in layout.flags
        else healing_tables._typed_nulls([column])[0]) -%}
{%- endfor -%}
{%- set has_key = 'not ' ~ healing_tables._has_no_key(layout) if layout.has_null_keys
    else (keys | join(' is not null and ')) ~ ' is not null' -%}
{%- set full = ', ' ~ full_at ~ ' as changed_at, false as is_deleted, ' -%}
(
    {{ rows }}
    union all
    select {{ 'distinct ' if layout.part is not none }}{{ (no_keys + no_marks) | join(', ') }}{{ full }}true as is_full
    {{- ' from ' ~ usable if layout.part is not none }}
    {%- if layout.moment is not none %}
    union all
    select {{ columns }}{{ full }}false
    from (
        select *, row_number() over (partition by {{ keys | join(', ') }} order by changed_at desc, {{
            healing_tables._rank_of_row(layout) }}) as healing_tables_place
        from {{ usable }} and changed_at <= {{ full_at }}
    )
    where healing_tables_place = 1 and changed_at < {{ full_at }} and not is_deleted
    union all
    select {{ (keys + no_values) | join(', ') }}{{ full }}true
    from {{ batch }}
    where {{ has_key }}
    group by {{ keys | join(', ') }}
    having coalesce(min(case when healing_tables_reason is null then changed_at end) > {{ full_at }}, true)
    {%- endif %}
)
{%- endmacro %}
