{#-
    Two ways to the same result: `fact` (a struct of its columns), its moment `at` in microseconds, and `version`
    {until, row}: the version of its key that began last at or before that moment, NULL if there is none. Whether that
    version has ended by then is for as_of() to see.

    Where versions overlap, the one that began last counts; of those the one that ends last; then the columns decide.
-#}

{#-
    Facts and versions under one another, in one shuffle; then each fact looks back. One pass, whatever the number of
    versions. The sort by key and moment compares rows of a key column by column, which is slow where a key has many:
    so they are first put in order by one number, the key's hash and then the moment, and come to it in runs.
-#}
{% macro _as_of_window(as_of_request) -%}
{%- set keys = as_of_request.key_columns | map(attribute='name') | join(', ') -%}
with moments as (
    select
        {%- for key in as_of_request.key_columns %}
        {{ key.fact }} as key_{{ loop.index }},
        {%- endfor %}
        {#- facts without a key would all meet in one task #}
        if({{ healing_tables._has_no_key_in(as_of_request, 'fact_column') }}, {{ as_of_request.at }}, null) as spread,
        {{ as_of_request.at }} as at,
        struct(*) as fact,
        null as version
    from {{ as_of_request.facts }}
    union all
    select
        {%- for key in as_of_request.key_columns %}
        {{ key.version }} as key_{{ loop.index }},
        {%- endfor %}
        null as spread,
        {{ as_of_request.period.at }} as at,
        null as fact,
        {{ healing_tables._as_of_version(as_of_request) }} as version
    from {{ as_of_request.dimension }}
    where {{ healing_tables._as_of_is_usable(as_of_request) }}
),
looked_back as (
    select
        fact,
        at,
        last_value(version) ignore nulls over (
            partition by {{ keys }}, spread
            order by at, {{ as_of_request.order | join(', ') }}
            rows between unbounded preceding and current row
        ) as version
    from (
        select * from moments
        distribute by {{ keys }}, spread
        sort by shiftleft(cast(hash({{ keys }}) as bigint), 40) ^ shiftright(at, 24)
    )
)
select * from looked_back where fact is not null
{%- endmacro %}

{#- A join by key and period. A version is cut where the next one begins, so no fact can meet two. -#}
{% macro _as_of_join(as_of_request) -%}
select facts.fact, facts.at, versions.version
from (
    select
        {%- for key in as_of_request.key_columns %}
        {{ key.fact }} as key_{{ loop.index }},
        {%- endfor %}
        {{ as_of_request.at }} as at,
        struct(*) as fact
    from {{ as_of_request.facts }}
) as facts
left join (
    select
        {%- for key in as_of_request.key_columns %}
        {{ key.name }},
        {%- endfor %}
        at,
        struct(
            least(version.until, lead(at) over (
                partition by {{ as_of_request.key_columns | map(attribute='name')
                    | join(', ') }} order by at, {{ as_of_request.order | join(', ') }}
            )) as until,
            version.row as row
        ) as version
    from (
        select
            {%- for key in as_of_request.key_columns %}
            {{ key.version }} as key_{{ loop.index }},
            {%- endfor %}
            {{ as_of_request.period.at }} as at,
            {{ healing_tables._as_of_version(as_of_request) }} as version
        from {{ as_of_request.dimension }}
        where {{ healing_tables._as_of_is_usable(as_of_request) }}
    )
) as versions
    on {% for key in as_of_request.key_columns %}facts.{{ key.name
        ~ healing_tables._key_operator(as_of_request) }}versions.{{ key.name }}
    and {% endfor %}facts.at >= versions.at and facts.at < versions.version.until
{%- endmacro %}

{% macro _as_of_version(as_of_request) -%}
    {%- set fields = [] -%}
    {%- for column in as_of_request.columns -%}
        {%- do fields.append(healing_tables._quoted(column.column) ~ ' as ' ~ healing_tables._quoted(column.name)) -%}
    {%- endfor -%}
    {{- return('struct(' ~ as_of_request.period.until ~ ' as until, struct(' ~ fields | join(', ') ~ ') as row)') -}}
{%- endmacro %}

{#- Versions with a key and a moment in them; the others match nothing. -#}
{% macro _as_of_is_usable(as_of_request) -%}
    {%- set has_no_key = healing_tables._has_no_key_in(as_of_request, 'version_column') -%}
    {{- return('not (' ~ has_no_key ~ ') and ' ~ as_of_request.period.is_proper) -}}
{%- endmacro %}

{#- Whether a fact or a version has no key, as SQL: NULL in one of its columns, or with null_keys: keep in all. -#}
{% macro _has_no_key_in(as_of_request, side) -%}
    {%- set conditions = [] -%}
    {%- for key in as_of_request.key_columns -%}
        {%- do conditions.append(healing_tables._quoted(key[side]) ~ ' is null') -%}
    {%- endfor -%}
    {{- return(conditions | join(' and ' if as_of_request.has_null_keys else ' or ')) -}}
{%- endmacro %}
