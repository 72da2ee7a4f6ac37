{#-
    Publish a merge in a format without commits. The rows of the dimension, and the new rows of the tables beside it, go
    to folders of the run, which one commit names (formats/_commit_table.sql). So nothing is published if the run is
    killed before that commit, and otherwise the next merge finishes it.

    The `commit` of a run: base (the newest commit of the dimension, or none), merge_id, files (the base_id of the
    new one), folders ([{table, query}]: the new rows of tables beside the dimension).
-#}

{#- As _publish(). -#}
{% macro _publish_folders(run, candidate, change, sequence) -%}
    {%- set format, base, is_changed = run.format, run.commit.base, change.how != 'unchanged' -%}
    {%- set added = healing_tables._columns_to_add(run, candidate) if is_changed and run.stored else [] -%}
    {%- set folder = run.location.rpartition('/')[0] -%}
    {%- set version = (base.version if base is not none else 0) + 1 -%}
    {%- set location = candidate.location if is_changed else run.stored.location -%}
    {%- set side_tables = {} -%}
    {%- if is_changed and sequence is not none -%}
        {%- do healing_tables._write_folder(format, folder ~ '/keys', healing_tables._numbers_for_folder(
            run, candidate, sequence)) -%}
        {%- do side_tables.update({healing_tables._key_map_relation(run.target) | string: folder ~ '/keys'}) -%}
    {%- endif -%}
    {%- if is_changed and run.audit is not none -%}
        {%- set found = healing_tables._known_difference(run, change) or healing_tables._difference_of_rows(
            run, healing_tables._stored_rows(run) if run.stored else none, '(' ~ candidate.query ~ ')',
            dict(sequence, key_map='(select * from ' ~ sequence.key_map ~ ' union select * from '
                ~ healing_tables._files_at(format.name, folder ~ '/keys') ~ ')') if sequence is not none else none) -%}
        {%- do healing_tables._write_folder(format, folder ~ '/audit', 'select *, ' ~ version
            ~ 'L as publish_no, now() as published_at from (\n' ~ healing_tables._rows_of_audit(
                run, found, invocation_id, healing_tables._publish_id(invocation_id, version)) ~ '\n)') -%}
        {%- do side_tables.update({run.audit.table | string: folder ~ '/audit'}) -%}
    {%- endif -%}
    {%- for beside in run.commit.folders -%}
        {%- do healing_tables._write_folder(format, folder ~ '/' ~ loop.index, beside.query) -%}
        {%- do side_tables.update({beside.table: folder ~ '/' ~ loop.index}) -%}
    {%- endfor -%}
    {%- set commit = {
        'version': version, 'merge_id': run.commit.merge_id, 'location': location,
        'base_location': run.stored.get('location'), 'base_id': run.commit.files, 'key_buckets': run.key_buckets,
        'create_table': healing_tables._swap_location(format, run.target, candidate.columns, folder ~ '/empty'
            if run.key_buckets is not none else location, false, 'if not exists ') | trim if not run.stored else none,
        'add_columns': added | join('\n'), 'side_tables': side_tables,
        'micro_batches': base.micro_batches if base is not none else {}} -%}
    {%- set is_moved = run.stored and not healing_tables._is_same_place(
        healing_tables._table_details(run.target.incorporate(type='table')).location, run.stored.location) -%}
    {%- set table = healing_tables._commit_table(run.target) -%}
    {%- set conflicts = ['SET LOCATION'] if is_moved
        else healing_tables._add_commit(format, table, commit, folder ~ '/commit')
            or healing_tables._finish_commit(format, run.target, healing_tables._newest_commit(table)) -%}
    {%- if not conflicts -%}
        {%- call noop_statement('main', 'OK') -%} {%- endcall -%}
        {%- do healing_tables._expire_commits(format, run.target, version) -%}
    {%- endif -%}
    {{- return({'conflicts': conflicts, 'created': run.target, 'is_created': not run.stored, 'candidate': candidate,
        'version': version}) -}}
{%- endmacro %}

{#- The columns that the stored table lacks, as lines of JSON. Refused if it has one that is missing now, or that has
    another type. -#}
{% macro _columns_to_add(run, candidate) -%}
    {%- set stored, lines, mistakes = run.stored.columns, [], [] -%}
    {%- for name, type in candidate.columns.items() if name not in stored -%}
        {%- do lines.append(tojson([name, type])) -%}
    {%- endfor -%}
    {%- for name, type in stored.items() if candidate.columns.get(name) != type -%}
        {%- do healing_tables._mistake(mistakes, name, 'the column with its type, ' ~ type
            ~ ': Spark does not change the columns of the metastore',
            candidate.columns[name] if name in candidate.columns else 'no such column',
            'drop the table; the next merge makes it again from its change log') -%}
    {%- endfor -%}
    {%- do healing_tables._refuse(run, mistakes, candidate) if mistakes -%}
    {{- return(lines) -}}
{%- endmacro %}
