{#- What is wrong with a batch, from its table and the rows of the log with its keys. -#}

{#- Refuse a batch with mistakes, before anything is written. The library has the same words in plan/validation.py. -#}
{% macro _check_batch(merge, spec, figures) -%}
    {%- set mistakes = [] -%}
    {%- if figures.tied > 0 and spec.get('on_tie') != 'greatest' -%}
        {%- set tied = run_query(healing_tables._tied_keys(merge)).rows[0] -%}
        {%- do healing_tables._mistake(mistakes, 'two different rows for one key and moment',
            'one row per key and moment',
            healing_tables._examples_of_keys(tied['keys'], tied['examples']),
            'reduce the batch, set tie_break_by, or on_tie: greatest', keys=tied['examples']) -%}
    {%- endif -%}
    {%- if merge.full_at is not none and figures.row_count == figures.aside -%}
        {%- do healing_tables._mistake(mistakes, 'full_batch', 'every existing key',
            ('a batch without rows' if figures.row_count == 0 else 'only rows that are set aside ('
                ~ healing_tables._reasons_of_batch(merge.batch) ~ ')') ~ ', which would end every key',
            'check the extract; run without full_batch if nothing has changed') -%}
    {%- endif -%}
    {%- do healing_tables._refuse(merge.run, mistakes) if mistakes -%}
    {%- do exceptions.warn(healing_tables._plain_names(merge.run.target ~ ': ' ~ healing_tables._counted(figures.moved,
        'row') ~ ' of the batch moved to the moment of a row before in sequence_by, which is later'))
        if figures.get('moved') -%}
{%- endmacro %}

{#- {keys (the number of those with a tie), examples}. -#}
{% macro _tied_keys(merge) -%}
{%- set keys = merge.layout['keys'] -%}
{{ healing_tables._moments_of_batch(merge) }},
tied as (
    select concat({{ healing_tables._key_text(keys | map(attribute='name') | list) }}) as key_text,
        min(changed_at) as first_at
    from (
        select {{ healing_tables._numbered_keys(merge.layout) | join(', ') }}, changed_at
        from moments
        where healing_tables_tied
    )
    group by {{ healing_tables._key_names(keys) }}
)
select count(*) as `keys`, array_join(slice(array_sort(collect_list(concat(key_text{{ ", ' at ', "
    ~ healing_tables._utc_text('unix_micros(first_at)') if merge.layout.moment is not none
    }}))), 1, 5), '; ') as examples
from tied
{%- endmacro %}

{#- Why rows of the batch are set aside, as text: NULL in key column id: 2 rows. -#}
{% macro _reasons_of_batch(batch) -%}
    {%- set texts = [] -%}
    {%- for row in run_query('select healing_tables_reason as reason, count(*) as number from ' ~ batch
        ~ ' where healing_tables_reason is not null group by healing_tables_reason order by reason').rows -%}
        {%- do texts.append(row['reason'] ~ ': ' ~ healing_tables._counted(row['number'], 'row')) -%}
    {%- endfor -%}
    {{- return(texts | join('; ')) -}}
{%- endmacro %}

{#-
    {row_count, aside (rows), tied (moments of keys with two different rows), news (rows that the log
    lacks), moved (new rows that sequence_by moves; only with this option)}, from one query over the batch and the rows
    of the log with its keys and moments.
-#}
{% macro _figures_of_batch(merge) -%}
{{ healing_tables._moments_of_batch(merge) }}
select
    max(counts.row_count) as row_count,
    max(counts.aside) as aside,
    count_if(healing_tables_given and healing_tables_new) as news,
    count_if(healing_tables_tied) as tied
    {%- if merge.layout.rules.has_sequence %},
    coalesce(sum(healing_tables_moved), 0) as moved
    {%- endif %}
from (select count(*) as row_count, count(healing_tables_reason) as aside from {{ merge.batch }}) as counts
left join moments on true
{%- endmacro %}

{#- CTEs that end in `moments`: keys and moments of the batch, with healing_tables_given (the batch has a row), _tied
    (two different rows count), _new (the log lacks the row that counts). With rules of change data capture, every row
    counts, and those of one place in the order of their key are a tie. -#}
{% macro _moments_of_batch(merge) -%}
{%- set layout = merge.layout -%}
{%- set keys = layout['keys'] | map(attribute='quoted') | join(', ') -%}
{%- set columns = (layout['keys'] + layout.attributes + layout.extra_ties + layout.flags) | map(attribute='quoted')
    | join(', ') -%}
{%- set part = healing_tables._part_of_mark(layout) -%}
{#- a row that comes again with an earlier start of its key is new -#}
{%- set over = ' over (partition by ' ~ ([keys, 'changed_at', 'is_full'] + part) | join(', ') ~ ')'
    if not layout.rules.has_rules else '' -%}
{%- set earlier = 'not (min(valid_from_first)' ~ over ~ ' <=> min(if(healing_tables_logged, valid_from_first, null))'
    ~ over ~ ')' -%}
{%- set place = ([keys, 'is_full'] + (['healing_tables_part'] if part else []) + ['healing_tables_tie'])
    | join(', ') -%}
{%- set state, fields = healing_tables._state_of_batch(layout), [] -%}
{%- for tie in layout.ties -%} {%- do fields.append('healing_tables_tie.' ~ tie.quoted) -%} {%- endfor -%}
with events as (
    select * from {{ merge.events }}
),
both as (
    select {{ columns }}, changed_at, is_deleted, is_full, false as healing_tables_logged
    from events
    union all
    select {{ columns }}, changed_at, is_deleted, is_full, true
    from {{ merge.log_rows }}
    where not is_full and {{ healing_tables._is_key_of(layout, 'events') if layout.rules.has_rules
        else healing_tables._is_key_of(layout, 'events where not is_full', ['changed_at']) }}
    {%- if layout.rules.has_truncations %}
    union all
    select {{ columns }}, changed_at, is_deleted, is_full, true
    from {{ merge.log_rows }}
    where not is_full and {{ healing_tables._has_no_key(layout) }}
    {%- endif %}
    {%- if merge.full_at is not none %}
    union all
    select {{ columns }}, changed_at, is_deleted, is_full, true
    from {{ merge.log_rows }}
    where is_full and changed_at = {{ merge.full_at }}
    {%- endif %}
),
{%- if layout.rules.has_rules %}
sent as (
    select {{ keys }}, changed_at, is_full, {{ healing_tables._tie_of_batch(layout) }} as healing_tables_tie, {{
        state }} as healing_tables_state, count_if(not healing_tables_logged) > 0 as healing_tables_given,
        count_if(healing_tables_logged) = 0{{ ' or ' ~ earlier if layout.has_first_starts }} as healing_tables_new
        {{- ', ' ~ part[0] ~ ' as healing_tables_part' if part }}
    from both
    group by {{ healing_tables._competing_rows(layout) }}
),
moments as (
    select {{ keys }}, min(changed_at) as changed_at, is_full, max(healing_tables_given) as healing_tables_given,
        count(distinct struct(healing_tables_state)) > 1 as healing_tables_tied,
        max(healing_tables_new) as healing_tables_new
        {%- if layout.rules.has_sequence %},
        count_if(healing_tables_new and changed_at < healing_tables_newest) as healing_tables_moved
    from (
        select *, max(changed_at) over (partition by {{ keys }} order by healing_tables_tie, {{
            healing_tables._moment_if_unsequenced(fields) }} range between unbounded preceding and current row)
            as healing_tables_newest
        from sent
    )
    group by {{ place }}, {{ healing_tables._moment_if_unsequenced(fields) }}
        {%- else %}
    from sent
    group by {{ place }}, changed_at
        {%- endif %}
)
{%- else %}
ranked as (
    select *, rank() over (partition by {{ ([keys, 'changed_at', 'is_full'] + part) | join(', ') }} order by {{
        healing_tables._tie_of_batch(layout) }} desc) as healing_tables_place
        {{- ', ' ~ earlier ~ ' as healing_tables_earlier' if layout.has_first_starts }}
    from both
),
moments as (
    select {{ keys }}, changed_at, is_full, count_if(not healing_tables_logged) > 0 as healing_tables_given,
        not (min({{ state }}) <=> max({{ state }})) as healing_tables_tied,
        not (max(case when healing_tables_logged then {{ state }} end) <=> max({{ state }}))
            {{- ' or max(healing_tables_earlier)' if layout.has_first_starts }} as healing_tables_new
    from ranked
    where healing_tables_place = 1
    group by {{ ([keys, 'changed_at', 'is_full'] + part) | join(', ') }}
)
{%- endif %}
{%- endmacro %}
