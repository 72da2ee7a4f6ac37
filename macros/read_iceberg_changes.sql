{#-
    A changelog view of an Iceberg table as a change log. `snapshots`: the metadata table with its snapshots, which have
    the moments.

    id | city | _change_type  | _change_ordinal | _commit_snapshot_id      id | city | _sequence | _is_deleted
    1  | Oslo | UPDATE_BEFORE | 2               | 7                    ->  1  | Oslo | {2, 0}    | true
    1  | Rome | UPDATE_AFTER  | 2               | 7                        1  | Rome | {2, 1}    | false
-#}
{% macro read_iceberg_changes(relation, snapshots, columns=none, column_names={}) -%}
{%- set instead = healing_tables._placeholder_select('read_iceberg_changes', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes, needed = [], ['_change_type', '_change_ordinal', '_commit_snapshot_id'] -%}
{%- set found = healing_tables._columns_of_feed(mistakes, relation, columns, needed) -%}
{%- set is_deleted = "_change_type in ('DELETE', 'UPDATE_BEFORE')" -%}
{{ healing_tables._read_feed('read_iceberg_changes', mistakes, relation ~ ' as changes join (select snapshot_id as '
    ~ 'healing_tables_snapshot, committed_at as healing_tables_at from ' ~ snapshots
    ~ ') as taken on healing_tables_snapshot = _commit_snapshot_id', found, columns, column_names, {
    'needed': needed, 'at': 'healing_tables_at', 'is_deleted': is_deleted,
    'sequence': 'struct(_change_ordinal as ordinal, if(' ~ is_deleted ~ ', 0, 1) as part)'}) }}
{%- endmacro %}
