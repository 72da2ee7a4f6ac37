{#-
    Merge the batch that a model returns into its dimension, in one commit. The merge itself is Python and runs in
    dbt's process (src/healing_tables), so a SQL model is also submitted as Python, which runs its select statement.
-#}
{% materialization healing_merge, default, supported_languages=['sql', 'python'] %}
    {%- set target = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- set settings = healing_tables._merge_settings(target, existing, model.language, compiled_code) -%}
    {%- set created = existing is none or settings.replaced is not none -%}

    {{ run_hooks(pre_hooks) }}

    {%- call statement('main', language='python') -%}
{{ healing_tables._merge_code(settings, model.language, compiled_code) }}
    {%- endcall -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=created)) -%}
    {%- do healing_tables._set_comments(target) -%}
    {%- if created -%} {%- do persist_constraints(target, model) -%} {%- endif -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}
