{% macro compress(relation, key_columns, tracked_columns, count_column=none) %}select 1 as id{% endmacro %}
