{#-
    Turn an effectivity relation into half-open slices [valid_from, valid_to); periods after a deletion are left out.

    id | city | changed_at | is_deleted        id | city | valid_from | valid_to   | is_current
    1  | Oslo | 2024-01-01 | false       ->    1  | Oslo | 2024-01-01 | 2024-03-01 | false
    1  | Rome | 2024-03-01 | false             1  | Rome | 2024-03-01 | (open)     | true
-#}
{% macro time_slices(relation, key_columns, tracked_columns=none, valid_to_current='(not given)') -%}
{{- return(healing_tables._time_slices('time_slices', {'source': relation}, key_columns, tracked_columns, none,
    valid_to_current)) -}}
{%- endmacro %}
