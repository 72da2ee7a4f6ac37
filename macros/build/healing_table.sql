{#-
    Compute the dimension, check it and compare it with the stored table in one pass, and publish it in one step. Until
    that step, and after any failure, readers see the previous state of the target.
-#}
{% materialization healing_table, default, supported_languages=['sql'] %}
    {%- set target = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {#- mistakes are raised before any hook runs -#}
    {%- set session = healing_tables._session_settings() -%}
    {%- set settings = healing_tables._build_settings(sql, healing_tables._mistakes_of_format(session), session) -%}

    {{ run_hooks(pre_hooks) }}

    {%- set published = [] -%}
    {%- for attempt in range(1, healing_tables._max_attempts() + 1) -%}
        {%- if not published -%}
            {#- dbt's cache has the tables that existed when the run started -#}
            {%- set found = existing if attempt == 1 else target if healing_tables._table_exists(target) else none -%}
            {%- set ended = healing_tables._attempt_build(target, found, sql, settings, attempt) -%}
            {%- do published.append(ended) if ended is not none -%}
        {%- endif -%}
    {%- endfor -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=true)) -%}
    {#- a table that was created already has its properties -#}
    {%- do healing_tables._set_properties(settings.format, target, settings.property,
        published[0].properties) if not published[0].is_created or not settings.format.has_commits -%}
    {%- do healing_tables._order_files(settings.format, target, healing_tables._cluster_by())
        if published[0].is_created -%}
    {%- do healing_tables._set_comments(target) -%}
    {%- do persist_constraints(target, model) if published[0].is_created -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}

{#-
    One attempt: pass, checks, comparison, publication. Returns {properties (of the stored table; none if it is a new
    one), is_created}; or none if another writer has changed the target in the meantime: the next attempt starts from
    the rows stored then.
-#}
{% macro _attempt_build(target, existing, sql, settings, attempt) -%}
    {%- set run = healing_tables._with_foreign_table(
        healing_tables._begin_build(target, existing, sql, settings, attempt)) -%}
    {%- set sequence = healing_tables._sequence(run) -%}
    {%- if run.mode == 'heal' and run.changed_key_count == 0 -%}
        {%- set change = healing_tables._no_change(run) -%}
    {%- else -%}
        {%- set candidate = healing_tables._new_candidate(run, sequence) -%}
        {%- set obstacle = healing_tables._merge_obstacle(run, candidate) -%}
        {#- here a heal becomes a rebuild: its rows cannot be merged, for example because a column has a new type -#}
        {%- if run.mode == 'heal' and obstacle is not none -%}
            {%- set run = healing_tables._rebuild_instead(run, obstacle) -%}
            {%- set candidate = healing_tables._new_candidate(run, sequence) -%}
            {%- set obstacle = healing_tables._merge_obstacle(run, candidate) -%}
        {%- endif -%}
        {%- set change = healing_tables._compute_change(run, candidate, obstacle, sequence) -%}
    {%- endif -%}
    {%- set candidate = change.candidate -%}
    {%- if change.how == 'unchanged' -%}
        {%- call noop_statement('main', 'unchanged') -%} {%- endcall -%}
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
    {%- set conflicts = (healing_tables._look_at_commits(run, 0, healing_tables._table_exists(target)).conflicts
            if change.how == 'overwrite' else [])
        or healing_tables._publish_numbers(run, candidate, sequence) -%}
    {%- set published = healing_tables._publish(run, candidate, change) if not conflicts
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
    {%- do healing_tables._report_leftovers(run, tables) -%}
    {%- do healing_tables._after_publish(run, change, published, seen.version, seen.written_rows) -%}
    {{- return({'properties': none if published.is_created else run.stored.properties,
        'is_created': published.is_created}) -}}
{%- endmacro %}
