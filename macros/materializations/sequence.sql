{#-
    Integer surrogate keys. A version that stays, by key and start, keeps its number; a new one gets the next above the
    largest ever given. They are given while the table is published, from the target as that statement reads it, so
    that two builds never give one number twice. `sequence`: name, stored (the relation to take numbers from, or none),
    largest (ever given), written (what the table's property says of that).

    stored  sk | id | valid_from       id | valid_from  ->  sk | id | valid_from
            1  | 1  | 2024-01-01       1  | 2024-01-01      1  | 1  | 2024-01-01
            2  | 2  | 2024-01-01       1  | 2024-02-01      3  | 1  | 2024-02-01
-#}
{% macro _sequence(about, existing, stored) -%}
    {%- if about.get('sequence') is none -%} {{ return(none) }} {%- endif -%}
    {%- if about.valid_from is none -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'surrogate_key.strategy', 'a column valid_from, by which a version is known again', 'none',
            'keep valid_from in column_names') -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
    {%- set sequence = {'name': about.sequence, 'stored': none, 'written': stored.get('largest_key', 0), 'largest': stored.get('largest_key', 0)} -%}
    {%- set columns = healing_tables._columns_of(existing) if stored else {} -%}
    {%- set missing = healing_tables._missing(about.key_columns + [about.valid_from, about.sequence], columns) -%}
    {%- if not missing and healing_tables._family(columns[about.sequence]) == 'integer' -%}
        {%- set found = run_query('select max(' ~ healing_tables._id(about.sequence) ~ ') as largest from ' ~ existing).rows[0]['largest'] -%}
        {%- do sequence.update({'stored': existing | string, 'types': columns, 'largest': [sequence.largest, (found or 0) | int] | max}) -%}
    {%- endif -%}
    {{- return(sequence) -}}
{%- endmacro %}

{#- What the candidate holds: no numbers yet. Without commits its files become the target's, so there they are final. -#}
{% macro _with_sequence(query, about, sequence) -%}
    {%- if sequence is none -%} {{ return(query) }} {%- endif -%}
    {%- if healing_tables._has_commits() -%}
        {{- return('select cast(null as bigint) as ' ~ healing_tables._id(sequence.name) ~ ', * from (\n' ~ query ~ '\n)') -}}
    {%- endif -%}
    {{- return(healing_tables._numbered(query, healing_tables._described('describe query ' ~ query), about, sequence)) -}}
{%- endmacro %}

{#- The rows of the candidate as the target will hold them: a select. -#}
{% macro _candidate_rows(candidate, about, sequence) -%}
    {%- if sequence is none or not healing_tables._has_commits() -%} {{ return('select * from ' ~ candidate) }} {%- endif -%}
    {{- return(healing_tables._numbered('select * from ' ~ candidate, healing_tables._columns_of(candidate), about, sequence)) -}}
{%- endmacro %}

{% macro _numbered(query, columns, about, sequence) -%}
{%- set number = healing_tables._id(sequence.name) -%}
{%- set version = [] -%}
{%- set known = [] -%}
{%- set known_names = [] -%}
{%- set same_version = [] -%}
{%- for column in about.key_columns + [about.valid_from] -%}
    {%- set name = healing_tables._id(column) -%}
    {%- do version.append(name) -%}
    {%- if sequence.stored is not none -%}
        {%- set sides = healing_tables._side_by_side(column, sequence.types, columns) -%}
        {%- set there = healing_tables._id('version ' ~ loop.index) -%}
        {%- do known.append(sides.stored ~ ' as ' ~ there) -%}
        {%- do known_names.append(there) -%}
        {%- do same_version.append(sides.candidate ~ ' <=> known.' ~ there) -%}
    {%- endif -%}
{%- endfor -%}
select
    {%- if sequence.stored is none %}
    cast({{ sequence.largest }} as bigint) + row_number() over (order by fresh.{{ version | join(', fresh.') }}) as {{ number }}
    {%- else %}
    coalesce(
        cast(known.{{ number }} as bigint),
        largest.{{ number }} + row_number() over (partition by known.{{ number }} is null order by fresh.{{ version | join(', fresh.') }})
    ) as {{ number }}
    {%- endif %}
    {%- for column in columns if column != sequence.name %},
    fresh.{{ healing_tables._id(column) }}
    {%- endfor %}
from (
{{ query }}
) as fresh
{%- if sequence.stored is not none %}
left join (
    select {{ known_names | join(', ') }}, max({{ number }}) as {{ number }}
    from (select {{ known | join(', ') }}, {{ number }} from {{ sequence.stored }})
    group by {{ known_names | join(', ') }}
) as known
on {{ same_version | join(' and ') }}
{#- joined, since Delta does not read the target in a scalar subquery here #}
cross join (
    select greatest(coalesce(max({{ number }}), 0), {{ sequence.largest }}) as {{ number }}
    from {{ sequence.stored }}
) as largest
{%- endif %}
{%- endmacro %}

{#- The largest key must not be forgotten with the row that has it: kept as a property of the table. -#}
{% macro _sequence_properties(sequence) -%}
    {{- return({} if sequence is none else {'healing_tables.largest_key': sequence.largest}) -}}
{%- endmacro %}

{#- The same where the table stays: before the rows go. -#}
{% macro _remember_largest(target, sequence, change) -%}
    {%- if sequence is not none and change.get('deleted') and sequence.largest > sequence.written -%}
        {%- do run_query(
            'alter table ' ~ target ~ " set tblproperties ('healing_tables.largest_key' = '" ~ sequence.largest ~ "')") -%}
    {%- endif -%}
{%- endmacro %}
