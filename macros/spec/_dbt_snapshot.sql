{#-
    `dbt_snapshot` of a source: a table of `dbt snapshot` is read as periods. Its settings come from the option if that
    is a map, else from the snapshot's own configuration in this project, else from dbt's defaults.
    Returns {moments, names, hard_deletes, open_end}, or none for any other source.
-#}
{% macro _dbt_snapshot(mistakes, at, given) -%}
    {%- set asked = given.get('dbt_snapshot') -%}
    {%- if asked is none or asked is undefined or asked is sameas false -%} {{ return(none) }} {%- endif -%}
    {%- set options = ['snapshot_meta_column_names', 'dbt_valid_to_current', 'hard_deletes'] -%}
    {%- if asked is not sameas true and asked is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.dbt_snapshot', 'true, or a map of ' ~ (options | join(', ')),
            healing_tables._display_value(asked), 'write true') -%}
        {%- set asked = true -%}
    {%- endif -%}
    {%- set asked = asked if asked is mapping else {} -%}
    {%- do healing_tables._check_options(mistakes, at ~ '.dbt_snapshot', asked, options) -%}
    {%- for option in ['valid_from', 'valid_to'] if given.get(option) -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.' ~ option, 'none: dbt_snapshot sets the columns', given[option],
            "leave it out; give other names as 'dbt_snapshot': {'snapshot_meta_column_names': {...}}") -%}
    {%- endfor -%}
    {%- set snapshot_config = dict(healing_tables._snapshot_config(given.relation), **asked) -%}
    {%- set renamed = snapshot_config.get('snapshot_meta_column_names') or {} -%}
    {%- set names = {} -%}
    {%- for name in ['dbt_scd_id', 'dbt_updated_at', 'dbt_valid_from', 'dbt_valid_to', 'dbt_is_deleted'] -%}
        {%- do names.update({name: renamed.get(name) or name}) -%}
    {%- endfor -%}
    {%- do healing_tables._check_options(mistakes, at ~ '.dbt_snapshot.snapshot_meta_column_names', renamed, names) -%}
    {{- return({
        'moments': {'valid_from': names.dbt_valid_from, 'valid_to': names.dbt_valid_to}, 'names': names,
        'hard_deletes': snapshot_config.get('hard_deletes'),
        'open_end': snapshot_config.get('dbt_valid_to_current')}) -}}
{%- endmacro %}

{#- The configuration of a snapshot of this project; {} for any other relation. -#}
{% macro _snapshot_config(relation) -%}
    {%- if relation is string or relation.identifier is not defined or not execute -%} {{ return({}) }} {%- endif -%}
    {%- set node = healing_tables._node_of_table(relation) -%}
    {{- return(node.config if node is not none and node.resource_type == 'snapshot' else {}) -}}
{%- endmacro %}

{#-
    Apply the snapshot's columns to the source: its meta columns are not attributes, a row that marks a deletion
    (hard_deletes: new_record) is not a version, and an end equal to dbt_valid_to_current is open.
-#}
{% macro _apply_snapshot_columns(source, snapshot) -%}
    {%- set deleted_flag = snapshot.names.dbt_is_deleted -%}
    {%- set has_deletes = snapshot.hard_deletes == 'new_record' if source.columns is none
        else healing_tables._find_column(deleted_flag, source.columns) is not none -%}
    {%- do source.update({'exclude': source.exclude + (snapshot.names.values() | list),
        'open_end': snapshot.open_end}) -%}
    {%- if has_deletes -%}
        {#- dbt stores text; rows older than the setting have NULL -#}
        {%- set lives = 'lower(cast(' ~ healing_tables._quoted(deleted_flag)
            ~ " as string)) is distinct from 'true'" -%}
        {%- do source.update({'where': '(' ~ source.where ~ ') and ' ~ lives if source.where else lives}) -%}
    {%- endif -%}
{%- endmacro %}
