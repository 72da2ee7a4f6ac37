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
    {%- set found = {'run': run, 'sequence': healing_tables._sequence(run), 'change': healing_tables._no_change(run)}
        if run.mode == 'heal' and run.changed_key_count == 0 else healing_tables._find_change(run) -%}
    {{- return(healing_tables._publish_change(found.run, found.change, found.sequence, attempt)) -}}
{%- endmacro %}
