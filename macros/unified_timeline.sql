{#-
    Combine several effectivity relations on one timeline: a slice starts where one of them changes.

    crm  id | name | changed_at | is_deleted      id | name | limit | valid_from | valid_to   | is_current
         1  | Ann  | 2024-01-01 | false       ->  1  | Ann  | NULL  | 2024-01-01 | 2024-02-01 | false
    erp  1  | 500  | 2024-02-01 | false           1  | Ann  | 500   | 2024-02-01 | (open)     | true
-#}
{% macro unified_timeline(sources, key_columns, attributes, exists_in=none, valid_to_current='(not given)') -%}
{{- return(healing_tables._time_slices('unified_timeline', sources, key_columns, attributes, exists_in,
    valid_to_current)) -}}
{%- endmacro %}
