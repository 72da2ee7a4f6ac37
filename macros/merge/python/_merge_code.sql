{#-
    The Python code that merges. `compiled_code`: a Python model, which defines model(), or a SQL model, whose select is
    one of the settings. The user's code starts at the first line, so that line numbers of tracebacks are correct.
-#}
{% macro _merge_code(settings, language, compiled_code) -%}
{%- if language == 'python' -%}
{{ compiled_code }}

{% endif -%}
# --- from here on written by the materialization healing_merge
from dbt_healing_tables.merging import merge_model
healing_tables_response = merge_model(
    {{ settings | tojson | tojson }},
    spark,
    {% if language == 'python' %}lambda: model(dbtObj(spark.table), spark),{% endif %}
)
{%- endmacro %}
