{#-
    Placeholders for keys that facts reference before the dimension has them: one period for each such key, from its
    first fact to the moment from which on it is known. They are another source of the dimension.

    facts              known                   id | valid_from | valid_to   | is_inferred
    id | sold_on       id | valid_from    ->   7  | 2024-01-10 | 2024-02-01 | true
    7  | 2024-01-10    7  | 2024-02-01         9  | 2024-01-15 | NULL       | true
    9  | 2024-01-15    8  | 2024-01-01
-#}
{% macro inferred_members(facts, known, key_columns, at, valid_from='valid_from', valid_from_first=none) -%}
{%- set instead = healing_tables._placeholder_select('inferred_members', {'facts': facts, 'known': known}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set request = healing_tables._inferred_request(facts, known, key_columns, at, valid_from, valid_from_first) -%}
{%- set keys = request.key_columns | map(attribute='name') | join(', ') -%}
with moments as (
    select {% for key in request.key_columns %}{{ key.fact }} as {{ key.name }}, {% endfor %}
        {{ request.at }} as first_fact, null as first_known{{ request.no_type }}
    from {{ facts }}
    where {{ request.at }} < {{ request.end }}
    union all
    select {% for key in request.key_columns %}{{ key.version }} as {{ key.name }}, {% endfor %}
        null as first_fact, {{ request.known_from }} as first_known{{ request.moment_type }}
    from {{ known }}
),
members as (
    select {{ keys }}, min(first_fact) as first_fact, {{ request.first }} as starts,
    min(first_known) as first_known{{ request.any_type }}
    from moments
    where {{ request.key_columns | map(attribute='name') | join(' is not null and ') }} is not null
    group by {{ keys }}
    having min(first_fact) is not null
)
select
    {%- for key in request.key_columns %}
    {{ key.name }} as {{ healing_tables._quoted(key.version_column) }},
    {%- endfor %}
    {{ healing_tables._from_micros('starts', request.type) }} as valid_from,
    {{ healing_tables._from_micros('first_known', request.type) }} as valid_to,
    true as is_inferred
from members
where first_known is null or first_fact < first_known
{%- endmacro %}
