{#- Snapshots of an Iceberg table, changes of its metadata, and the procedures of its catalog. -#}

{#- The start of a procedure call, with the table as its first argument. -#}
{% macro _iceberg_call(relation, procedure) -%}
    {%- set catalog = relation.database -%}
    {{- return('call ' ~ (healing_tables._quoted(catalog) ~ '.' if catalog else '') ~ 'system.' ~ procedure ~ '('
        ~ healing_tables._string_literal(healing_tables._quoted(relation.schema) ~ '.' ~ healing_tables._quoted(
            relation.identifier))) -}}
{%- endmacro %}

{#-
    The commits to main since a snapshot, newest first: one for each later entry of the table's history. An entry
    changes rows unless all snapshots between it and the previous entry, by their parents, only replaced files. Its
    parameters are the names of branches that end there: a merge of the library keeps its own for a while.
-#}
{% macro _iceberg_commits_since(relation, version) -%}
    {%- set entries, snapshots, branches = [], {}, {} -%}
    {%- do healing_tables._run('refresh table ' ~ relation) -%}
    {%- for row in run_query(
        "select 'log' as kind, made_current_at as at, snapshot_id, parent_id, '' as operation, '0' as added_rows from "
        ~ relation ~ ".history union all select 'snapshot', committed_at, snapshot_id, parent_id, operation, "
        ~ "summary['added-records'] from " ~ relation ~ ".snapshots union all select 'ref', cast(null as timestamp),"
        ~ ' snapshot_id, 0, name, null from ' ~ relation ~ '.refs').rows -%}
        {%- set version = row['snapshot_id'] | int -%}
        {%- set parent = row['parent_id'] | int if row['parent_id'] is not none else none -%}
        {%- if row['kind'] == 'log' -%}
            {%- do entries.append({'version': version, 'at': row['at'], 'parent': parent}) -%}
        {%- elif row['kind'] == 'snapshot' -%}
            {%- do snapshots.update({version: {'operation': row['operation'], 'parent': parent,
                'added_rows': row['added_rows'] | int}}) -%}
        {%- else -%} {%- do branches.update({version: branches.get(version, '') ~ ' ' ~ row['operation']}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set entries = entries | sort(attribute='at') -%}
    {%- set found = namespace(first=0 if version is none else none) -%}
    {%- for entry in entries if entry.version == version -%}
        {%- set found.first = entries.index(entry) + 1 -%}
    {%- endfor -%}
    {%- if found.first is none -%} {{ return(none) }} {%- endif -%}
    {%- set commits, before = [], namespace(version=version) -%}
    {%- for entry in entries[found.first:] -%}
        {%- set steps = healing_tables._iceberg_snapshots_between(snapshots, before.version, entry.version) -%}
        {%- set before.version = entry.version -%}
        {%- set operations = none if steps is none else steps | map(attribute='operation') | unique | list -%}
        {%- do commits.insert(0, dict(
            entry, operation='another table, or an older snapshot' if steps is none else operations | join(', '),
            changes_rows=operations != ['replace'], parameters=branches.get(entry.version, ''),
            written_rows=snapshots.get(entry.version, {}).get('added_rows'))) -%}
    {%- endfor -%}
    {{- return(commits) -}}
{%- endmacro %}

{#- The snapshots after `before` up to `until`, by their parents; none if `before` is not an ancestor. -#}
{% macro _iceberg_snapshots_between(snapshots, before, until) -%}
    {%- set steps, at = [], namespace(id=until) -%}
    {%- for step in snapshots -%}
        {%- if at.id != before and at.id in snapshots -%}
            {%- do steps.append(snapshots[at.id]) -%}
            {%- set at.id = snapshots[at.id].parent -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(steps if at.id == before else none) -}}
{%- endmacro %}

{#- Change a property or a branch; retry if Iceberg rejects it because another writer changes the table at the same
    time. -#}
{% macro _iceberg_alter(relation, change) -%}
    {%- set statement_text, done = 'alter table ' ~ relation ~ ' ' ~ change, [] -%}
    {%- for attempt in range(healing_tables._iceberg_attempts()) -%}
        {%- if not done -%}
            {%- do done.append(true) if healing_tables._iceberg_try(statement_text) is none
                else run_query('refresh table ' ~ relation) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._run(statement_text) if not done -%}
{%- endmacro %}

{#-
    Run a statement. Returns the class of its exception if Iceberg rejects the commit, or none. Jinja cannot catch an
    error; the adapter can if the plugin of the pip library has extended it. Otherwise the error ends the run.
-#}
{% macro _iceberg_try(statement_text) -%}
    {%- if adapter.healing_tables_try is defined -%}
        {{- return(adapter.healing_tables_try(statement_text, [
            'org.apache.iceberg.exceptions.CommitFailedException',
            'org.apache.iceberg.exceptions.CommitStateUnknownException', 'java.lang.IllegalArgumentException'])) -}}
    {%- endif -%}
    {%- do healing_tables._run(statement_text) -%}
    {{- return(none) -}}
{%- endmacro %}

{#- As of a merge, see src/healing_tables/targets/iceberg.py. -#}
{% macro _iceberg_attempts() -%} {{ return(20) }} {%- endmacro %}
