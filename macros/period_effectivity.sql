{#-
    Reduce rows that carry half-open periods to change points.

    id | start      | end        | name          id | name | changed_at | is_deleted
    1  | 2024-01-01 | 2024-02-01 | Ann    ->     1  | Ann  | 2024-01-01 | false
    1  | 2024-02-01 | 2024-03-01 | Bea           1  | Bea  | 2024-02-01 | false
                                                 1  | NULL | 2024-03-01 | true
-#}
{% macro period_effectivity(relation, key_columns, valid_from, valid_to, tracked_columns=none) -%}
{{- return(healing_tables._effectivity('period_effectivity', key_columns, tracked_columns, {
    'relation': relation, 'valid_from': valid_from, 'valid_to': valid_to})) -}}
{%- endmacro %}
