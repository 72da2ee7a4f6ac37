{#- The rows that differ between a candidate and a stored table: their figures, and the MERGE that publishes them. -#}

{#- The figures of the changes, in one row. `changes`: SQL for a `from`. `stored_versions`: SQL for the versions of all
    keys, also in a heal. `counts`: a query whose rows are returned as JSON, or none. -#}
{% macro _change_figures(changes, inputs, stored_versions, counts=none) -%}
{%- set lived = 'was_current' ~ (' and not stored_row.' ~ inputs.deleted if inputs.deleted is not none else '') -%}
{%- set lives = 'is_current' ~ (' and not candidate_row.' ~ inputs.deleted if inputs.deleted is not none else '') -%}
with changed_keys as (
    select {{ inputs.key_names }},
        bool_or(differs) as differs,
        count_if(differs and stored_row is null) as inserted,
        count_if(differs and stored_row is not null and candidate_row is not null) as updated,
        count_if(differs and candidate_row is null) as deleted,
        bool_or({{ lived }}) and not bool_or({{ lives }}) as ends,
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

{#- Figures of the stored table over all keys: only a build that removes something needs them. -#}
{% macro _stored_figures(inputs, existing) -%}
select count(distinct if(is_living, struct({{ inputs.key_names }}), null)) as current_keys,
count_if(not is_current) as closed_versions
from (select {{ inputs.stored }}, {{ inputs.is_living }} as is_living from {{ existing }})
{%- endmacro %}

{#- The bucket number of a key, the same for equal keys: a short list of numbers covers a few keys of any type. -#}
{% macro _key_bucket(keys) -%} pmod(xxhash64({{ keys | join(', ') }}), 65536) {%- endmacro %}

{#- Number rows with the same key and start by their values: equal rows get equal numbers on both sides. -#}
{% macro _number_equal_starts(rows, keys, compared) %}
    select *,
        row_number() over (partition by {{ keys }}, start order by xxhash64({{ compared }})) as nth,
        count(*) over (partition by {{ keys }}, start) > 1 as is_repeated
    from {{ rows }}
{%- endmacro %}

{#-
    The difference as one MERGE. It matches rows by key and start only, so that Delta does not read all columns of the
    target again. A commit of another writer since the comparison makes the build retry (_conflicts.sql), so what this
    MERGE has overwritten is compared with the sources again.
    If few keys differ, rows of other buckets are filtered out; otherwise the whole target would be shuffled. The list
    begins with ten numbers that no bucket has: Spark writes up to ten values into the code that it generates, and would
    compile that again for each build.
    `tag`: the tag of its commit, or none. `listed_keys`: a list of literals that has all keys that differ, or none.
-#}
{% macro _merge_row_diff(target, change, tag, listed_keys=none) -%}
{%- set inputs = change.inputs -%}
{%- set tag = healing_tables._string_literal(tag) if tag is not none else none -%}
{%- set names = [] -%}
{%- set values = [] -%}
{%- set assignments = [] -%}
{%- set target_keys = [] -%}
{%- for key in inputs.key_columns -%} {%- do target_keys.append('t.' ~ healing_tables._quoted(key)) -%} {%- endfor -%}
{%- set same_start = [] -%}
{%- for key in target_keys -%} {%- do same_start.append(key ~ ' <=> d.key_' ~ loop.index) -%} {%- endfor -%}
{%- if inputs.valid_from is not none -%}
    {%- do same_start.append('t.' ~ healing_tables._quoted(inputs.valid_from) ~ ' <=> d.start') -%}
{%- endif -%}
{%- for column in inputs.columns -%}
    {%- set name = healing_tables._quoted(column) -%}
    {%- do names.append(name) -%}
    {%- do values.append('d.candidate_row.' ~ name) -%}
    {%- do assignments.append('t.' ~ name ~ ' = d.candidate_row.' ~ name) -%}
{%- endfor -%}
merge into {{ target }} as t
using (select *{{ ', ' ~ tag ~ ' as tag' if tag is not none }} from {{ change.staged }} where differs) as d
on {% if change.buckets %}{{ healing_tables._key_bucket(target_keys) }} in ({{ range(-10, 0) | join(', ') }}, {{
    change.buckets }})
and {% endif -%}
{% if listed_keys is not none %}{{ target_keys[0] }} in {{ listed_keys }}
and {% endif -%}
{{ same_start | join(' and ') }}
{%- if tag is not none %} and d.tag = {{ tag }}{% endif %}
when matched and d.candidate_row is null then delete
when matched then update set {{ assignments | join(', ') }}
when not matched and d.candidate_row is not null then insert ({{ names | join(', ') }}) values ({{ values
    | join(', ') }})
{%- endmacro %}
