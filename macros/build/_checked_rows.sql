{#- The rows of a candidate with what is wrong with each, and the select that refuses them. -#}

{#- CTEs that end in `checked`: the rows of the candidate, each as the struct `row`, with key_1.., valid_from,
    is_current, and what the checks need. `is_ordered`: the query has the column _order_column(). `finds`: see
    _checked_ctes(). -#}
{% macro _checked_candidate(run, candidate, is_ordered=false, finds='rows') -%}
candidate as (
{{ healing_tables._as_subquery(healing_tables._with_order(candidate.query) if is_ordered else candidate.query) }}
),
{{ healing_tables._checked_ctes(dict(run.settings, relation='candidate', checks=candidate.checks,
        columns=healing_tables._row_columns(candidate), order=healing_tables._order_column() if is_ordered else none),
        candidate.conditions, finds)
    if candidate.checks else healing_tables._unchecked_ctes(run.settings, candidate, is_ordered) }}
{%- endmacro %}

{#- The CTE `checked` of a candidate without checks. -#}
{% macro _unchecked_ctes(settings, candidate, is_ordered) -%}
checked as (
    select
        {%- for key in settings.key_columns %}
        {{ healing_tables._quoted(key) }} as key_{{ loop.index }},
        {%- endfor %}
        {{ healing_tables._quoted(settings.valid_from) if settings.valid_from is not none
            else 'cast(null as bigint)' }} as valid_from,
        {{ healing_tables._current_condition(settings) if settings.is_current in candidate.columns
            or settings.valid_to in candidate.columns else 'true' }} as is_current,
        {{ healing_tables._row_struct(healing_tables._row_columns(candidate)) }} as row
        {%- if is_ordered %},
        {{ healing_tables._order_column() }}
        {%- endif %}
        {{- healing_tables._broken_columns(candidate.conditions) }}
    from candidate
)
{%- endmacro %}

{#- The columns of the struct `row`: those of the candidate, except hashes that are computed later; for an audit one
    more. -#}
{% macro _row_columns(candidate) -%}
    {{- return(candidate.columns | reject('in', candidate.hashes) | list + candidate.hidden) -}}
{%- endmacro %}

{#- The violations of a row of `checked`, as SQL for an array of names, NULL without violations; none if there is
    nothing to check. -#}
{% macro _violations_of_row(settings, candidate) -%}
    {%- set conditions = [] -%}
    {%- set names = [] -%}
    {%- for check, arguments in candidate.checks.items() -%}
        {%- set violated = healing_tables._is_violated(settings, check, arguments) -%}
        {%- do conditions.append('(' ~ violated ~ ')') -%}
        {%- do names.append('if(' ~ violated ~ ', ' ~ healing_tables._string_literal(check) ~ ', null)') -%}
    {%- endfor -%}
    {%- for condition in candidate.conditions -%}
        {%- do conditions.append('broken_' ~ loop.index) -%}
        {%- do names.append('if(broken_' ~ loop.index ~ ', ' ~ healing_tables._string_literal(condition.argument)
            ~ ', null)') -%}
    {%- endfor -%}
    {%- if not names -%} {{ return(none) }} {%- endif -%}
    {{- return('case when ' ~ conditions | join(' or ') ~ ' then array_compact(array(' ~ names | join(', ')
        ~ ')) end') -}}
{%- endmacro %}

{#- The candidate as a select that raises an error if a row violates a check or a condition: for a table that is
    written directly. -#}
{% macro _checked_select(run, candidate) -%}
{%- set violations = healing_tables._violations_of_row(run.settings, candidate) -%}
{%- if violations is none and not candidate.hashes and not candidate.hidden -%} {{ return(candidate.query) }}
{%- endif -%}
with {{ healing_tables._checked_candidate(run, candidate, healing_tables._has_order(run.settings, candidate),
    'first') }}
select
    {{ healing_tables._published_columns(candidate) | join(',\n    ') }}
from checked
{%- if violations is not none %}
where case
        when {{ violations }} is not null
        then cast(raise_error(concat({{ healing_tables._string_literal('healing_tables: ' ~ run.target
            ~ ' is refused: ') }},
            array_join({{ violations }}, ', '), ' in key ', {{ healing_tables._key_text(run.settings.key_columns)
            }})) as boolean)
        else true
    end
{%- endif %}
{%- endmacro %}

{#- The columns of the candidate, from `row`; the hashes are computed here. -#}
{% macro _published_columns(candidate) -%}
    {%- set columns = [] -%}
    {%- for column in candidate.columns -%}
        {%- do columns.append(candidate.hashes.get(column, 'row.' ~ healing_tables._quoted(column)) ~ ' as '
            ~ healing_tables._quoted(column)) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- Whether _order_column() can be added to the query. -#}
{% macro _has_order(settings, candidate) -%}
    {#- a contract wraps the query, and a sequence adds a join -#}
    {{- return(candidate.is_pure_call and settings.sequence is none and not config.get('contract').enforced
        and healing_tables._has_slot(candidate.query, 'order')) -}}
{%- endmacro %}

{#- A candidate whose conditions read only their own row: of the others, it does not have all rows. -#}
{% macro _without_conditions_of_all(candidate) -%}
    {{- return(dict(candidate, conditions=candidate.conditions | rejectattr('of_all', 'defined') | list)) -}}
{%- endmacro %}
