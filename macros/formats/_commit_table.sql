{#-
    The commits of a merge in a format that has none: <dimension>__commits, with a partition for each commit, which the
    metastore accepts once. Its row names the folder with the rows of the dimension, and for each table beside it the
    folder with its new rows. Another partition follows once readers see all of them. The library makes and reads
    the same table (src/healing_tables/targets/hive_commits.py, docs/decisions/0042-hive-tables.md).

    A `commit`: version, merge_id, location (of the dimension), base_location (before it), base_id (a hash of the files
    there, or none), key_buckets (or none), create_table (the statement, if it creates the table), add_columns ([[name,
    type]]), side_tables ({table: folder}), micro_batches (of the library, {stream: number}, after it), is_finished,
    is_old (the folders before it need not be kept).
-#}

{% macro _commit_table(target) -%}
    {{- return(target.incorporate(path={'identifier': target.identifier ~ '__commits'}, type='table')) -}}
{%- endmacro %}

{% macro _commit_columns() -%}
    {{- return({
        'merge_id': 'string', 'location': 'string', 'base_location': 'string', 'base_files': 'array<string>',
        'key_buckets': 'int', 'create_table': 'string', 'add_columns': 'string', 'side_tables': 'map<string, string>',
        'micro_batches': 'map<string, bigint>', 'committed_at': 'timestamp'}) -}}
{%- endmacro %}

{#- Make the table if there is none. -#}
{% macro _ensure_commit_table(format, table) -%}
    {%- if not healing_tables._table_exists(table) -%}
        {%- do healing_tables._run(healing_tables._create_in_folders(format, table, dict(
            healing_tables._commit_columns(), version='bigint', step='string'), ['version', 'step'], {})) -%}
    {%- endif -%}
{%- endmacro %}

{#- The statement for a table whose partitions are folders of merges. `partitions`: the last of its columns. -#}
{% macro _create_in_folders(format, table, columns, partitions, properties) -%}
    {%- set listed = [] -%}
    {%- for name, type in columns.items() -%} {%- do listed.append(healing_tables._quoted(name) ~ ' ' ~ type) -%}
    {%- endfor -%}
    {{- return('create table if not exists ' ~ table ~ ' (' ~ (listed | join(', ')) ~ ') using ' ~ format.name
        ~ ' partitioned by (' ~ (partitions | join(', ')) ~ ') location '
        ~ healing_tables._string_literal(healing_tables._versions_folder(table) ~ '/rows') ~ ' '
        ~ healing_tables._properties_clause(properties)) -}}
{%- endmacro %}

{#- The columns of a table beside a dimension, with the one of its partitions, a text, as the last. -#}
{% macro _with_partition_last(columns, partition) -%}
    {%- set others = {} -%}
    {%- for name, type in columns.items() if name != partition -%} {%- do others.update({name: type}) -%} {%- endfor -%}
    {%- do others.update({partition: 'string'}) -%}
    {{- return(others) -}}
{%- endmacro %}

{#- The newest commit of a dimension, or none. -#}
{% macro _newest_commit(table) -%}
    {%- set steps = healing_tables._commit_steps(table) if healing_tables._table_exists(table) else {} -%}
    {{- return(healing_tables._read_commits(table, [steps.keys() | max], steps)[0] if steps else none) -}}
{%- endmacro %}

{#- {version: its steps}, of all commits. -#}
{% macro _commit_steps(table) -%}
    {%- set steps = {} -%}
    {%- for row in run_query('show partitions ' ~ table).rows -%}
        {%- set found = modules.re.match('version=([0-9]+)/step=([a-z]+)', row[0]) -%}
        {%- do steps.setdefault(found.group(1) | int, []).append(found.group(2)) -%}
    {%- endfor -%}
    {{- return(steps) -}}
{%- endmacro %}

{#- The commits of these versions that there are, in their order. -#}
{% macro _read_commits(table, versions, steps) -%}
    {%- set commits = [] -%}
    {%- do healing_tables._run('refresh table ' ~ table) -%}
    {#- an hour: a session lists the files of a table once, until `refresh table` -#}
    {%- for row in run_query(
        "select version, merge_id, location, base_location, md5(array_join(base_files, '|')) as base_id, "
        ~ 'key_buckets, create_table, add_columns, to_json(side_tables) as side_tables, '
        ~ 'to_json(micro_batches) as micro_batches, committed_at < now() - interval 1 hour as is_old from ' ~ table
        ~ " where step = 'committed' and version in (" ~ (versions | join(', ')) ~ ') order by version').rows -%}
        {%- set columns, batches = [], fromjson(row['micro_batches'] or '{}') -%}
        {%- for line in (row['add_columns'] or '').split('\n') if line -%} {%- do columns.append(fromjson(line)) -%}
        {%- endfor -%}
        {%- set mine = modules.re.search('(@.+:)([0-9]+)$', row['merge_id']) -%}
        {%- do batches.update({mine.group(1): mine.group(2) | int}) if mine -%}
        {%- set version = row['version'] | int -%}
        {%- do commits.append(dict(healing_tables._row_map(row), version=version, add_columns=columns,
            key_buckets=row['key_buckets'] | int if row['key_buckets'] is not none else none,
            side_tables=fromjson(row['side_tables'] or '{}'), micro_batches=batches,
            is_finished='finished' in steps[version])) -%}
    {%- endfor -%}
    {{- return(commits) -}}
{%- endmacro %}

{#- The call that is the commit; its row goes to `folder`. Returns conflicts, as _run_or_conflict does. -#}
{% macro _add_commit(format, table, commit, folder) -%}
    {%- set texts = [] -%}
    {%- for name in ['merge_id', 'location', 'base_location', 'create_table', 'add_columns'] -%}
        {%- set value = commit.get(name) -%}
        {%- do texts.append((healing_tables._text_without_backslash(value) if value is not none
            else 'cast(null as string)') ~ ' as ' ~ name) -%}
    {%- endfor -%}
    {%- for name in ['side_tables', 'micro_batches'] -%}
        {%- do texts.append('from_json(' ~ healing_tables._text_without_backslash(tojson(commit[name])) ~ ", '"
            ~ healing_tables._commit_columns()[name] ~ "') as " ~ name) -%}
    {%- endfor -%}
    {%- do healing_tables._write_folder(format, folder, 'select ' ~ (texts | join(', ')) ~ ', '
        ~ (healing_tables._files_in(commit.base_location) if commit.base_id is not none
            else 'cast(null as array<string>)') ~ ' as base_files, cast('
        ~ (commit.key_buckets or 'null') ~ ' as int) as key_buckets, now() as committed_at') -%}
    {%- if commit.base_id is not none and run_query("select md5(array_join(base_files, '|')) as id from "
        ~ healing_tables._files_at(format.name, folder)).rows[0]['id'] != commit.base_id -%}
        {{- return(['its files have changed']) -}}
    {%- endif -%}
    {%- set version = commit.version -%}
    {%- do healing_tables._run('alter table ' ~ table ~ ' add if not exists partition (version = ' ~ version
        ~ ", step = 'committed') location " ~ healing_tables._string_literal(folder)) -%}
    {%- set steps = healing_tables._commit_steps(table) -%}
    {%- set found = healing_tables._read_commits(table, [version], steps) -%}
    {%- if not found or found[0].merge_id != commit.merge_id -%} {{ return(['version ' ~ version]) }} {%- endif -%}
    {%- if steps.keys() | max > version and not found[0].is_finished -%}
        {#- this number was used before, so long ago that it is dropped: a merge finishes the commit before its own -#}
        {%- do healing_tables._drop_commit(table, version) -%}
        {{- return(['version ' ~ (steps.keys() | max)]) -}}
    {%- endif -%}
    {{- return([]) -}}
{%- endmacro %}

{% macro _drop_commit(table, version) -%}
    {%- do healing_tables._run('alter table ' ~ table ~ ' drop if exists partition (version = ' ~ version
        ~ ", step = 'committed'), partition (version = " ~ version ~ ", step = 'finished')") -%}
{%- endmacro %}

{#- Empty the folders of states that were replaced long ago, a few at a time, and drop their commits. The last two
    states are always kept. `version`: of the newest. -#}
{% macro _expire_commits(format, target, version) -%}
    {%- set table, own = healing_tables._commit_table(target), '/' ~ target.identifier ~ '__versions/' -%}
    {%- set steps = healing_tables._commit_steps(table) -%}
    {%- set old = steps.keys() | select('le', version - 2) | sort -%}
    {%- if not old -%} {{ return(none) }} {%- endif -%}
    {%- set old, states = old[:5], {} -%}
    {%- for commit in healing_tables._read_commits(
        table, (old + [old[-1] + 1, version - 1, version]) | unique | list, steps) -%}
        {%- do states.update({commit.version: commit}) -%}
    {%- endfor -%}
    {%- set kept, is_over = [], namespace(value=false) -%}
    {%- for number in [version - 1, version] if number in states -%}
        {%- do kept.extend(healing_tables._folders_of(states[number].location)) -%}
    {%- endfor -%}
    {%- for number in old if number in states -%}
        {%- set state = states[number] -%}
        {%- set after = states.get(number + 1, state) -%}
        {%- if is_over.value or not after.is_old -%} {%- set is_over.value = true -%}
        {%- elif after.base_id is none or healing_tables._id_of_files(state.location) == after.base_id -%}
            {%- for folder in healing_tables._folders_of(state.location)
                if own in folder and folder not in kept + healing_tables._folders_of(after.location) -%}
                {%- do healing_tables._empty_folder(format, folder) -%}
            {%- endfor -%}
        {%- endif -%}
        {%- do healing_tables._drop_commit(table, number) if not is_over.value -%}
    {%- endfor -%}
{%- endmacro %}
