{#- What the Python library is given for a merge. It checks the values; the macros check only what concerns dbt. -#}

{#- The settings of a merge, as merge_model() in dbt_healing_tables/merging.py reads them. -#}
{% macro _merge_settings(target, existing, language, compiled_code) -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._check_can_merge(mistakes) -%}
    {%- set spec = healing_tables._merge_spec(mistakes, target) -%}
    {%- set at = healing_tables._option('at', none) -%}
    {%- do healing_tables._check_moment(mistakes, 'at', at) if at is not none -%}
    {%- set format = healing_tables._merge_format(mistakes, existing) -%}
    {%- if config.get('contract').enforced -%}
        {%- do healing_tables._mistake(
            mistakes, 'contract.enforced', 'no contract: the model returns a batch, not the columns of the table',
            'true',
            'leave it out; on_schema_change: fail keeps the columns as they are') -%}
    {%- endif -%}
    {%- do healing_tables._warn_about_backups(target, healing_tables._tables_beside(target)) if existing is none -%}
    {%- set replaced = healing_tables._full_refresh(mistakes, target, existing,
        healing_tables._merged_columns(spec)) -%}
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

{#- The format of a new table. An existing table keeps its own, which the library looks up. -#}
{% macro _merge_format(mistakes, existing) -%}
    {%- set format = healing_tables._format() -%}
    {%- if format is none -%}
        {%- do healing_tables._check_choice(mistakes, 'file_format', config.get('file_format'),
            healing_tables._known_formats()) -%}
        {{- return(healing_tables._format('delta')) -}}
    {%- endif -%}
    {%- set is_known = config.get('file_format') is not none or existing is none -%}
    {%- do format.check_session(mistakes, healing_tables._session_settings()) if is_known and not mistakes -%}
    {%- do healing_tables._check_key_buckets(mistakes, format) if is_known -%}
    {%- do healing_tables._check_cluster_by(mistakes, format) if is_known -%}
    {{- return(format) -}}
{%- endmacro %}

{#- The format of the log. Without file_format, the format of the model is Delta even if the session does not support
    Delta; the log is then stored in parquet. -#}
{% macro _merge_log_format() -%}
    {%- set format, mistakes = healing_tables._side_table_format(), [] -%}
    {%- do format.check_session(mistakes, healing_tables._session_settings()) -%}
    {{- return('parquet' if mistakes else format.name) -}}
{%- endmacro %}

{#- Whether a merge can run: the adapter knows if the plugin of the pip library has extended it. -#}
{% macro _check_can_merge(mistakes) -%}
    {%- set obstacle = none -%}
    {%- if adapter.healing_tables_obstacle is defined -%}
        {%- set obstacle = adapter.healing_tables_obstacle(config.get('submission_method')) -%}
    {%- else -%}
        {%- set obstacle = {
            'wanted': 'dbt-spark with the Python library of this package',
            'got': 'dbt v2, which has no plugins' if healing_tables._is_dbt_v2()
                else 'the adapter ' ~ adapter.type() ~ ' without it',
            'remedy': 'run this model with dbt-core 1.x' if healing_tables._is_dbt_v2()
                else healing_tables._platform().merge_remedy} -%}
    {%- endif -%}
    {%- if obstacle is not none -%}
        {%- do healing_tables._mistake(
            mistakes, "materialized='healing_merge'", obstacle.wanted, obstacle.got, obstacle.remedy
            ~ '; or append the batches to a log and heal a healing_table from it: docs/install.md') -%}
    {%- endif -%}
{%- endmacro %}

{#- The options that are set, in meta.healing_tables or else in vars.healing_tables: none is a value. -#}
{% macro _merge_spec(mistakes, target) -%}
    {%- do healing_tables._check_model_options(mistakes) -%}
    {%- set meta = healing_tables._model_options() -%}
    {%- set project = healing_tables._project_options() -%}
    {%- set options = healing_tables._known_options('healing_merge')
        | reject('in', ['at', 'key_buckets', 'allow_full_refresh', 'log_schema']) -%}
    {%- set spec = {} -%}
    {%- for name in options if name in meta or name in project -%}
        {%- set value = meta[name] if name in meta else project[name] -%}
        {#- YAML reads unquoted moments as dates -#}
        {%- do spec.update({name: value | string if value.isoformat is defined else value}) -%}
    {%- endfor -%}
    {#- a variable of the run overrides the guard, as for a rebuild -#}
    {%- if var('max_removed_keys_ratio', none) is not none -%}
        {%- do spec.update({'max_removed_keys_ratio': var('max_removed_keys_ratio')}) -%}
    {%- endif -%}
    {%- do healing_tables._set_side_table_locations(spec, target) -%}
    {%- if not healing_tables._as_list(spec.key_columns) -%}
        {%- do spec.update({'key_columns': healing_tables._unique_key()}) -%}
    {%- endif -%}
    {%- if not spec.key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'unique_key', 'the key columns of the dimension', 'none', 'set unique_key in config()') -%}
    {%- endif -%}
    {#- ignore is dbt's default -#}
    {%- if config.get('on_schema_change') not in [none, 'ignore'] -%}
        {%- do spec.update({'on_schema_change': config.get('on_schema_change')}) -%}
    {%- endif -%}
    {{- return(spec) -}}
{%- endmacro %}

{#- The location of the tables beside a dimension: in `log_schema`, or else in its schema. -#}
{% macro _side_table_location(target) -%}
    {{- return(target.incorporate(path={'schema': healing_tables._option('log_schema', none) or target.schema})) -}}
{%- endmacro %}

{#- Put change log, history and audit tables that are named without a schema into the schema of the side tables. -#}
{% macro _set_side_table_locations(spec, target) -%}
    {%- set place = healing_tables._side_table_location(target) -%}
    {%- set moves = place.schema != target.schema -%}
    {%- if spec.change_log is string and '.' not in spec.change_log -%}
        {%- do spec.update({'change_log': place.incorporate(path={'identifier': spec.change_log}) | string}) -%}
    {%- endif -%}
    {%- set history = spec.history or (target.identifier ~ '_history' if moves) -%}
    {%- if history is string and '.' not in history -%}
        {%- do spec.update({'history': place.incorporate(path={'identifier': history}) | string}) -%}
    {%- endif -%}
    {%- if spec.audit is mapping -%}
        {%- set name = spec.audit.get('table') or (target.identifier ~ '_audit' if moves) -%}
        {%- if name is string and '.' not in name -%}
            {%- do spec.update({'audit': dict(spec.audit, table=place.incorporate(path={'identifier': name})
                | string)}) -%}
        {%- endif -%}
    {%- endif -%}
{%- endmacro %}

{#- Columns that identify a table as the dimension of this model. -#}
{% macro _merged_columns(spec) -%}
    {%- set types = [] -%}
    {%- set attributes = spec.get('attributes') if spec.get('attributes') is mapping else {} -%}
    {%- for type in attributes.values() -%}
        {%- do types.append(type.get('scd_type') if type is mapping else type) -%}
    {%- endfor -%}
    {%- set names = spec.get('column_names') if spec.get('column_names') is mapping else {} -%}
    {%- set start = names.get('valid_from', 'valid_from') if 4 not in types else none -%}
    {{- return(healing_tables._as_list(spec.key_columns) + ([start] if start is string else [])) -}}
{%- endmacro %}
