{#-
    Reduce a change log to its change points.

    id | updated_at | name          id | name | changed_at | is_deleted
    1  | 2024-01-01 | Ann    ->     1  | Ann  | 2024-01-01 | false
    1  | 2024-02-01 | Ann           1  | Bea  | 2024-03-01 | false
    1  | 2024-03-01 | Bea
-#}
{% macro effectivity(
    relation, key_columns, changed_at, tracked_columns=none, tie_break_by=[], deleted_when=none, on_tie='error'
) -%}
{{- return(healing_tables._effectivity('effectivity', key_columns, tracked_columns, {
    'relation': relation, 'changed_at': changed_at, 'tie_break_by': tie_break_by, 'deleted_when': deleted_when,
    'on_tie': on_tie})) -}}
{%- endmacro %}
