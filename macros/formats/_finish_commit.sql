{#- The steps after a commit of _commit_table.sql, which the next merge makes if this one was killed. -#}

{#-
    Make a commit visible, and give the tables beside the dimension their rows. Each call can be repeated, and several
    processes may make them at once. Returns conflicts: if another writer has changed the files from which it was
    made, these are visible again.
-#}
{% macro _finish_commit(format, target, commit) -%}
    {%- set table = healing_tables._commit_table(target) -%}
    {%- if not healing_tables._table_exists(target) and commit.create_table is not none -%}
        {#- Spark finds its partitions by listing its folder: one switch shows all of them -#}
        {%- do healing_tables._keep_partitions_in_metastore(false) -%}
        {%- do healing_tables._run(commit.create_table) -%}
        {%- do healing_tables._keep_partitions_in_metastore(true) -%}
    {%- endif -%}
    {%- if healing_tables._table_exists(target) -%}
        {%- do healing_tables._show_commit(target, commit) -%}
    {%- endif -%}
    {%- if commit.base_id is not none and not healing_tables._is_same_place(commit.base_location, commit.location)
        and healing_tables._id_of_files(commit.base_location) != commit.base_id -%}
        {%- set back = dict(commit, version=commit.version + 1, merge_id=commit.merge_id ~ '-back',
            location=commit.base_location, base_id=none, create_table=none, add_columns=none, side_tables={}) -%}
        {%- set folder = healing_tables._versions_folder(target) ~ '/' ~ local_md5(back.merge_id)[:12] ~ '/commit' -%}
        {%- if not healing_tables._add_commit(format, table, back, folder) -%}
            {%- do healing_tables._finish_commit(format, target, back) -%}
        {%- endif -%}
        {{- return(['its files have changed while it was switched']) -}}
    {%- endif -%}
    {%- for name, folder in commit.side_tables.items() -%}
        {%- do healing_tables._take_folder(format, name, commit.merge_id, folder) -%}
    {%- endfor -%}
    {%- do healing_tables._run('alter table ' ~ table ~ ' add if not exists partition (version = ' ~ commit.version
        ~ ", step = 'finished')") -%}
    {%- set steps = healing_tables._commit_steps(table) -%}
    {%- if steps.keys() | max > commit.version -%}
        {#- another merge has committed after this one: the table must not go back to this commit -#}
        {%- do healing_tables._show_commit(target, healing_tables._read_commits(table, [steps.keys() | max],
            steps)[0]) -%}
    {%- endif -%}
    {{- return([]) -}}
{%- endmacro %}

{#- Let readers see the rows of a commit. -#}
{% macro _show_commit(target, commit) -%}
    {%- set stored = healing_tables._table_details(target.incorporate(type='table')) -%}
    {%- set missing = [] -%}
    {%- for column in commit.add_columns or [] if healing_tables._find_column(column[0], stored.columns) is none -%}
        {%- do missing.append(healing_tables._quoted(column[0]) ~ ' ' ~ column[1]) -%}
    {%- endfor -%}
    {%- do healing_tables._run('alter table ' ~ target ~ ' add columns (' ~ (missing | join(', ')) ~ ')')
        if missing -%}
    {%- do healing_tables._run('alter table ' ~ target ~ ' set location '
        ~ healing_tables._string_literal(commit.location))
        if not healing_tables._is_same_place(stored.location, commit.location) -%}
    {%- do healing_tables._run('refresh table ' ~ target) -%}
{%- endmacro %}

{#- Add the rows in a folder to a table beside the dimension, once. `name`: of the table, as text. -#}
{% macro _take_folder(format, name, merge_id, folder) -%}
    {%- set partitions = [] -%}
    {%- for row in run_query('describe table ' ~ name).rows if row[0] == '# col_name' -%}
        {%- do partitions.append(row[0]) -%}
    {%- endfor -%}
    {%- if partitions -%}
        {%- do healing_tables._run('alter table ' ~ name ~ ' add if not exists partition (merge_id = '
            ~ healing_tables._string_literal(merge_id) ~ ') location ' ~ healing_tables._string_literal(folder)) -%}
    {%- else -%}
        {#- another program has created it: rows that it already has are left out -#}
        {%- set given, same = healing_tables._files_at(format.name, folder), [] -%}
        {%- set names = healing_tables._quoted_list(healing_tables._query_columns('select * from ' ~ given)) -%}
        {%- for column in names -%} {%- do same.append('t.' ~ column ~ ' <=> s.' ~ column) -%} {%- endfor -%}
        {%- do healing_tables._run('insert into ' ~ name ~ ' (' ~ (names | join(', ')) ~ ') select s.'
            ~ (names | join(', s.')) ~ ' from ' ~ given ~ ' as s left anti join ' ~ name ~ ' as t on '
            ~ (same | join(' and '))) -%}
    {%- endif -%}
    {%- do healing_tables._run('refresh table ' ~ name) -%}
{%- endmacro %}
