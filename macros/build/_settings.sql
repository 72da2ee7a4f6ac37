{#-
    `settings`: what a build knows before it reads any table, from the call in the model's SQL, or else from its
    configuration. They do not change while the build runs.

    call, metadata     see _call.sql; call is none, and metadata.scans empty, if the model does not call
                       dimension()
    format             see _format.sql
    publish, mode, shards   the options
    session            see _session_settings()
    audit              the option, or none
    ratios             {max_removed_keys_ratio, max_removed_versions_ratio}
    key_columns, valid_from, valid_to, is_current, current_value, valid_to_current, tracked, checks
                       as in a check_request; valid_from and valid_to are none if they are left out
    sequence           the column of integer keys, or none
    property           the description stored in the table: see _check_property
-#}
{% macro _build_settings(sql, mistakes=[], session={}) -%}
    {%- set call = healing_tables._parse_call(sql) -%}
    {%- do healing_tables._check_model_options(mistakes) -%}
    {%- set metadata = healing_tables._configured_metadata(mistakes) if call is none else call.metadata -%}
    {%- if not metadata.key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'unique_key', 'the key columns of the dimension', 'none', 'set unique_key in config()') -%}
    {%- endif -%}
    {%- do healing_tables._check_choice(mistakes, 'on_schema_change', config.get('on_schema_change') or 'ignore',
        ['ignore', 'append_new_columns', 'sync_all_columns', 'fail']) -%}
    {%- do healing_tables._overlap_seconds(mistakes) -%}
    {%- set chosen = {} -%}
    {%- for option, values in {'publish': ['auto', 'merge', 'overwrite'], 'mode': ['rebuild', 'heal']}.items() -%}
        {%- do chosen.update({option: healing_tables._option(option, none, values[0])}) -%}
        {%- do healing_tables._check_choice(mistakes, option, chosen[option], values) -%}
    {%- endfor -%}
    {%- do chosen.update({'shards': healing_tables._checked_shards(mistakes, call, metadata)}) -%}
    {%- set ratios = healing_tables._removal_ratios(mistakes) -%}
    {%- set is_bounded = metadata.names.valid_from is not none and metadata.names.valid_to is not none -%}
    {%- set defaults = healing_tables._default_checks(
        metadata.can_delete, metadata.has_gaps, metadata.versioned | select | list | length > 0) -%}
    {%- set given = healing_tables._option('checks', none, {}) -%}
    {%- set checks = healing_tables._configured_checks(mistakes, given, defaults) -%}
    {%- for name, arguments in (given.items() if given is mapping and not is_bounded else []) if arguments -%}
        {%- do healing_tables._mistake(mistakes, 'checks.' ~ name, 'a dimension with valid_from and valid_to',
            'one that leaves them out', 'remove it, or keep both columns (column_names)') -%}
    {%- endfor -%}
    {%- set audit = healing_tables._checked_audit(mistakes, healing_tables._format()) -%}
    {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- set settings = dict(
        chosen, audit=audit, session=session, call=call, metadata=metadata, format=healing_tables._format(),
        ratios=ratios,
        key_columns=metadata.key_columns,
        valid_from=metadata.names.valid_from, valid_to=metadata.names.valid_to, is_current=metadata.names.is_current,
        current_value=metadata.current_value, valid_to_current=metadata.valid_to_current, tracked=metadata.versioned,
        sequence=metadata.get('sequence'), checks=checks if is_bounded else {}) -%}
    {{- return(dict(settings, property=healing_tables._check_property(settings))) -}}
{%- endmacro %}

{#- Mistakes in the format, or in the session that writes it. -#}
{% macro _mistakes_of_format(session) -%}
    {%- set mistakes = [] -%}
    {%- set format = healing_tables._format() -%}
    {%- if format is none -%}
        {%- do healing_tables._check_choice(mistakes, 'file_format', config.get('file_format'),
            healing_tables._known_formats()) -%}
    {%- else -%}
        {%- do format.check_session(mistakes, session) -%}
        {%- do healing_tables._check_key_buckets(mistakes, format) -%}
        {%- do healing_tables._check_cluster_by(mistakes, format) -%}
    {%- endif -%}
    {{- return(mistakes) -}}
{%- endmacro %}

{#- Check the option `shards`, and whether the model can be built in shards. Returns 1 if there is a mistake. -#}
{% macro _checked_shards(mistakes, call, metadata) -%}
    {%- set shards = healing_tables._option('shards', none, 1) -%}
    {%- if shards is not integer or shards is boolean or shards < 1 or shards > 1024 -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'a whole number from 1 to 1024', healing_tables._display_value(shards),
            'choose in how many statements the dimension is built, e.g. 16; 1 is all at once') -%}
        {{- return(1) -}}
    {%- elif shards == 1 -%} {{ return(1) }}
    {%- endif -%}
    {%- set format = healing_tables._format() -%}
    {%- set without = '; or leave shards out (shards: 1 in this model where the project sets it)' -%}
    {%- if format is not none and not format.can_shard -%}
        {%- set able = healing_tables._formats_with('can_shard') -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'a table in ' ~ (able | join(' or ')), format.name,
            'set file_format: ' ~ able[0] ~ without) -%}
    {%- endif -%}
    {%- if call is none or healing_tables._is_more_than_call(call) -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'a model that is a call of dimension(), so that keys can be built one by one',
            'a select without dimension()' if call is none else 'a model that does more than call dimension()',
            'put the rest into a model that reads the dimension' ~ without) -%}
        {{- return(1) -}}
    {%- endif -%}
    {%- if metadata.get('sequence') is not none -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'surrogate keys that are hashes, each computed from its own row',
            'integer keys (strategy: sequence), numbered over all new versions',
            'set surrogate_key.strategy: hash' ~ without) -%}
    {%- endif -%}
    {%- for key in metadata.key_columns if metadata.types.get(key) is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'shards', 'key columns with a known type, so that equal keys of all sources are in one shard',
            key ~ ', whose type is not known in a source that is a CTE or an ephemeral model',
            'name it in column_types, e.g. {' ~ key ~ ': bigint}' ~ without) -%}
    {%- endfor -%}
    {{- return(shards if not mistakes else 1) -}}
{%- endmacro %}
