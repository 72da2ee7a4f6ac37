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
            {%- set change = healing_tables._attempt_build(target, found, sql, settings, attempt) -%}
            {%- do published.append(change) if change is not none -%}
        {%- endif -%}
    {%- endfor -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=true)) -%}
    {#- a table that was created already has its properties -#}
    {%- do healing_tables._set_properties(settings.format, target, settings.property,
        published[0].properties) if not published[0].is_created or not settings.format.has_commits -%}
    {%- do healing_tables._set_comments(target) -%}
    {%- do persist_constraints(target, model) if published[0].is_created -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}

{#-
    One attempt: pass, checks, comparison, publication. Returns the published change [see _change.sql], or none
    if another writer has changed the target in the meantime: the next attempt starts from the rows stored then.
-#}
{% macro _attempt_build(target, existing, sql, settings, attempt) -%}
    {%- set build = healing_tables._begin_build(target, existing, sql, settings, attempt) -%}
    {%- do healing_tables._check_foreign_table(build) -%}
    {%- set sequence = healing_tables._sequence(build) -%}
    {%- if build.log_row.mode == 'heal' and build.changed_key_count == 0 -%}
        {%- set change = healing_tables._no_change(build) -%}
    {%- else -%}
        {%- set change = healing_tables._compute_change(build, sequence) -%}
    {%- endif -%}
    {%- if change.how == 'unchanged' -%}
        {%- call noop_statement('main', 'unchanged') -%} {%- endcall -%}
        {%- do healing_tables._report_leftovers(build, healing_tables._tables_beside(target))
            if build.changes is not none -%}
        {%- do healing_tables._after_publish(build, change, build.log_row.version_before) -%}
        {{- return(dict(change, properties=build.stored.properties, is_created=false)) -}}
    {%- endif -%}
    {%- do healing_tables._compute_candidate_by_shard(build, change) -%}
    {#- a merge keeps rows that another writer has changed in the meantime; an overwrite would not -#}
    {%- set conflicts = (healing_tables._look_at_commits(build, 0, healing_tables._table_exists(target)).conflicts
            if change.how == 'overwrite' else [])
        or healing_tables._publish_numbers(build, sequence)
        or healing_tables._publish(build, change) -%}
    {%- if conflicts -%}
        {%- do healing_tables._after_conflict(build, attempt, conflicts) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set tables = healing_tables._tables_beside(target) -%}
    {%- set seen = healing_tables._look_at_commits(build, 1, target.identifier | lower in tables | map('lower')) -%}
    {%- if seen.conflicts -%}
        {%- do healing_tables._after_conflict(build, attempt, seen.conflicts, true) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._report_leftovers(build, tables) -%}
    {%- do healing_tables._after_publish(build, change, seen.version, seen.written_rows) -%}
    {{- return(dict(change, properties=none if build.is_created else build.stored.properties,
        is_created=build.is_created)) -}}
{%- endmacro %}
