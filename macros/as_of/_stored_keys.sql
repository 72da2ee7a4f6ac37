{#-
    Facts that store what as_of() brought: what they store next to what they should.

    fact_key_1 | fact_at    | stored_1 | wanted_1 | has_version | was_unknown
    P1         | 2026-02-11 | 1        | 3        | true        | false

    `as_of_request` is that of _as_of_request(), made with `stored`. One row per fact.
-#}
{% macro _stored_and_expected(as_of_request) -%}
select
    {%- for key in as_of_request.key_columns %}
    {{ healing_tables._normalized_value('fact.' ~ healing_tables._quoted(key.fact_column),
        key.fact_type) }} as fact_key_{{ loop.index }},
    {%- endfor %}
    fact.{{ healing_tables._quoted(as_of_request.at_column) }} as fact_at,
    {%- for column in as_of_request.columns %}
    {{ healing_tables._normalized_value('fact.' ~ healing_tables._quoted(column.name),
        column.stored_type) }} as stored_{{ loop.index }},
    {{ healing_tables._as_stored_type('found_' ~ loop.index, column) }} as wanted_{{ loop.index }},
    {%- endfor %}
    coalesce(at < version.until, false) as has_version,
    version is not null as has_begun,
    ({% for column in as_of_request.columns -%}
        fact.{{ healing_tables._quoted(column.name) }} is null{{ ' and ' if not loop.last }}
    {%- endfor %}) or ({% for column in as_of_request.columns -%}
        {{ healing_tables._normalized_value('fact.' ~ healing_tables._quoted(column.name),
            column.stored_type) }} <=> {{ healing_tables._as_stored_type(column.unknown, column) }}{{ ' and '
            if not loop.last }}
    {%- endfor %}) as was_unknown
from (
select *
    {%- for column in as_of_request.columns %},
    case when at < version.until then version.row.{{ healing_tables._quoted(column.name) }}
    else {{ column.unknown }} end as found_{{ loop.index }}
    {%- endfor %}
from (
{{ healing_tables._as_of_join(as_of_request) if as_of_request.versions_per_key == 'few'
    else healing_tables._as_of_window(as_of_request) }}
)
)
{%- endmacro %}

{% macro _key_differs(as_of_request) -%}
    {%- set equal = [] -%}
    {%- for column in as_of_request.columns -%}
        {%- do equal.append('stored_' ~ loop.index ~ ' <=> wanted_' ~ loop.index) -%}
    {%- endfor -%}
    {{- return('not (' ~ equal | join(' and ') ~ ')') -}}
{%- endmacro %}

{#- A value of the dimension in the type in which the facts store it; one that does not fit is an error. -#}
{% macro _as_stored_type(expression, column) -%}
    {%- if none in [column.type, column.stored_type] -%} {{ return(expression) }} {%- endif -%}
    {{- return(healing_tables._normalized_value(
        healing_tables._cast(expression, column.type, column.stored_type), column.stored_type)) -}}
{%- endmacro %}

{#- Adds to `as_of_request` what the facts store, and narrows its facts to the columns that the look-up needs. -#}
{% macro _stored_columns(mistakes, as_of_request, facts, fact_columns, at) -%}
    {%- do as_of_request.update({'at_column': at, 'fact_relation': facts | string}) -%}
    {%- set looked_up_by = [at | string | lower] -%}
    {%- for key in as_of_request.key_columns -%}
        {%- do key.update({'fact_type': healing_tables._type_of_column(fact_columns, key.fact_column)}) -%}
        {%- do looked_up_by.append(key.fact_column | string | lower) -%}
    {%- endfor -%}
    {%- do healing_tables._check_columns(
        mistakes, 'columns', as_of_request.columns | map(attribute='name') | list, facts | string, fact_columns) -%}
    {%- for column in as_of_request.columns -%}
        {%- set type = healing_tables._type_of_column(fact_columns, column.name) -%}
        {%- do column.update({'stored_type': type}) -%}
        {%- if column.name | string | lower in looked_up_by -%}
            {%- do healing_tables._mistake(
                mistakes, 'columns.' ~ column.name, 'a column that stores a looked-up value',
                'a key column, or the moment', 'name another') -%}
        {%- elif none not in [type, column.type] and (
            healing_tables._has_no_equality(type) or not healing_tables._can_cast(column.type, type)) -%}
            {%- do healing_tables._mistake(
                mistakes, 'columns.' ~ column.name, 'a type in which ' ~ column.type ~ ' can be stored and compared',
                type,
                'create the column again with that type') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do as_of_request.update({'facts': healing_tables._fact_columns_select(as_of_request, '')}) -%}
{%- endmacro %}

{#- The facts in the columns that the look-up needs. `condition` says which of them. -#}
{% macro _fact_columns_select(as_of_request, condition) -%}
    {%- set seen = [] -%}
    {%- set names = [] -%}
    {%- for name in as_of_request.key_columns | map(attribute='fact_column')
        | list + [as_of_request.at_column] + as_of_request.columns | map(attribute='name') | list -%}
        {%- if name | string | lower not in seen -%}
            {%- do seen.append(name | string | lower) -%}
            {%- do names.append(healing_tables._quoted(name)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return('(\nselect ' ~ names | join(', ') ~ ' from ' ~ as_of_request.fact_relation ~ ' ' ~ condition ~ '\n)') -}}
{%- endmacro %}

{#- The facts that do not store what they should, each with the reason. -#}
{% macro _uncovered_facts(as_of_request, allow_unknown) -%}
{%- set no_key = [] -%}
{%- for key in as_of_request.key_columns -%}
    {%- do no_key.append('fact_key_' ~ loop.index ~ ' is null') -%}
{%- endfor -%}
select
    case
        when has_version and was_unknown then 'unknown, but a version is valid'
        when has_version then 'not the valid version'
        when {{ healing_tables._key_differs(as_of_request) }} then 'a key, but no version is valid'
        when {{ no_key | join(' and ' if as_of_request.has_null_keys else ' or ') }} then 'no key'
        when fact_at is null then 'no moment'
        when has_begun then 'in a gap, or after the end'
        else 'unknown key, or before its first version'
    end as reason,
    {%- for key in as_of_request.key_columns %}
    fact_key_{{ loop.index }} as {{ healing_tables._quoted(key.fact_column) }},
    {%- endfor %}
    fact_at as {{ healing_tables._quoted(as_of_request.at_column) }}
    {%- for column in as_of_request.columns %},
    stored_{{ loop.index }} as {{ healing_tables._quoted('stored_' ~ column.name) }},
    wanted_{{ loop.index }} as {{ healing_tables._quoted('wanted_' ~ column.name) }}
    {%- endfor %}
from (
{{ healing_tables._stored_and_expected(as_of_request) }}
)
where {{ healing_tables._key_differs(as_of_request) }}{{ '' if allow_unknown else ' or not has_version' }}
{%- endmacro %}
