{#-
    Merge the batch that a model returns into its dimension, in one commit. The merge itself is Python and runs in
    dbt's process (src/healing_tables); so a SQL model too is submitted as Python, which runs its select statement.
-#}
{% materialization healing_merge, default, supported_languages=['sql', 'python'] %}
    {%- set target = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- set settings = healing_tables._merge_settings(target, existing, model.language, compiled_code) -%}
    {%- set created = existing is none or settings.drop | length > 0 -%}

    {{ run_hooks(pre_hooks) }}

    {#- the user's code comes first and at its first line, for the line numbers of tracebacks -#}
    {%- call statement('main', language='python') -%}
{%- if model.language == 'python' -%}
{{ compiled_code }}

{% endif -%}
# --- from here on written by the materialization healing_merge
from dbt_healing_tables.merging import merge_model
healing_tables_response = merge_model(
    {{ settings | tojson | tojson }},
    spark,
    {% if model.language == 'python' %}lambda: model(dbtObj(spark.table), spark),{% endif %}
)
    {%- endcall -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=created)) -%}
    {%- do healing_tables._merge_docs(target) -%}
    {%- if created -%} {%- do persist_constraints(target, model) -%} {%- endif -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}

{#- Comments that differ from the descriptions; setting an equal one would be a commit. -#}
{% macro _merge_docs(target) -%}
    {%- if not config.persist_relation_docs() and not config.persist_column_docs() -%} {{ return(none) }} {%- endif -%}
    {%- set comments = {} -%}
    {%- set about = {} -%}
    {%- for row in run_query('describe table extended ' ~ target).rows -%}
        {#- sections on partitions and the table follow the columns -#}
        {%- if not row[0] or row[0].startswith('#') -%} {%- do about.update({'Comment': ''}) -%}
        {%- elif not about -%} {%- do comments.update({row[0]: row[2] or ''}) -%}
        {%- elif row[0] == 'Comment' -%} {%- do about.update({'Comment': row[1] or ''}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if config.persist_relation_docs() and model.description and model.description != about.Comment -%}
        {%- do run_query('comment on table ' ~ target ~ ' is ' ~ healing_tables._text(model.description)) -%}
    {%- endif -%}
    {%- if config.persist_column_docs() -%}
        {%- for name, column in model.columns.items() if column.description -%}
            {%- set stored = healing_tables._find(name, comments) -%}
            {%- if stored is not none and comments[stored] != column.description -%}
                {%- do run_query(
                    'alter table ' ~ target ~ ' alter column ' ~ healing_tables._id(stored) ~ ' comment '
                    ~ healing_tables._text(column.description)) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}
