{#-
    Reduce full snapshots to change points; a key that is missing from a snapshot was deleted there.

    id | snapshot_at | name          id | name | changed_at | is_deleted
    1  | 2024-01-01  | Ann    ->     1  | Ann  | 2024-01-01 | false
    2  | 2024-01-02  | Bob           1  | NULL | 2024-01-02 | true
                                     2  | Bob  | 2024-01-02 | false
-#}
{% macro snapshot_effectivity(
    relation, key_columns, snapshot_at, tracked_columns=none, on_absence='delete', calendar=none, tie_break_by=[],
    on_tie='error'
) -%}
{{- return(healing_tables._effectivity('snapshot_effectivity', key_columns, tracked_columns, {
    'relation': relation, 'snapshot_at': snapshot_at, 'on_absence': on_absence, 'calendar': calendar,
    'tie_break_by': tie_break_by, 'on_tie': on_tie})) -}}
{%- endmacro %}
