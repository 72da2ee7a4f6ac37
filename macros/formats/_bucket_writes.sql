{#- Write a table in key buckets [see _buckets.sql], as a whole or in part. -#}

{#- Rows with the number of their bucket, distributed by it for the write. -#}
{% macro _in_buckets(query, settings, columns, buckets) -%}
{%- set keys = healing_tables._quoted_list(settings.key_columns) -%}
{%- set bucket = healing_tables._bucket_column(columns, buckets) -%}
select *, {{ healing_tables._bucket_of(keys, buckets) }} as {{ bucket }}
from (
{{ query }}
)
distribute by {{ bucket }}
{%- endmacro %}

{#- The folders of a table that was written in buckets to `folder`: {bucket: folder}. -#}
{% macro _written_buckets(table, folder, bucket) -%}
    {%- set folders = {} -%}
    {%- for row in run_query('select distinct ' ~ bucket ~ ' as bucket from ' ~ table).rows -%}
        {%- do folders.update({row['bucket'] | int: folder ~ '/' ~ bucket ~ '=' ~ row['bucket']}) -%}
    {%- endfor -%}
    {{- return(folders) -}}
{%- endmacro %}

{#- The candidate with the rows that differ, written to the folder of this run: with all other rows, or those of
    their key buckets. Its location then names the new folders of these, and the existing folders of the others. -#}
{% macro _with_changed_rows(run, candidate, inputs) -%}
    {%- if run.key_buckets is none -%}
        {%- do healing_tables._run(healing_tables._create_table(run.format, healing_tables._side_table(run, '_rows'),
            healing_tables._rows_with_changes(candidate, inputs, run.existing), candidate.columns, run.location,
            partitions=run.partitions)) -%}
        {{- return(dict(candidate, location=run.location)) -}}
    {%- endif -%}
    {%- set buckets = run.key_buckets -%}
    {%- set keys = inputs.key_names.split(', ') -%}
    {%- set changed = [] -%}
    {%- for row in run_query('select distinct ' ~ healing_tables._bucket_of(keys, buckets) ~ ' as bucket from '
        ~ candidate.changes ~ ' where differs').rows -%}
        {%- do changed.append(row['bucket'] | int) -%}
    {%- endfor -%}
    {%- set stored = healing_tables._stored_buckets(run.stored.location).folders -%}
    {%- set read, folders = [], {} -%}
    {%- for number, folder in stored.items() -%}
        {%- if number in changed -%} {%- do read.append(folder) -%}
        {%- else -%} {%- do folders.update({number: folder}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set bucket = healing_tables._bucket_column(candidate.columns, buckets) -%}
    {%- set rows = healing_tables._in_buckets(healing_tables._rows_with_changes(candidate, inputs,
        healing_tables._files_at(run.format.name, healing_tables._location_of(read)) if read else none), run.settings,
        candidate.columns, buckets) -%}
    {%- set table = healing_tables._side_table(run, '_buckets') -%}
    {%- do healing_tables._run(healing_tables._create_table(run.format, table, rows, candidate.columns, run.location,
        partitions=[bucket])) -%}
    {%- do folders.update(healing_tables._written_buckets(table, run.location, bucket)) -%}
    {{- return(dict(candidate,
        location=healing_tables._location_of(folders.values() | list) if folders else run.location,
        written='in ' ~ (changed | length) ~ ' of ' ~ buckets ~ ' key buckets')) -}}
{%- endmacro %}

{#- Rows as they are after the change. `rows`: before it, as SQL for a `from`, or none. -#}
{% macro _rows_with_changes(candidate, inputs, rows) -%}
{%- set columns = healing_tables._quoted_list(candidate.columns) -%}
{%- set same = [] -%}
{%- for key in inputs.key_columns -%}
    {%- do same.append('t.' ~ healing_tables._quoted(key) ~ ' <=> d.key_' ~ loop.index) -%}
{%- endfor -%}
{%- if inputs.valid_from is not none -%}
    {%- do same.append('t.' ~ healing_tables._quoted(inputs.valid_from) ~ ' <=> d.start') -%}
{%- endif -%}
{%- if rows is not none -%}
select {{ columns | join(', ') }}
from {{ rows }} as t
left anti join (select * from {{ candidate.changes }} where differs and stored_row is not null) as d
on {{ same | join(' and ') }}
union all
{% endif -%}
select candidate_row.* from {{ candidate.changes }} where differs and candidate_row is not null
{%- endmacro %}
