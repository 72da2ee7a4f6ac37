{#-
    The interface of a table format: a `format`, the map that the macro _format_<file_format>() in a file of this
    directory returns, on top of the defaults of _no_format(). Some entries are maps of entries that belong together;
    a format that sets one entry of such a map keeps the defaults of the others. Entries that take arguments are macros:
    format.commits.since(relation, version).

    name              the file_format, and the provider that Spark shows
    has_commits       a write is a commit: such a table supports MERGE and has a history
    has_branches      a build prepares its commit in a branch of the table
    can_shard         a table can be built in shards (build/_shards.sql): each part is one commit
    staging_format    the format of a table that a build drops when it ends
    check_session     (mistakes, session): check that the session can write it with these settings
    stored_type       (type): the type in which the format stores a type
    table_id          (relation, details): an id that changes if the table is recreated, or none; in a format without
                      commits, it also changes with each write
    part_obstacle     (details): why the stored rows cannot be partly rewritten, or none
    can_widen         (stored, given): whether a stored column of one type can get the other, wider one
    widen             (relation, columns {name: type}): change their types
    constraints       (relation, details): the conditions that the table requires of its rows, {name: SQL}, or none

    commits
      newest_version  (relation): the number of the newest commit, or none
      has_ordered_versions   a later commit has a higher number
      newest          (relation, limit=20): the newest commits, newest first, [{version, at, operation, parameters,
                      changes_rows, written_rows (or none)}]; limit none: all of them
      since           (relation, version): the commits after a version, as in `newest`, or from the beginning if version
                      is none; none if the history does not reach back that far, or is another table's
      engine          (relation): the name and version of the library that has written the newest commit, or none
      may_be_gone     (commits, details): whether the rows before these commits may have been removed
      before          (version, base): the version before a commit, or none; `base`: the one that its build has seen
      has_tags        a commit of a build can have a tag, which `newest` shows in `parameters`: build/_commit_tag.sql
      tag_property    (base, version): the table property that is the tag of a commit; version none: of the statement
                      that makes the table after the version `base`
      shows_predicates   `newest` and `since` show the predicate of a MERGE
      when_matched    a clause that a MERGE needs which only inserts: without it, the format would not see that another
                      writer inserts the same rows; or none
      begin           (relation, version): the table or branch to which statements write that become one commit after
                      this version
      end             (relation, version, tag=none): publish the branch; returns a list of conflicts
      names_folders   a merge as SQL writes folders, which one row of a table beside the dimension names:
                      _commit_table.sql
      renew           (relation): a statement after which the newest version has all columns, or none if that is so

    branches          of builds
      leftovers       (relation): those that builds have left, [{name, id (of the build's run, without dashes), hours
                      (since its last commit, or none)}]
      drop            (relation, name)

    change_feed
      is_on           (details): whether the table has one
      source          (relation, details, version, until): the changes after a version, up to another one or none, as
                      SQL for a `from`
      gap             (relation, details, version): why these changes are incomplete, or none

    properties        table properties
      for_columns     (columns {name: type}, merges): of a table with these columns; merges: a few of its rows are
                      changed at a time
      log             of the log, to which several runs append
      key_map         of a key map
      change_log      of the change log of a merge or a capture
      audit           of an audit

    files
      new_location    (target, attempt): the folder of this run's files, or none if the format chooses the location
      written_at      (relation): when the files were last written, as SQL in microseconds
      order           (columns, as SQL): the clause of `alter table` that clusters a table by these columns, or none
      kept_hours      (relation): how long the table is set to keep old files, or none
      erase           (relation, details, condition, values): remove the rows that satisfy a condition from the
                      current files; with values, {column: SQL}, they stay with these
      past            (relation): what still has removed rows, and the command that ends it, for people
      all             (relation, details, columns): the rows of all files, also of past versions, as SQL for a `from`,
                      with at least these columns; or none
      log             (relation): how many entries of the log of the table may name values of removed rows, or none
      maintain        (relation, columns, keys, partitions, hours, allow_short): compact and clean up the files; returns
                      lines to print
-#}
{% macro _format(name=none) -%}
    {%- set make = healing_tables._formats().get(name or config.get('file_format') or 'delta') -%}
    {%- if make is none -%} {{ return(none) }} {%- endif -%}
    {%- set entries = healing_tables._no_format() -%}
    {#- by their names: for dbt v2, a macro is a mapping, too -#}
    {%- set maps = ['commits', 'branches', 'change_feed', 'properties', 'files'] -%}
    {%- for name, entry in make().items() -%}
        {%- do entries.update({name: dict(entries[name], **entry) if name in maps else entry}) -%}
    {%- endfor -%}
    {{- return(entries) -}}
{%- endmacro %}

{#- The formats by name. dbt v2 cannot look up a macro by its name. -#}
{% macro _formats() -%}
    {{- return({
        'delta': healing_tables._format_delta, 'iceberg': healing_tables._format_iceberg,
        'orc': healing_tables._format_orc, 'parquet': healing_tables._format_parquet}) -}}
{%- endmacro %}

{#- The default entries of a format: one without commits. -#}
{% macro _no_format() -%}
    {%- set nothing, none_of_them = healing_tables._nothing_known, healing_tables._none_of_them -%}
    {{- return({
        'has_commits': false, 'has_branches': false, 'can_shard': false,
        'check_session': nothing, 'stored_type': healing_tables._same_type,
        'table_id': nothing, 'part_obstacle': nothing, 'constraints': nothing, 'can_widen': nothing,
        'widen': nothing,
        'commits': {
            'newest_version': nothing, 'has_ordered_versions': false, 'newest': none_of_them, 'since': nothing,
            'engine': nothing, 'has_tags': false, 'tag_property': nothing, 'shows_predicates': false, 'renew': nothing,
            'when_matched': none, 'may_be_gone': nothing, 'before': nothing, 'names_folders': false,
            'begin': healing_tables._in_place, 'end': none_of_them},
        'branches': {'leftovers': none_of_them, 'drop': nothing},
        'change_feed': {'is_on': nothing, 'source': nothing, 'gap': nothing},
        'properties': {
            'for_columns': healing_tables._no_properties, 'log': {}, 'key_map': {}, 'change_log': {}, 'audit': {}},
        'files': {
            'new_location': nothing, 'written_at': healing_tables._newest_file, 'order': nothing,
            'kept_hours': nothing, 'maintain': nothing, 'erase': healing_tables._files_erase,
            'past': healing_tables._files_past, 'all': nothing, 'log': nothing}}) -}}
{%- endmacro %}

{% macro _nothing_known() -%} {%- set arguments = [varargs, kwargs] -%} {{ return(none) }} {%- endmacro %}

{% macro _none_of_them() -%} {%- set arguments = [varargs, kwargs] -%} {{ return([]) }} {%- endmacro %}

{% macro _same_type(type) -%} {{ return(type) }} {%- endmacro %}

{% macro _no_properties(columns, merges) -%} {{ return({}) }} {%- endmacro %}

{% macro _newest_file(relation) -%}
    {{- return('(select unix_micros(max(_metadata.file_modification_time)) from ' ~ relation ~ ')') -}}
{%- endmacro %}

{% macro _in_place(relation, version) -%} {{ return(relation) }} {%- endmacro %}

{#- The version that commits.begin and commits.end need; none if the format has no branches, which saves a query. -#}
{% macro _base_version(format, relation) -%}
    {{- return(format.commits.newest_version(relation) if format.has_branches else none) -}}
{%- endmacro %}

{#- The error of an operation whose commit was refused because of a concurrent one. `conflicts`: of commits.end. -#}
{% macro _check_not_overtaken(operation, relation, conflicts) -%}
    {%- set mistakes = [] -%}
    {%- if conflicts -%}
        {%- do healing_tables._mistake(mistakes, 'concurrent writers', relation ~ ' in the state in which it was read',
            conflicts | join(', ') ~ ' of another writer', 'run it again; nothing was changed') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(operation, mistakes) -%}
{%- endmacro %}

{#- The format of the stored table; none for a view, and for an unknown format. -#}
{% macro _stored_format(details) -%}
    {{- return(healing_tables._format(details.provider) if details.get('provider') else none) -}}
{%- endmacro %}

{% macro _known_formats() -%} {{ return(healing_tables._formats().keys() | sort) }} {%- endmacro %}

{#- The names of the formats whose entry of this name is true. -#}
{% macro _formats_with(entry) -%}
    {%- set names = [] -%}
    {%- for name in healing_tables._known_formats() if healing_tables._format(name)[entry] -%}
        {%- do names.append(name) -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{#- Logs and key maps have the model's format if it supports concurrent writers. Otherwise they are Delta tables if the
    session supports Delta. -#}
{% macro _side_table_format() -%}
    {%- set format = healing_tables._format() -%}
    {{- return(healing_tables._format('delta') if not format.has_commits and healing_tables._has_delta()
        else format) -}}
{%- endmacro %}

{#- The number of a table's newest commit; none if nothing is stored, or in a format without commits. -#}
{% macro _table_version(relation, details) -%}
    {%- set format = healing_tables._stored_format(details) -%}
    {{- return(format.commits.newest_version(relation) if format is not none else none) -}}
{%- endmacro %}

{#- The columns of a query, {name: type or none}, as the format stores them. -#}
{% macro _as_stored(format, columns) -%}
    {%- set stored = {} -%}
    {%- for name, type in columns.items() -%}
        {%- do stored.update({name: format.stored_type(type) if type else type}) -%}
    {%- endfor -%}
    {{- return(stored) -}}
{%- endmacro %}

{% macro _table_id(relation, details) -%}
    {%- set format = healing_tables._stored_format(details) -%}
    {{- return(format.table_id(relation, details) if format is not none else none) -}}
{%- endmacro %}

{#-
    `create table` with the options of dbt's own table materialization. `columns`: of the query. `location` none: the
    default location. `replace` false: an existing table is kept. `partitions`: columns instead of those of the
    model.
-#}
{% macro _create_table(format, relation, query, columns, location, is_target=false, properties={}, replace=true,
    partitions=none) -%}
    create {{ 'or replace ' if format.has_commits and replace }}table {{ 'if not exists '
        if not replace }}{{ relation }}
    using {{ format.name }}
    {{ options_clause() }}
    {{ healing_tables._tblproperties(format, columns, properties) }}
    {{ ('partitioned by (' ~ (partitions | join(', ')) ~ ')' if partitions) if partitions is not none
        else partition_cols(label='partitioned by') if is_target or location is not none }}
    {{ clustered_cols(label='clustered by') if is_target or location is not none }}
    {% if location is not none -%} location {{ healing_tables._string_literal(location) }}
    {%- elif is_target -%} {{ healing_tables._platform().location_clause() }}
    {%- endif %}
    {{ comment_clause() if is_target }}
    as
    {{ query }}
{%- endmacro %}

{#-
    `details` of a stored table: columns {name: type}, comments {name: comment of the column}, comment, provider, type,
    location, partitions (columns), partition provider, properties (as one string); {} for a view, or if nothing is
    stored.
-#}
{% macro _table_details(relation) -%}
    {%- set details = {} -%}
    {%- if relation is none or not relation.is_table -%} {{ return(details) }} {%- endif -%}
    {%- set section = namespace(name='') -%}
    {%- do details.update({'columns': {}, 'comments': {}, 'comment': '', 'partitions': [], 'properties': ''}) -%}
    {%- for row in run_query('describe table extended ' ~ relation).rows -%}
        {#- a title has no type -#}
        {%- if section.name == '' and row[1] -%}
            {#- a column named null is read as NULL -#}
            {%- set name = 'null' if row[0] is none else row[0] | string -%}
            {%- do details.columns.update({name: row[1]}) -%}
            {%- do details.comments.update({name: row[2] or ''}) -%}
        {%- elif not row[0] or row[0] in ['# Partition Information', '# Partitioning',
            '# Detailed Table Information'] -%}
            {%- set section.name = row[0] or ' ' -%}
        {%- elif section.name == '# Partition Information' and row[0] != '# col_name' -%}
            {%- do details.partitions.append(row[0]) -%}
        {%- elif section.name == '# Partitioning' -%}
            {#- Part 0 | bucket(4, id) -#}
            {%- do details.partitions.append(row[1] | replace(', ', ',')) -%}
        {%- elif row[0] in ['Provider', 'Type', 'Location', 'Comment', 'Partition Provider'] -%}
            {%- do details.update({row[0] | lower: row[1]}) -%}
        {%- elif row[0] == 'Table Properties' -%}
            {%- do details.update({'properties': row[1]}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do details.update({'columns': healing_tables._whole_types(details.columns, relation)}) -%}
    {{- return(details) -}}
{%- endmacro %}
