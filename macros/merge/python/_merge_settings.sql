{#- What the Python library is given for a merge. It checks the values; the macros check only what concerns dbt. -#}

{#- The settings of a merge, as merge_model() in dbt_healing_tables/merging.py reads them. -#}
{% macro _merge_settings(target, existing, language, compiled_code) -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._check_can_merge(mistakes, '; or write it as a SQL model, which needs no library') -%}
    {%- set spec = healing_tables._merge_spec(mistakes, target) -%}
    {%- set at = healing_tables._option('at', none) -%}
    {%- do healing_tables._check_moment(mistakes, 'at', at) if at is not none -%}
    {%- set format = healing_tables._merge_format(mistakes, existing) -%}
    {%- do healing_tables._check_contract_of_batch(mistakes) -%}
    {%- do healing_tables._warn_about_backups(target, healing_tables._tables_beside(target)) if existing is none -%}
    {%- set replaced = healing_tables._full_refresh(mistakes, target, existing,
        healing_tables._merged_columns(spec)) -%}
    {%- if existing is none or replaced -%}
        {%- do healing_tables._set_location_of_new_log(spec, target, format) -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('healing_merge', mistakes) -%}
    {%- do healing_tables._ensure_schema(target, healing_tables._side_table_location(target)) -%}
    {%- set root = config.get('location_root') -%}
    {%- set run = healing_tables._new_run(
        {}, format, target, existing, 'merge', healing_tables._merge_log_format()) -%}
    {{- return({
        'target': target | string,
        'spec': spec,
        'at': at | string if at is not none else none,
        'file_format': config.get('file_format'),
        'key_buckets': healing_tables._key_buckets(),
        'cluster_by': healing_tables._cluster_by(),
        'table': {
            'partition_by': healing_tables._as_list(config.get('partition_by')),
            'properties': config.get('tblproperties') or {},
            'location': none if root is none else root ~ '/' ~ target.identifier,
            'comment': model.description if config.persist_relation_docs() and model.description else none},
        'sql': compiled_code if language == 'sql' else none,
        'is_empty': true if flags.EMPTY else false,
        'is_partial': healing_tables._is_partial_run(),
        'replaced': replaced,
        'log': {'table': run.log | string, 'columns': healing_tables._log_columns(), 'row': {
            'dimension': target.identifier, 'relation': healing_tables._plain_names(target), 'mode': run.mode,
            'version_before': run.version_before, 'invocation_id': invocation_id}},
        'batch_id': invocation_id}) -}}
{%- endmacro %}

{#- The format of the log. Without file_format, the format of the model is Delta even if the session does not support
    Delta; the log is then stored in parquet. -#}
{% macro _merge_log_format() -%}
    {%- set format, mistakes = healing_tables._side_table_format(), [] -%}
    {%- do format.check_session(mistakes, healing_tables._session_settings()) -%}
    {{- return('parquet' if mistakes else format.name) -}}
{%- endmacro %}
