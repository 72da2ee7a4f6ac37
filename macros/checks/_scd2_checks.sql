{#-
    The five checks of an SCD2 relation in one scan, one shuffle and one sort: the generic tests, temporal_integrity
    and the check before publishing all read these CTEs, which end in `checked`: the rows, with all that a check wants
    to know of their neighbours.

    about: relation (SQL text), key_columns, valid_from, valid_to, is_current (a column, or none: an open end means
    current), current_value, valid_to_current (none: NULL is the open end), tracked (columns or none), and checks
    {name: arguments}, with at_most_one, allowed_gaps and tolerance.
-#}
{% macro _checked_rows(check_request) -%}
with {{ healing_tables._checked_ctes(check_request) }}
{%- endmacro %}

{#- These CTEs without the `with`. `conditions` of a build add their columns to the rows; without `counts_pairs`, each
    row is found that overlaps an earlier one, but not how many it overlaps. -#}
{% macro _checked_ctes(check_request, conditions=[], counts_pairs=true) -%}
{%- set keys = healing_tables._key_names(check_request.key_columns) -%}
rows as (
    select
        {%- for key in check_request.key_columns %}
        {{ healing_tables._id(key) }} as key_{{ loop.index }},
        {%- endfor %}
        {{ healing_tables._id(check_request.valid_from) }} as valid_from,
        {{ healing_tables._id(check_request.valid_to) }} as valid_to,
        {{ healing_tables._current_condition(check_request) }} as is_current,
        struct({{ healing_tables._tracked_list(check_request) }}) as tracked,
        struct(*) as row
        {{- healing_tables._broken_columns(conditions) }}
    from {{ check_request.relation }}
),
proper_rows as (
    select *,
        {#- an interval that holds a moment; NULL as an end is endless, whatever the configured end #}
        valid_from is not null and (valid_to is null or valid_from < valid_to) as is_proper
    from rows
),
neighbours as (
    select *,
        row_number() over in_order as n,
        max(if(is_proper, valid_to, null)) over earlier as furthest,
        coalesce(max(is_proper and valid_to is null) over earlier, false) as is_covered_for_ever,
        {%- if counts_pairs %}
        coalesce(is_proper and (valid_to is null or lead(valid_from) over in_order < valid_to), false) as covers_next,
        {%- endif %}
        count(if(is_current, 1, null)) over whole as current_rows,
        {{ healing_tables._is_repeat('valid_to', 'in_order') }} as is_repeat
    from proper_rows
    window
        in_order as (partition by {{ keys }} order by valid_from, valid_to),
        earlier as (partition by {{ keys }} order by valid_from, valid_to rows between unbounded preceding
            and 1 preceding),
        whole as (partition by {{ keys }} order by valid_from, valid_to rows between unbounded preceding
            and unbounded following)
),
checked as (
    select *
        {%- if counts_pairs %},
        collect_list(if(covers_next, struct(n, valid_from, valid_to), null)) over (partition by {{ keys }}) as long_rows
        {%- endif %}
    from neighbours
)
{%- endmacro %}

{#- Whether a row breaks a condition [{sql}] over its columns: NULL is a break. -#}
{% macro _broken_columns(conditions) -%}
{%- for condition in conditions %},
        not coalesce({{ condition.sql }}, false) as broken_{{ loop.index }}
{%- endfor -%}
{%- endmacro %}

{#- One row per violation. -#}
{% macro _violations(check_request) -%}
{{ healing_tables._checked_rows(check_request) }}
select {% for key in check_request.key_columns %}key_{{ loop.index }}, {% endfor %}row, violation.*
from checked
lateral view explode(concat(
    {%- for check, arguments in check_request.checks.items() %}
    if({{ healing_tables._is_violated(check_request, check, arguments) }}, {{ healing_tables._violation(check) }},
        array()){{ ',' if not loop.last }}
    {%- else %}
    array()
    {%- endfor %}
)) violations as violation
{%- endmacro %}

{#- One row in all: of each check the number of violations and up to five keys. `conditions` as in _checked_ctes;
    `counts`: more columns. -#}
{% macro _check_summary(check_request, conditions=[], counts=[]) -%}
{%- set key_text = healing_tables._key_text(check_request.key_columns) -%}
with {{ healing_tables._checked_ctes(check_request, conditions) }}
select
    {%- for count in counts %}
    {{ count }},
    {%- endfor %}
    {%- for check, arguments in check_request.checks.items() %}
    {%- set violated = healing_tables._is_violated(check_request, check, arguments) %}
    {%- set violations = 'size(' ~ healing_tables._earlier_rows() ~ ')' if check == 'no_overlaps' else 1 %}
    coalesce(sum(if({{ violated }}, {{ violations }}, 0)), 0) as {{ check }},
    array_join(slice(sort_array(collect_set(if({{ violated }}, concat({{ key_text }}), null))), 1, 5), '; ')
        as {{ check }}_keys{{ ',' if not loop.last }}
    {%- endfor %}
from checked
{%- endmacro %}

{#- Arguments of concat(): the key as a text. -#}
{% macro _key_text(key_columns) -%}
    {%- set parts = [] -%}
    {%- for key in key_columns -%}
        {%- do parts.append(healing_tables._text(key ~ ' = ') ~ ', cast(key_' ~ loop.index ~ ' as string)'
            ~ (", ', '" if not loop.last)) -%}
    {%- endfor -%}
    {{- return(parts | join(', ')) -}}
{%- endmacro %}

{% macro _current_condition(check_request) -%}
    {%- if check_request.is_current is not none -%}
        {{- return(healing_tables._id(check_request.is_current) ~ ' <=> '
            ~ healing_tables._literal(check_request.current_value)) -}}
    {%- endif -%}
    {%- set valid_to = healing_tables._id(check_request.valid_to) -%}
    {{- return(
        '(' ~ valid_to ~ ' is null or ' ~ healing_tables._to_micros(valid_to, none) ~ ' >= '
        ~ healing_tables._end_of_time(check_request.valid_to_current) ~ ')') -}}
{%- endmacro %}

{% macro _tracked_list(check_request) -%}
    {%- set columns = [] -%}
    {%- for column in check_request.tracked or [] -%}
        {%- do columns.append(healing_tables._id(column)) -%}
    {%- endfor -%}
    {{- return(columns | join(', ') or 'true as present') -}}
{%- endmacro %}

{#- Whether a row of `checked` violates a check. -#}
{% macro _is_violated(check_request, check, arguments) -%}
    {%- if check == 'single_current' -%}
        {{- return('n = 1 and current_rows ' ~ ('> 1' if arguments.get('at_most_one') else '<> 1')) -}}
    {%- elif check == 'no_overlaps' -%}
        {{- return('is_proper and (is_covered_for_ever or coalesce(furthest > valid_from, false))') -}}
    {%- elif check == 'no_gaps' -%}
        {{- return(
            'is_proper and not is_covered_for_ever and coalesce(furthest < valid_from, false)'
            ~ healing_tables._allowed_gap_conditions(check_request, arguments)) -}}
    {%- elif check == 'valid_order' -%}
        {{- return('not coalesce(' ~ healing_tables._is_ordered('valid_from', 'valid_to',
            check_request.valid_to_current) ~ ', false)') -}}
    {%- endif -%}
    {{- return('is_repeat') -}}
{%- endmacro %}

{#- Whether a row touches the one before it in the window, and says the same. -#}
{% macro _is_repeat(valid_to, window) -%}
    {{- return(
        'coalesce(lag(' ~ valid_to ~ ') over ' ~ window ~ ' = valid_from and lag(tracked) over ' ~ window
        ~ ' <=> tracked, false)') -}}
{%- endmacro %}

{#- The rows before this one that share a moment with it. -#}
{% macro _earlier_rows() -%}
    {{- return('filter(long_rows, a -> a.n < n and (a.valid_to is null or a.valid_to > valid_from))') -}}
{%- endmacro %}

{#- The violations of a row as an array of structs; the fields are the same for all checks. -#}
{% macro _violation(check) -%}
    {%- set values = {
        'single_current': {'current_rows': 'current_rows'},
        'no_overlaps': {'a_from': 'a.valid_from', 'a_to': 'a.valid_to', 'b_from': 'valid_from', 'b_to': 'valid_to'},
        'no_gaps': {'gap_start': 'furthest', 'gap_end': 'valid_from'}}.get(check, {}) -%}
    {%- set fields = ["'" ~ check ~ "' as failed_check"] -%}
    {%- for field, like in {
        'current_rows': 'current_rows', 'a_from': 'valid_from', 'a_to': 'valid_to', 'b_from': 'valid_from',
        'b_to': 'valid_to', 'gap_start': 'valid_to', 'gap_end': 'valid_from'}.items() -%}
        {%- do fields.append(values.get(field, 'if(false, ' ~ like ~ ', null)') ~ ' as ' ~ field) -%}
    {%- endfor -%}
    {%- set violation = 'struct(' ~ fields | join(', ') ~ ')' -%}
    {{- return(
        'transform(' ~ healing_tables._earlier_rows() ~ ', a -> ' ~ violation ~ ')' if check == 'no_overlaps'
        else 'array(' ~ violation ~ ')') -}}
{%- endmacro %}

{#- True for a row that begins before it ends. NULL ends only where NULL is the open end. -#}
{% macro _is_ordered(valid_from, valid_to, valid_to_current) -%}
    {%- set valid_from = healing_tables._id(valid_from) -%}
    {%- set valid_to = healing_tables._id(valid_to) -%}
    {%- set end = healing_tables._valid_to_current(valid_to_current) -%}
    {%- if end is not none -%} {{ return(valid_from ~ ' < ' ~ valid_to) }} {%- endif -%}
    {{- return('if(' ~ valid_to ~ ' is null, ' ~ valid_from ~ ' is not null, ' ~ valid_from ~ ' < ' ~ valid_to
        ~ ')') -}}
{%- endmacro %}
