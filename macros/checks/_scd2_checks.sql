{#-
    The checks of an SCD2 relation in one scan, one shuffle and one sort. The generic tests, temporal_integrity and the
    check before publishing all read these CTEs. The last one, `checked`, has the rows with everything that a check
    needs about their neighbours.

    key_1.., valid_from, valid_to   of the row, in the types of the table
    is_current, row                 whether it is the current one; all of its columns
    is_proper                       its period is valid and not empty
    n, current_rows                 its number within its key; the number of current rows of the key
    furthest, is_covered_for_ever   the latest end of earlier rows; whether one of them has no end
    end_before, row_before          the valid_to and row of the row before it
    is_repeat                       it touches that row, and has equal tracked values
    long_rows                       the rows that overlap the next one (n, valid_from, valid_to)

    check_request: relation (SQL text), key_columns, valid_from, valid_to, is_current (a column, or none: an open end
    means current), current_value, valid_to_current (none: NULL is the open end), tracked (columns or none), and checks
    {name: arguments}. A generic test may set `open_from`: an end from this moment on is open. A build may set `order`,
    a column by which each row of a valid dimension starts at the end of the previous one or later (violations are found
    in any order), and `columns`, the columns of `row`.

    Window functions keep rows in memory and copy them, so all columns are in one struct.
-#}
{% macro _checked_rows(check_request) -%}
with {{ healing_tables._checked_ctes(check_request) }}
{%- endmacro %}

{#-
    These CTEs without the `with`. `conditions` of a build add their columns to the rows. `finds` says which violations:

    pairs   all: a row that overlaps several earlier ones has several
    rows    all rows with a violation; long_rows is missing
    first   at least the first row with a violation of each key. Of the rows before it, the previous one ends last, so
            the others are not read. n is 1 or 2. The same as `rows` if no_overlaps or valid_order is off.
-#}
{% macro _checked_ctes(check_request, conditions=[], finds='pairs') -%}
{%- set reads_previous = finds == 'first' and 'no_overlaps' in check_request.checks
    and 'valid_order' in check_request.checks -%}
{%- set keys = healing_tables._key_names(check_request.key_columns) -%}
{%- set window = 'partition by ' ~ keys ~ ' order by ' ~ (check_request.get('order') or 'valid_from, valid_to') -%}
rows as (
    select
        {%- for key in check_request.key_columns %}
        {{ healing_tables._quoted(key) }} as key_{{ loop.index }},
        {%- endfor %}
        {{ healing_tables._quoted(check_request.valid_from) }} as valid_from,
        {{ healing_tables._quoted(check_request.valid_to) }} as valid_to,
        {{ healing_tables._current_condition(check_request) }} as is_current,
        {{ healing_tables._row_struct(check_request.get('columns')) }} as row
        {%- if check_request.get('order') %},
        {{ check_request.order }}
        {%- endif %}
        {{- healing_tables._broken_columns(conditions) }}
    from {{ check_request.relation }}
),
proper_rows as (
    select *,
        {#- a period that is not empty; a NULL end is open, whatever the configured open end #}
        valid_from is not null and (valid_to is null or valid_from < valid_to) as is_proper
    from rows
),
neighbours as (
    select *,
        {%- if not reads_previous %}
        count(*) over earlier + 1 as n,
        max(if(is_proper, valid_to, null)) over earlier as furthest,
        coalesce(max(is_proper and valid_to is null) over earlier, false) as is_covered_for_ever,
        {%- endif %}
        {%- if finds == 'pairs' %}
        coalesce(is_proper and (valid_to is null or lead(valid_from) over in_order < valid_to), false) as covers_next,
        {%- endif %}
        count(if(is_current, 1, null)) over whole as current_rows,
        lag(valid_to) over in_order as end_before,
        lag(row) over in_order as row_before
    from proper_rows
    window
        in_order as ({{ window }}),
        earlier as ({{ window }} rows between unbounded preceding and 1 preceding),
        whole as ({{ window }} rows between unbounded preceding and unbounded following)
),
checked as (
    select *,
        {%- if reads_previous %}
        if(row_before is null, 1, 2) as n,
        end_before as furthest,
        row_before is not null and end_before is null as is_covered_for_ever,
        {%- endif %}
        {{ healing_tables._is_repeat(check_request.tracked, 'end_before', 'row_before') }} as is_repeat
        {%- if finds == 'pairs' %},
        collect_list(if(covers_next, struct(n, valid_from, valid_to), null)) over (partition by {{ keys }}) as long_rows
        {%- endif %}
    from neighbours
)
{%- endmacro %}

{#- Whether a row breaks a condition [{sql}] over its columns: NULL counts as broken. -#}
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

{#- A single row: for each check the number of violations and up to five keys. `conditions` as in _checked_ctes;
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
    {%- set violations = 'size(' ~ healing_tables._earlier_rows() ~ ')' if healing_tables._check(check).has_pairs
        else 1 %}
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
        {%- set value = 'cast(key_' ~ loop.index ~ ' as string)' -%}
        {%- do parts.append(healing_tables._string_literal((', ' if not loop.first else '') ~ key ~ ' = ') ~ ', '
            ~ (value if key_columns | length == 1 else 'coalesce(' ~ value ~ ", 'NULL')")) -%}
    {%- endfor -%}
    {{- return(parts | join(', ')) -}}
{%- endmacro %}

{% macro _current_condition(check_request) -%}
    {%- if check_request.is_current is not none -%}
        {{- return(healing_tables._quoted(check_request.is_current) ~ ' <=> '
            ~ healing_tables._literal(check_request.current_value)) -}}
    {%- endif -%}
    {%- set valid_to = healing_tables._quoted(check_request.valid_to) -%}
    {{- return(
        '(' ~ valid_to ~ ' is null or ' ~ healing_tables._to_micros(valid_to, none) ~ ' >= '
        ~ healing_tables._micros_constant(check_request.get('open_from')
            or healing_tables._end_of_time_text(check_request.valid_to_current)) ~ ')') -}}
{%- endmacro %}

{#- A struct of these columns (none: of all), which may be fields of another struct: prefix 'row.'. -#}
{% macro _row_struct(columns, prefix='') -%}
    {%- if columns is none -%} {{ return('struct(*)') }} {%- endif -%}
    {%- set names = [] -%}
    {%- for column in columns -%} {%- do names.append(prefix ~ healing_tables._quoted(column)) -%} {%- endfor -%}
    {{- return('struct(' ~ (names | join(', ') or 'true as nothing') ~ ')') -}}
{%- endmacro %}

{#- Whether a row of `checked` violates a check. -#}
{% macro _is_violated(check_request, check, arguments) -%}
    {{- return(healing_tables._check(check, arguments, check_request).condition) -}}
{%- endmacro %}

{#- Whether a row touches the previous one, given by its end and its columns, and has equal tracked values. -#}
{% macro _is_repeat(tracked, end_before, row_before) -%}
    {%- set conditions = [end_before ~ ' = valid_from'] -%}
    {%- for column in tracked or [] -%}
        {%- set field = '.' ~ healing_tables._quoted(column) -%}
        {%- do conditions.append(row_before ~ field ~ ' <=> row' ~ field) -%}
    {%- endfor -%}
    {{- return('coalesce(' ~ conditions | join(' and ') ~ ', false)') -}}
{%- endmacro %}

{#- The earlier rows that overlap this one. -#}
{% macro _earlier_rows() -%}
    {{- return('filter(long_rows, a -> a.n < n and (a.valid_to is null or a.valid_to > valid_from))') -}}
{%- endmacro %}

{#- The violations of a row as an array of structs; the fields are the same for all checks. -#}
{% macro _violation(name) -%}
    {%- set check = healing_tables._check(name) -%}
    {%- set fields = [healing_tables._string_literal(name) ~ ' as failed_check'] -%}
    {%- for field, figure in healing_tables._all_figures().items() -%}
        {%- do fields.append((figure[0] if field in check.figures else 'if(false, ' ~ figure[1] ~ ', null)') ~ ' as '
            ~ field) -%}
    {%- endfor -%}
    {%- set violation = 'struct(' ~ fields | join(', ') ~ ')' -%}
    {{- return('transform(' ~ healing_tables._earlier_rows() ~ ', a -> ' ~ violation ~ ')' if check.has_pairs
        else 'array(' ~ violation ~ ')') -}}
{%- endmacro %}
