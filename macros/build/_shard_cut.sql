{#- Statements for one shard of the keys: one statement for all would sort all rows. -#}

{% macro _is_sharded(run) -%}
    {{- return(run.settings.shards > 1 and run.changed_keys is none and run.mode == 'rebuild') -}}
{%- endmacro %}

{#- A candidate whose query reads only the keys of one shard. `stored_columns`: of the table that it is compared with,
    whose keys may have other types. -#}
{% macro _cut_to_shard(run, candidate, stored_columns=none) -%}
    {%- set settings, conditions = run.settings, {} -%}
    {%- for scan in settings.metadata.scans -%}
        {%- set keys = [] -%}
        {%- for key in settings.key_columns -%}
            {%- set expression = scan['keys'][loop.index0] -%}
            {%- do keys.append(expression if stored_columns is none else healing_tables._comparable_column(
                key, stored_columns, candidate.columns, '(' ~ expression ~ ')').candidate) -%}
        {%- endfor -%}
        {%- do conditions.update({scan.name: healing_tables._is_in_shard(keys, settings.shards)}) -%}
    {%- endfor -%}
    {{- return(dict(candidate, query=healing_tables._with_inputs(candidate.query, settings.metadata.scans,
        conditions))) -}}
{%- endmacro %}

{#- The slot `shard` is the number of a shard. -#}
{% macro _is_in_shard(keys, shards) -%}
    {{- return(healing_tables._bucket_of(keys, shards) ~ ' = ' ~ healing_tables._slot('shard', ' 0 ')) -}}
{%- endmacro %}

{#- `times`: how often the statement has that slot. -#}
{% macro _of_shard(statement_text, number, times) -%}
    {{- return(healing_tables._fill_slot(statement_text, 'shard', number, times)) -}}
{%- endmacro %}
