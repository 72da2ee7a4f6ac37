{#-
    One pass over the sources computes the dimension, checks it and joins the stored rows. Only rows that differ or
    violate a check are written, to a table of changes beside the target.

    The select has already shuffled its rows by key, so the join shuffles only the stored rows.

    key_1 | start      | differs | stored_row | candidate_row | was_current | is_current | is_repeated | violations
    1     | 2024-02-01 | true    | Bea        | Eve           | true        | true       | false       | NULL
    2     | 2024-03-01 | true    | NULL       | Dan           | false       | true       | false       | [no_gaps]
-#}
{% macro _changes(build, inputs) -%}
{%- set build = healing_tables._without_conditions_of_all(build) -%}
{%- set keys = inputs.key_names -%}
{#- rows of dimension() are unique by key and start, which are not NULL; rows of another select may not be -#}
{%- set same = '=' if build.is_pure_call else '<=>' -%}
{%- set pairs = [] -%}
{%- for key in inputs.key_columns -%}
    {%- do pairs.append('made.key_' ~ loop.index ~ ' ' ~ same ~ ' stored.key_' ~ loop.index) -%}
{%- endfor -%}
{%- set place = healing_tables._order_column() if inputs.is_ordered else 'start' -%}
{%- do pairs.append('made.' ~ place ~ ' ' ~ same ~ ' stored.' ~ place) if inputs.valid_from is not none -%}
{%- do pairs.append('made.nth = stored.nth') if not inputs.is_unique -%}
{%- set violations = healing_tables._violations_of_row(build) -%}
{%- set differs = 'not (' ~ inputs.compared_row ~ ' <=> stored_row)' -%}
with {{ healing_tables._checked_candidate(build, inputs.is_ordered) }},
{{ 'made' if inputs.is_unique or build.is_pure_call else 'made_rows' }} as (
    select {{ inputs.candidate }}, row
        {%- if inputs.is_ordered %},
        {{ place }}
        {%- endif %}
        {%- if violations is not none %},
        {{ violations }} as violations
        {%- endif %}
        {%- if build.is_pure_call and not inputs.is_unique %},
        1 as nth, false as is_repeated
        {%- endif %}
    from checked
),
{%- if not (inputs.is_unique or build.is_pure_call) %}
made as (
    {{- healing_tables._number_equal_starts('made_rows', keys, inputs.compared_row) }}
),
{%- endif %}
{{ 'stored' if inputs.is_unique else 'stored_rows' }} as (
    select {{ inputs.stored }}
    from {{ inputs.stored_rows }}
),
{%- if not inputs.is_unique %}
stored as (
    {{- healing_tables._number_equal_starts('stored_rows', keys, 'stored_row') }}
),
{%- endif %}
differing as (
    select
        {%- for key in inputs.key_columns %}
        coalesce(made.key_{{ loop.index }}, stored.key_{{ loop.index }}) as key_{{ loop.index }},
        {%- endfor %}
        coalesce(made.start, stored.start) as start,
        {{ differs }} as differs,
        stored_row,
        row,
        coalesce(stored.is_current, false) as was_current,
        coalesce(made.is_current, false) as is_current,
        {{ 'false' if inputs.is_unique
            else 'coalesce(stored.is_repeated, false) or coalesce(made.is_repeated, false)' }} as is_repeated,
        {{ 'violations' if violations is not none else 'cast(null as array<string>)' }} as violations
    from made
    full outer join stored on {{ pairs | join(' and ') }}
    where {{ differs }}{{ ' or violations is not null' if violations is not none }}
)
select {{ keys }}, start, differs, stored_row,
    case when row is not null then struct(
        {{- healing_tables._published_columns(build) | join(', ') }}) end as candidate_row,
    was_current, is_current, is_repeated, violations
from differing
{%- endmacro %}

{#- The columns of the struct `row`: those of the candidate, except hashes that are computed later. -#}
{% macro _row_columns(build) -%}
    {{- return(build.columns | reject('in', build.hashes) | list) -}}
{%- endmacro %}

{#- CTEs that end in `checked`: the rows of the candidate, each as the struct `row`, with key_1.., valid_from,
    is_current, and what the checks need. `is_ordered`: the query has the column _order_column(). `finds`: see
    _checked_ctes(). -#}
{% macro _checked_candidate(build, is_ordered=false, finds='rows') -%}
candidate as (
{{ healing_tables._as_subquery(healing_tables._with_order(build.query) if is_ordered else build.query) }}
),
{{ healing_tables._checked_ctes(dict(build.settings, relation='candidate', columns=healing_tables._row_columns(build),
        order=healing_tables._order_column() if is_ordered else none), build.conditions, finds)
    if build.settings.checks else healing_tables._unchecked_ctes(build, is_ordered) }}
{%- endmacro %}

{#- The CTE `checked` of a candidate without checks. -#}
{% macro _unchecked_ctes(build, is_ordered) -%}
{%- set settings = build.settings -%}
checked as (
    select
        {%- for key in settings.key_columns %}
        {{ healing_tables._id(key) }} as key_{{ loop.index }},
        {%- endfor %}
        {{ healing_tables._id(settings.valid_from) if settings.valid_from is not none
            else 'cast(null as bigint)' }} as valid_from,
        {{ healing_tables._current_condition(settings) if settings.is_current in build.columns
            or settings.valid_to in build.columns else 'true' }} as is_current,
        {{ healing_tables._row_struct(healing_tables._row_columns(build)) }} as row
        {%- if is_ordered %},
        {{ healing_tables._order_column() }}
        {%- endif %}
        {{- healing_tables._broken_columns(build.conditions) }}
    from candidate
)
{%- endmacro %}

{#- The violations of a row of `checked`, as SQL for an array of names, NULL without violations; none if there is
    nothing to check. -#}
{% macro _violations_of_row(build) -%}
    {%- set conditions = [] -%}
    {%- set names = [] -%}
    {%- for check, arguments in build.settings.checks.items() -%}
        {%- set violated = healing_tables._is_violated(build.settings, check, arguments) -%}
        {%- do conditions.append('(' ~ violated ~ ')') -%}
        {%- do names.append('if(' ~ violated ~ ', ' ~ healing_tables._text(check) ~ ', null)') -%}
    {%- endfor -%}
    {%- for condition in build.conditions -%}
        {%- do conditions.append('broken_' ~ loop.index) -%}
        {%- do names.append('if(broken_' ~ loop.index ~ ', ' ~ healing_tables._text(condition.argument) ~ ', null)') -%}
    {%- endfor -%}
    {%- if not names -%} {{ return(none) }} {%- endif -%}
    {{- return('case when ' ~ conditions | join(' or ') ~ ' then array_compact(array(' ~ names | join(', ')
        ~ ')) end') -}}
{%- endmacro %}

{#- The columns of the candidate, from `row`; the hashes are computed here. -#}
{% macro _published_columns(build) -%}
    {%- set columns = [] -%}
    {%- for column in build.columns -%}
        {%- do columns.append(build.hashes.get(column, 'row.' ~ healing_tables._id(column)) ~ ' as '
            ~ healing_tables._id(column)) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The candidate as a select that raises an error if a row violates a check or a condition: for a table that is
    written directly. -#}
{% macro _checked_select(build) -%}
{%- set violations = healing_tables._violations_of_row(build) -%}
{%- if violations is none and not build.hashes -%} {{ return(build.query) }} {%- endif -%}
with {{ healing_tables._checked_candidate(build, healing_tables._has_order(build), 'first') }}
select
    {{ healing_tables._published_columns(build) | join(',\n    ') }}
from checked
{%- if violations is not none %}
where case
        when {{ violations }} is not null
        then cast(raise_error(concat({{ healing_tables._text('healing_tables: ' ~ build.target ~ ' is refused: ') }},
            array_join({{ violations }}, ', '), ' in key ', {{ healing_tables._key_text(build.settings.key_columns)
            }})) as boolean)
        else true
    end
{%- endif %}
{%- endmacro %}

{#- Whether _order_column() can be added to the query. -#}
{% macro _has_order(build) -%}
    {#- a contract wraps the query, and a sequence adds a join -#}
    {{- return(build.is_pure_call and build.settings.sequence is none and not config.get('contract').enforced
        and healing_tables._order_mark() in build.query) -}}
{%- endmacro %}

{#- Number rows with the same key and start by their values: equal rows get equal numbers on both sides. -#}
{% macro _number_equal_starts(rows, keys, compared) %}
    select *,
        row_number() over (partition by {{ keys }}, start order by xxhash64({{ compared }})) as nth,
        count(*) over (partition by {{ keys }}, start) > 1 as is_repeated
    from {{ rows }}
{%- endmacro %}

{#- A query for use in parentheses, without a final semicolon; the line break ends a comment in its last line. -#}
{% macro _as_subquery(query) -%}
    {{- return(modules.re.sub(';\\s*$', '', query) ~ '\n') -}}
{%- endmacro %}

{#- The figures of the changes, in one row. `changes`: SQL for a `from`. `stored_versions`: SQL for the versions of all
    keys, also in a heal. `counts`: a query whose rows are returned as JSON, or none. -#}
{% macro _change_figures(changes, inputs, stored_versions, counts=none) -%}
with changed_keys as (
    select {{ inputs.key_names }},
        bool_or(differs) as differs,
        count_if(differs and stored_row is null) as inserted,
        count_if(differs and stored_row is not null and candidate_row is not null) as updated,
        count_if(differs and candidate_row is null) as deleted,
        bool_or(was_current) and not bool_or(is_current) as ends,
        {#- also one that becomes current again, since its end is lost; a key with one row shows no gaps in any case #}
        count_if(stored_row is not null and not was_current and (candidate_row is null{{ ' or is_current'
            if inputs.is_versioned }})) as lost_versions,
        bool_or(is_repeated) as is_repeated,
        count(violations) as violated
    from {{ changes }}
    group by {{ inputs.key_names }}
)
select
    coalesce(sum(inserted), 0) as inserted,
    coalesce(sum(updated), 0) as updated,
    coalesce(sum(deleted), 0) as deleted,
    count_if(ends) as ended_keys,
    coalesce(sum(lost_versions), 0) as lost_versions,
    count_if(is_repeated) as repeated,
    coalesce(sum(violated), 0) as violated,
    {%- if inputs.has_buckets %}
    if(count_if(differs) <= 2000, array_join(collect_set(if(differs, {{
        healing_tables._key_bucket(inputs.key_names.split(', ')) }}, null)), ', '), '') as buckets,
    {%- endif %}
    count_if(differs) as differing_keys,
    {{ stored_versions }} as stored_versions
    {%- if counts is not none %},
    (select to_json(collect_list(struct(*))) from ({{ counts }})) as set_aside
    {%- endif %}
from changed_keys
{%- endmacro %}
