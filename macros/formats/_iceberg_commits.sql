{#- Snapshots of an Iceberg table, and the procedures of its catalog. -#}

{#- The start of a procedure call, with the table as its first argument. -#}
{% macro _iceberg_call(relation, procedure) -%}
    {%- set catalog = relation.database -%}
    {{- return('call ' ~ (healing_tables._quoted(catalog) ~ '.' if catalog else '') ~ 'system.' ~ procedure ~ '('
        ~ healing_tables._string_literal(healing_tables._quoted(relation.schema) ~ '.' ~ healing_tables._quoted(
            relation.identifier))) -}}
{%- endmacro %}

{#-
    The commits to main since a snapshot, newest first: one for each later entry of the table's history. An entry
    changes rows unless all snapshots between it and the previous entry, by their parents, only replaced files.
-#}
{% macro _iceberg_commits_since(relation, version) -%}
    {%- set entries, snapshots = [], {} -%}
    {%- do healing_tables._run('refresh table ' ~ relation) -%}
    {%- for row in run_query(
        "select 'log' as kind, made_current_at as at, snapshot_id, parent_id, '' as operation from " ~ relation
        ~ ".history union all select 'snapshot', committed_at, snapshot_id, parent_id, operation from " ~ relation
        ~ '.snapshots').rows -%}
        {%- if row['kind'] == 'log' -%}
            {%- do entries.append({'version': row['snapshot_id'] | int, 'at': row['at'], 'parameters': ''}) -%}
        {%- else -%}
            {%- do snapshots.update({row['snapshot_id'] | int: {
                'operation': row['operation'],
                'parent': row['parent_id'] | int if row['parent_id'] is not none else none}}) -%}
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
            changes_rows=operations != ['replace'])) -%}
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
