{#-
    Merge the batch that a model returns into its dimension, in one commit. Two ways lead to the same rows: the library,
    in dbt's process (python/), and where it cannot run, for SQL models, statements (sql/).
-#}
{% materialization healing_merge, default, supported_languages=['sql', 'python'] %}
    {%- set target = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- set obstacle = healing_tables._library_obstacle() if model.language == 'sql' else none -%}
    {%- set settings = healing_tables._merge_settings(target, existing, model.language, compiled_code)
        if obstacle is none else healing_tables._sql_merge_settings(target, existing, obstacle) -%}

    {{ run_hooks(pre_hooks) }}

    {%- if obstacle is none -%}
        {%- set created = existing is none or settings.replaced is not none -%}
        {%- call statement('main', language='python') -%}
{{ healing_tables._merge_code(settings, model.language, compiled_code) }}
        {%- endcall -%}
    {%- else -%}
        {%- set created = healing_tables._merge_by_sql(target, existing, sql, settings).is_created -%}
        {%- do healing_tables._order_files(settings.format, target, healing_tables._cluster_by()) if created -%}
    {%- endif -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=created)) -%}
    {%- do healing_tables._set_comments(target) -%}
    {%- if created -%} {%- do persist_constraints(target, model) -%} {%- endif -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}
