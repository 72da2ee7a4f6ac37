{#- The options of a merge, which both ways read: as a program of the library, and as SQL. -#}

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
    {%- do spec.update({'key_columns': healing_tables._as_list(spec.key_columns) or healing_tables._unique_key()}) -%}
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

{#- A table beside a dimension: as it is named, or else the dimension's name with a suffix; without a schema, it is
    there. -#}
{% macro _table_named_or_beside(target, named, suffix) -%}
    {{- return(healing_tables._table_named_or_in(healing_tables._side_table_location(target), named,
        target.identifier ~ suffix)) -}}
{%- endmacro %}

{% macro _table_named_or_in(place, named, default) -%}
    {%- set found = healing_tables._parse_relation_name(named) if named is string and '.' in named else none -%}
    {{- return((found or place.incorporate(path={'identifier': named if named is string else default})
        ).incorporate(type='table')) -}}
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

{#- The change log that the library keeps of a new dimension has its default name; in `log_schema` it must be named. -#}
{% macro _set_location_of_new_log(spec, target, format) -%}
    {%- set moves = healing_tables._side_table_location(target).schema != target.schema -%}
    {%- set is_kept = spec.get('changed_at') and spec.get('change_log') is none and spec.get('on_late') != 'set_aside'
        and (format.has_commits or 4 not in healing_tables._scd_types(spec)) -%}
    {%- if moves and is_kept -%}
        {%- do spec.update({'change_log': healing_tables._table_named_or_beside(target, none, '_changes') | string}) -%}
    {%- endif -%}
{%- endmacro %}

{#- The options that name a column with the cause of each row. -#}
{% macro _cause_options() -%} {{ return(['change_reason', 'change_source', 'correlation_id']) }} {%- endmacro %}

{#- The SCD types that the options name. -#}
{% macro _scd_types(spec) -%}
    {%- set types = [] -%}
    {%- set attributes = spec.get('attributes') if spec.get('attributes') is mapping else {} -%}
    {%- for type in attributes.values() -%}
        {%- do types.append(type.get('scd_type') if type is mapping else type) -%}
    {%- endfor -%}
    {{- return(types) -}}
{%- endmacro %}

{#- Columns that identify a table as the dimension of this model. -#}
{% macro _merged_columns(spec) -%}
    {%- set types = healing_tables._scd_types(spec) -%}
    {%- set names = spec.get('column_names') if spec.get('column_names') is mapping else {} -%}
    {%- set start = names.get('valid_from', 'valid_from') if 4 not in types else none -%}
    {{- return(healing_tables._as_list(spec.key_columns) + ([start] if start is string else [])) -}}
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

{% macro _check_contract_of_batch(mistakes) -%}
    {%- if config.get('contract').enforced -%}
        {%- do healing_tables._mistake(
            mistakes, 'contract.enforced', 'no contract: the model returns a batch, not the columns of the table',
            'true',
            'leave it out; on_schema_change: fail keeps the columns as they are') -%}
    {%- endif -%}
{%- endmacro %}
