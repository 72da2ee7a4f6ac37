{#-
    Integer surrogate keys. A version, identified by its key and its start, gets its number once. The key map
    <dimension>__keys has every number ever assigned. It is append-only and outlives the dimension: a table that was
    dropped, restored or built again gets the numbers that facts already store.

    candidate  id | valid_from     __keys  key | valid_from | surrogate_key      candidate  sk | id | valid_from
               1  | 2024-01-01             1   | 2024-01-01 | 1                             1  | 1  | 2024-01-01
               1  | 2024-02-01             2   | 2024-01-01 | 2             ->              3  | 1  | 2024-02-01

    `sequence`: name (of the column in the dimension), key_map (as SQL for a `from`), version (of the key map, or none),
    largest (number assigned so far).
-#}
{% macro _sequence(run) -%}
    {%- set settings = run.settings -%}
    {%- if settings.sequence is none -%} {{ return(none) }} {%- endif -%}
    {%- if settings.valid_from is none and settings.tracked | select | list -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'surrogate_key.strategy', 'a column valid_from, which identifies a version together with its key',
            'none',
            'keep valid_from in column_names') -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
    {%- if run.commit is not none -%} {{ return(healing_tables._sequence_in_folders(run)) }} {%- endif -%}
    {%- set format = healing_tables._side_table_format() -%}
    {%- set key_map = healing_tables._ensure_key_map(
        run.target, settings, run.existing if run.stored else none, format) -%}
    {{- return({
        'name': settings.sequence, 'key_map': key_map,
        'version': healing_tables._base_version(format, key_map),
        'largest': run_query('select coalesce(max(surrogate_key), 0) as largest from ' ~ key_map).rows[0][
            'largest']}) -}}
{%- endmacro %}

{#-
    The key map of a dimension. The first build creates it with the numbers of the stored table. If another writer has
    since put a larger number into the table, a row without a version reserves it.
-#}
{% macro _ensure_key_map(target, settings, existing, format) -%}
    {%- set key_map = healing_tables._key_map_relation(target) -%}
    {%- set stored_numbers = healing_tables._stored_numbers(settings, existing) if existing is not none else none -%}
    {%- set has_numbers = stored_numbers is not none -%}
    {%- if not healing_tables._table_exists(key_map) -%}
        {%- set rows = stored_numbers
            or "select '' as key, timestamp_micros(0) as valid_from, 0L as surrogate_key where false" -%}
        {%- do healing_tables._run('create table if not exists ' ~ key_map ~ ' using ' ~ format.name ~ ' '
            ~ healing_tables._properties_clause(format.properties.key_map) ~ ' as ' ~ rows) -%}
        {{- return(key_map) -}}
    {%- endif -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._check_columns(
        mistakes, 'the key map', ['key', 'valid_from', 'surrogate_key'], key_map | string,
        healing_tables._columns_of(key_map)) -%}
    {%- do healing_tables._raise_mistakes(config.get('materialized') or 'repair', mistakes) -%}
    {%- if has_numbers -%}
        {%- set largest = run_query('select (select max(' ~ healing_tables._quoted(settings.sequence) ~ ') from '
            ~ existing
            ~ ') as stored, (select max(surrogate_key) from ' ~ key_map ~ ') as given').rows[0] -%}
        {%- if (largest['stored'] or 0) > (largest['given'] or 0) -%}
            {%- do healing_tables._run(
                'insert into ' ~ key_map ~ ' (key, valid_from, surrogate_key) select null, null, '
                ~ largest['stored'] ~ 'L') -%}
        {%- endif -%}
    {%- endif -%}
    {{- return(key_map) -}}
{%- endmacro %}

{#- The numbers of a stored dimension, one for each version, as a select; none if it has no column for them. -#}
{% macro _stored_numbers(settings, existing) -%}
    {%- set columns = healing_tables._columns_of(existing) -%}
    {%- if healing_tables._missing_names(
        settings.key_columns + ([settings.valid_from] | select | list) + [settings.sequence], columns)
        or healing_tables._type_family(healing_tables._type_of_column(columns, settings.sequence)) != 'integer' -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return('select key, valid_from, max(surrogate_key) as surrogate_key from ('
        ~ healing_tables._numbers_in(existing, settings, columns)
        ~ ') where surrogate_key is not null group by key, valid_from') -}}
{%- endmacro %}

{#- The sequence of a merge whose commit has the new rows of the key map, too. A number that another writer has put into
    the dimension is reserved. -#}
{% macro _sequence_in_folders(run) -%}
    {%- set table, columns, mistakes = healing_tables._key_map_relation(run.target), {
        'key': 'string', 'valid_from': 'timestamp', 'surrogate_key': 'bigint'}, [] -%}
    {%- do healing_tables._ensure_table_beside(run.format, mistakes, table, 'key map', columns, columns | list, {}) -%}
    {%- do healing_tables._raise_mistakes(config.get('materialized'), mistakes) -%}
    {%- set key_map = 'select key, valid_from, surrogate_key from ' ~ table -%}
    {%- set stored_numbers = healing_tables._stored_numbers(run.settings, run.existing) if run.stored else none -%}
    {%- if stored_numbers is not none -%}
        {%- set key_map = key_map ~ ' union all select * from (' ~ stored_numbers ~ ') as stored left anti join '
            ~ table ~ ' as known on known.key = stored.key and known.valid_from = stored.valid_from' -%}
    {%- endif -%}
    {%- set key_map = '(' ~ key_map ~ ')' -%}
    {{- return({'name': run.settings.sequence, 'key_map': key_map, 'version': none,
        'largest': run_query('select coalesce(max(surrogate_key), 0) as largest from ' ~ key_map).rows[0][
            'largest']}) -}}
{%- endmacro %}

{#- The numbers that the table of its key map lacks. -#}
{% macro _numbers_for_folder(run, candidate, sequence) -%}
    {{- return('select given.* from (select distinct * from (' ~ healing_tables._new_numbers(run, candidate, sequence)
        ~ ' union all select * from ' ~ sequence.key_map ~ ')) as given left anti join '
        ~ healing_tables._key_map_relation(run.target)
        ~ ' as known on known.key <=> given.key and known.valid_from <=> given.valid_from') -}}
{%- endmacro %}

{#- The numbers in a table of versions, in the columns of the key map. -#}
{% macro _numbers_in(relation, settings, columns) -%}
    {%- set version = healing_tables._version_id('', settings, columns) -%}
    {{- return('select ' ~ version.key ~ ' as key, ' ~ version.valid_from ~ ' as valid_from, cast('
        ~ healing_tables._quoted(settings.sequence) ~ ' as bigint) as surrogate_key from ' ~ relation) -}}
{%- endmacro %}

{#- The rows of a candidate with their numbers: from the key map, or new ones above the largest in it. `names`: the
    columns to return. -#}
{% macro _add_sequence(query, names, columns, settings, sequence) -%}
{%- set version = healing_tables._version_id('fresh.', settings, columns) -%}
{%- set order = [] -%}
{%- for column in settings.key_columns + ([settings.valid_from] | select | list) -%}
    {%- do order.append('fresh.' ~ healing_tables._quoted(column)) -%}
{%- endfor -%}
select
    coalesce(
        key_map.surrogate_key,
        largest.surrogate_key + dense_rank() over (partition by key_map.surrogate_key order by {{ order | join(', ') }})
    ) as {{ healing_tables._quoted(sequence.name) }}
    {%- for column in names %},
    fresh.{{ healing_tables._quoted(column) }}
    {%- endfor %}
from (
{{ query }}
) as fresh
left join {{ sequence.key_map }} as key_map
on key_map.key = {{ version.key }} and key_map.valid_from = {{ version.valid_from }}
cross join (
    select coalesce(max(surrogate_key), 0) as surrogate_key
    from {{ sequence.key_map }}
) as largest
{%- endmacro %}

{#-
    Insert the new numbers of a candidate into the key map, before the candidate is published. Returns conflicts, as
    _run_or_conflict does.
-#}
{% macro _publish_numbers(run, candidate, sequence) -%}
    {%- if sequence is none -%} {{ return([]) }} {%- endif -%}
    {%- set format = healing_tables._side_table_format() -%}
    {%- set place = format.commits.begin(sequence.key_map, sequence.version) -%}
    {{- return(healing_tables._run_or_conflict(run, 'keys', healing_tables._key_map_merge(
        run, candidate, sequence, place)) or format.commits.end(sequence.key_map, sequence.version)
        or healing_tables._number_conflicts(run, candidate, sequence)) -}}
{%- endmacro %}

{#-
    The statement for that. Versions that another build has numbered since the candidate was written are skipped, see
    _number_conflicts. (Raising an error would not help: Spark reports an error in a writing task as TASK_WRITE_FAILED,
    as for a full disk.)
-#}
{% macro _key_map_merge(run, candidate, sequence, place) -%}
    {%- set new -%}
    select given.key, given.valid_from, given.surrogate_key
    from ({{ healing_tables._new_numbers(run, candidate, sequence) }}) as given
    left anti join {{ sequence.key_map }} as key_map
    on key_map.key = given.key and key_map.valid_from = given.valid_from
    cross join (
        select coalesce(max(surrogate_key), 0) as surrogate_key
        from {{ sequence.key_map }}
    ) as largest
    where given.surrogate_key > largest.surrogate_key
    {%- endset -%}
    {{- return('merge into ' ~ place ~ ' as t using (\n' ~ new
        ~ '\n) as s\non t.key = s.key and t.valid_from = s.valid_from\n'
        ~ 'when not matched then insert (key, valid_from, surrogate_key) values (s.key, s.valid_from, s.surrogate_key)'
        if healing_tables._side_table_format().has_commits else 'insert into ' ~ sequence.key_map
        ~ ' (key, valid_from, surrogate_key)\n' ~ new) -}}
{%- endmacro %}

{#- Conflicts, as in _look_at_commits, if numbers of the candidate clash with numbers that another build assigned. -#}
{% macro _number_conflicts(run, candidate, sequence) -%}
    {%- set lost = run_query('select 1 from (' ~ healing_tables._new_numbers(run, candidate, sequence)
        ~ ') as given left anti join '
        ~ sequence.key_map ~ ' as key_map on key_map.key = given.key and key_map.valid_from = given.valid_from '
        ~ 'and key_map.surrogate_key = given.surrogate_key limit 1').rows | length > 0 -%}
    {{- return(['one that assigned integer keys'] if lost else []) -}}
{%- endmacro %}

{% macro _new_numbers(run, candidate, sequence) -%}
    {%- set rows = candidate.table if candidate.table is not none
        else '(select candidate_row.* from ' ~ candidate.changes ~ ' where candidate_row is not null)' -%}
    {{- return('select distinct * from (' ~ healing_tables._numbers_in(rows, run.settings, candidate.columns)
        ~ ') where surrogate_key > ' ~ sequence.largest ~ 'L') -}}
{%- endmacro %}
