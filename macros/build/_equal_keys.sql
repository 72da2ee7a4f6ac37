{#- Checks that no two rows of a dimension have the same surrogate key, if the strategy of the key is dbt_utils. -#}

{#- The keys of dbt_utils join texts by a hyphen, so different rows can have one key. A hash as the package makes it
    cannot. What a merge writes is compared with the stored rows, see _refuse_equal_keys(). -#}
{% macro _unique_key_conditions(metadata) -%}
    {%- set hash_key = metadata.get('hash_key') -%}
    {%- if hash_key is none or hash_key is undefined or hash_key.strategy != 'dbt_utils' -%} {{ return([]) }}
    {%- endif -%}
    {%- set made = healing_tables._version_key('dbt_utils', healing_tables._quoted_list(metadata.key_columns),
        healing_tables._quoted(metadata.names.valid_from), none, none, metadata.has_null_keys) -%}
    {{- return([{
        'sql': 'count(*) over (partition by ' ~ made ~ ') = 1', 'argument': 'surrogate_key',
        'wanted': 'one row for each ' ~ hash_key.name,
        'got': '{rows} that share a surrogate key: dbt_utils makes one key of different texts with hyphens, such as '
            'a-, b and a, -b',
        'remedy': 'use the strategy hash', 'of_all': true}]) -}}
{%- endmacro %}

{#-
    Refuse a merge after which two rows would have the same key of dbt_utils: new rows are compared with each other,
    and with the stored rows that stay.
-#}
{% macro _refuse_equal_keys(run, candidate, inputs) -%}
    {%- set conditions = candidate.conditions | selectattr('of_all', 'defined') | list -%}
    {%- if not conditions -%} {{ return(none) }} {%- endif -%}
    {%- set name = healing_tables._quoted(run.settings.metadata.hash_key.name) -%}
    {%- set columns = inputs.key_names ~ ', start, made' -%}
    {%- set same_row = ['d.start <=> kept.start'] -%}
    {%- for _ in inputs.key_columns -%}
        {%- do same_row.append('d.key_' ~ loop.index ~ ' <=> kept.key_' ~ loop.index) -%}
    {%- endfor -%}
    {%- set found = healing_tables._equal_keys(run,
        'with new_rows as (select ' ~ inputs.key_names ~ ', start, candidate_row.' ~ name ~ ' as made from '
        ~ candidate.changes ~ ' where differs and candidate_row is not null), kept as (select ' ~ columns
        ~ ' from (select '
        ~ inputs.stored ~ ', ' ~ name ~ ' as made from ' ~ run.existing
        ~ ') where made in (select made from new_rows)) select ' ~ columns ~ ' from new_rows union all select '
        ~ columns ~ ' from kept where not exists (select 1 from ' ~ candidate.changes ~ ' as d where d.differs and '
        ~ (same_row | join(' and ')) ~ ')') -%}
    {%- if found.row_count > 0 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(mistakes, conditions[0].argument, conditions[0].wanted,
            conditions[0].got | replace('{rows}', healing_tables._counted(found.row_count, 'row')) ~ found.examples,
            conditions[0].remedy, keys=found['keys']) -%}
        {%- do healing_tables._refuse(run, mistakes, candidate) -%}
    {%- endif -%}
{%- endmacro %}

{#- The rows of the candidate with a key of dbt_utils that others have too. -#}
{% macro _equal_keys_of_candidate(run, candidate) -%}
    {%- set metadata = run.settings.metadata -%}
    {%- set start, keys, selected = healing_tables._quoted(metadata.names.valid_from),
        healing_tables._quoted_list(metadata.key_columns), [] -%}
    {%- for key in keys -%} {%- do selected.append(key ~ ' as key_' ~ loop.index) -%} {%- endfor -%}
    {{- return(healing_tables._equal_keys(run, 'select ' ~ (selected | join(', ')) ~ ', ' ~ start ~ ' as start, '
        ~ healing_tables._version_key('dbt_utils', keys, start, none, none, metadata.has_null_keys)
        ~ ' as made from (\n'
        ~ healing_tables._as_subquery(candidate.query) ~ ')')) -}}
{%- endmacro %}

{#- Of rows (key_1.., start, made), how many have a key `made` that others have too, up to three examples, and their
    `keys`, see _mistake(). -#}
{% macro _equal_keys(run, rows) -%}
    {%- set found = run_query(
        'select coalesce(sum(n), 0) as row_count, array_join(slice(sort_array(collect_list(row_texts)), 1, 3), '
        ~ "'; ') as row_texts from (select count(*) as n, array_join(sort_array(collect_list(concat("
        ~ healing_tables._key_text(run.settings.key_columns) ~ ", ' from ', cast(start as string)))), ' and ') "
        ~ 'as row_texts from (' ~ rows ~ ') group by made having count(*) > 1)').rows[0] -%}
    {{- return({'row_count': found['row_count'] | int, 'examples': ': ' ~ found['row_texts'],
        'keys': (found['row_texts'] or '') | replace(' and ', '; ')}) -}}
{%- endmacro %}
