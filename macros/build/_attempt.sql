{#- The two halves of an attempt: find the rows that differ, and publish them. A merge has its change log between
    them. -#}

{#- {run, sequence (see _sequence.sql), change (see _change.sql)}. Here a heal becomes a rebuild if its rows cannot be
    merged, for example because a column has a new type. -#}
{% macro _find_change(run) -%}
    {%- set sequence = healing_tables._sequence(run) -%}
    {%- set candidate = healing_tables._new_candidate(run, sequence) -%}
    {%- set obstacle = healing_tables._merge_obstacle(run, candidate) -%}
    {%- if run.mode == 'heal' and obstacle is not none -%}
        {%- set run = healing_tables._rebuild_instead(run, obstacle) -%}
        {%- set candidate = healing_tables._new_candidate(run, sequence) -%}
        {%- set obstacle = healing_tables._merge_obstacle(run, candidate) -%}
    {%- endif -%}
    {{- return({'run': run, 'sequence': sequence,
        'change': healing_tables._compute_change(run, candidate, obstacle, sequence)}) -}}
{%- endmacro %}

{#- Publish a change. Returns as _attempt_build() does. `conflicts`: commits of others that are known already. -#}
{% macro _publish_change(run, change, sequence, attempt, conflicts=[]) -%}
    {%- set target, candidate = run.target, change.candidate -%}
    {%- if change.how == 'unchanged' and not conflicts and not (run.commit or {}).get('folders') -%}
        {%- call noop_statement('main', 'unchanged') -%} {%- endcall -%}
        {%- for statement in run.beside -%} {%- do healing_tables._run(statement) -%} {%- endfor -%}
        {%- do healing_tables._report_leftovers(run, healing_tables._tables_beside(target))
            if candidate is not none and candidate.changes is not none -%}
        {%- do healing_tables._after_publish(run, change, {'created': target, 'candidate': candidate},
            run.version_before) -%}
        {{- return({'properties': run.stored.properties, 'is_created': false}) -}}
    {%- endif -%}
    {%- if change.how == 'overwrite' and healing_tables._is_sharded(run) -%}
        {%- set candidate = healing_tables._candidate_by_shard(run, candidate) -%}
    {%- endif -%}
    {#- a merge keeps rows that another writer has changed in the meantime; an overwrite would not -#}
    {%- set conflicts = conflicts
        or (healing_tables._look_at_commits(run, 0, healing_tables._table_exists(target)).conflicts
            if change.how == 'overwrite' else [])
        or (healing_tables._publish_numbers(run, candidate, sequence) if run.commit is none else []) -%}
    {%- set published = healing_tables._publish(run, candidate, change, sequence) if not conflicts
        else {'conflicts': conflicts} -%}
    {%- if published.conflicts -%}
        {%- do healing_tables._after_conflict(run, attempt, published.conflicts, candidate) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set published = dict(published, candidate=healing_tables._passed_checks(run, published.candidate)) -%}
    {%- set tables = healing_tables._tables_beside(target) -%}
    {%- set seen = healing_tables._look_at_commits(run, 1, target.identifier | lower in tables | map('lower'),
        published.created) -%}
    {%- if seen.conflicts -%}
        {%- do healing_tables._after_conflict(run, attempt, seen.conflicts, published.candidate, true) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- for statement in run.beside -%} {%- do healing_tables._run(statement) -%} {%- endfor -%}
    {%- do healing_tables._audit_change(run, change, seen) if run.commit is none -%}
    {%- do healing_tables._report_leftovers(run, tables) -%}
    {%- do healing_tables._after_publish(run, change, published, published.version or seen.version,
        seen.written_rows) -%}
    {{- return({'properties': none if published.is_created else run.stored.properties,
        'is_created': published.is_created}) -}}
{%- endmacro %}
