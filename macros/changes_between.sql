{#-
    The changes of a dimension after `since`, up to and including `until`, each with the row before and after it.
    Applied to the rows valid at `since`, they give the rows valid at `until`.

    id | city | valid_from | valid_to        id | changed_at | change_reason | before.city | after.city
    7  | Oslo | 2024-01-01 | 2024-03-01  ->  7  | 2024-03-01 | changed       | Oslo        | Rome
    7  | Rome | 2024-03-01 | 2024-05-01      7  | 2024-05-01 | ended         | Rome        | NULL
-#}
{% macro changes_between(relation, key_columns, since, until, tracked_columns=none, valid_from='valid_from',
    valid_to='valid_to', valid_to_current='(not given)') -%}
{%- set instead = healing_tables._placeholder_select('changes_between', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes = [] -%}
{%- set key_columns = healing_tables._as_list(key_columns) -%}
{%- set tracked_columns = healing_tables._as_list(tracked_columns) -%}
{%- set columns = healing_tables._columns_of_existing(mistakes, 'relation', relation) -%}
{%- set period = healing_tables._period(mistakes, relation, columns, valid_from, valid_to, valid_to_current) -%}
{%- do healing_tables._check_changes(mistakes, relation, columns, key_columns, tracked_columns, since, until) -%}
{%- do healing_tables._raise_mistakes('changes_between', mistakes) -%}
{%- set keys = healing_tables._key_names(key_columns) -%}
select
    {%- for key in key_columns %}
    key_{{ loop.index }} as {{ healing_tables._quoted(key) }},
    {%- endfor %}
    change.*
from (
with versions as (
    select
        {%- for key in key_columns %}
        {{ healing_tables._quoted(key) }} as key_{{ loop.index }},
        {%- endfor %}
        {{ period.at }} as at,
        {{ period.until }} as until,
        {{ healing_tables._quoted(valid_from) }} as valid_from,
        {{ healing_tables._quoted(valid_to) }} as valid_to,
        struct({{ healing_tables._changes_shown(tracked_columns) }}) as row
    from {{ relation }}
    where {{ healing_tables._compare_instant(valid_from, period.from_type, '<=', until) }}
        and {{ period.is_proper }}
),
neighbours as (
    select *,
        lag(until) over in_order as ended,
        lag(row) over in_order as earlier,
        coalesce(lead(at) over in_order <= until, false) as is_followed
    from versions
    window in_order as (partition by {{ keys }} order by at, until)
),
changes as (
    select {{ keys }}, explode(array(
        struct(
            at,
            valid_from as changed_at,
            case when ended is null then 'new' when ended < at then 'returned' else 'changed' end as change_reason,
            if(ended >= at, earlier, null) as before,
            row as after
        ),
        struct(if(is_followed, null, until) as at, valid_to as changed_at, 'ended' as change_reason, row as before,
            if(false, row, null) as after)
    )) as change
    from neighbours
)
select {{ keys }}, struct(change.changed_at, change.change_reason, change.before, change.after) as change
from changes
where change.at > {{ healing_tables._micros_constant(since) }}
and change.at <= {{ healing_tables._micros_constant(until) }}
    {%- if tracked_columns %}
    and (change.change_reason <> 'changed' or not (change.before <=> change.after))
    {%- endif %}
)
{%- endmacro %}

{% macro _changes_shown(tracked_columns) -%}
    {{- return(healing_tables._quoted_list(tracked_columns) | join(', ') or '*') -}}
{%- endmacro %}

{% macro _check_changes(mistakes, relation, columns, key_columns, tracked_columns, since, until) -%}
    {%- if not key_columns -%}
        {%- do healing_tables._mistake(mistakes, 'key_columns', 'at least one column', 'none',
            'name the key columns') -%}
    {%- endif -%}
    {%- do healing_tables._check_columns(mistakes, 'key_columns', key_columns, relation | string, columns) -%}
    {%- do healing_tables._check_columns(mistakes, 'tracked_columns', tracked_columns, relation | string, columns) -%}
    {%- for name in tracked_columns if healing_tables._type_of_column(columns, name) is not none -%}
        {%- do healing_tables._check_attribute_type(mistakes, 'tracked_columns.' ~ name,
            healing_tables._type_of_column(columns, name), none) -%}
    {%- endfor -%}
    {%- do healing_tables._check_moment(mistakes, 'since', since) -%}
    {%- do healing_tables._check_moment(mistakes, 'until', until) -%}
    {%- if since is not none and until is not none -%}
        {%- set first = healing_tables._parse_instant(since) -%}
        {%- set last = healing_tables._parse_instant(until) -%}
        {%- if first and last and first > last -%}
            {%- do healing_tables._mistake(
                mistakes, 'since', 'a moment before until, which is ' ~ until, since, 'exchange the two') -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}
