{#-
    The change feed of a Delta table as a change log. A row that an update has changed is deleted and inserted in one
    commit, so that a changed key leaves no row behind.

    id | city | _change_type     | _commit_version      id | city | _sequence | _is_deleted
    1  | Oslo | update_preimage  | 3                ->  1  | Oslo | {3, 0}    | true
    1  | Rome | update_postimage | 3                    1  | Rome | {3, 1}    | false
-#}
{% macro read_delta_changes(relation, columns=none, column_names={}) -%}
{%- set instead = healing_tables._placeholder_select('read_delta_changes', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes, needed = [], ['_change_type', '_commit_version', '_commit_timestamp'] -%}
{%- set found = healing_tables._columns_of_feed(mistakes, relation, columns, needed) -%}
{%- set is_deleted = "_change_type in ('delete', 'update_preimage')" -%}
{{ healing_tables._read_feed('read_delta_changes', mistakes, relation, found, columns, column_names, {
    'needed': needed, 'at': '_commit_timestamp', 'is_deleted': is_deleted,
    'sequence': 'struct(_commit_version as version, if(' ~ is_deleted ~ ', 0, 1) as part)'}) }}
{%- endmacro %}
