{#-
    Compute the dimension, check it and compare it with the stored table in one pass, and publish it in one step. Until
    that step, and after any failure, readers see the previous state of the target.
-#}
{% materialization healing_table, default, supported_languages=['sql'] %}
    {%- set target = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {#- mistakes are raised before any hook runs -#}
    {%- set session = healing_tables._session_settings() -%}
    {%- set settings = healing_tables._build_settings(sql, healing_tables._mistakes_of_format(session), session) -%}

    {{ run_hooks(pre_hooks) }}

    {%- set published = [] -%}
    {%- for attempt in range(1, healing_tables._max_attempts() + 1) -%}
        {%- if not published -%}
            {#- dbt's cache has the tables that existed when the run started -#}
            {%- set found = existing if attempt == 1 else target if healing_tables._table_exists(target) else none -%}
            {%- set change = healing_tables._attempt_build(target, found, sql, settings, attempt) -%}
            {%- do published.append(change) if change is not none -%}
        {%- endif -%}
    {%- endfor -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=true)) -%}
    {#- a table that was created already has its properties -#}
    {%- do healing_tables._set_properties(settings.format, target, settings.property,
        published[0].properties) if not published[0].is_created or not settings.format.has_commits -%}
    {%- do healing_tables._set_comments(target) -%}
    {%- do persist_constraints(target, model) if published[0].is_created -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}

{#-
    One attempt: pass, checks, comparison, publication. Returns the published change [see _compare.sql], or none
    if another writer has changed the target in the meantime: the next attempt starts from the rows stored then.
-#}
{% macro _attempt_build(target, existing, sql, settings, attempt) -%}
    {%- set build = healing_tables._begin_build(target, existing, sql, settings, attempt) -%}
    {%- do healing_tables._check_foreign_table(build) -%}
    {%- set sequence = healing_tables._sequence(build) -%}
    {%- if build.log_row.mode == 'heal' and build.changed_key_count == 0 -%}
        {%- set change = healing_tables._no_change(build) -%}
    {%- else -%}
        {%- set change = healing_tables._compute_change(build, sequence) -%}
    {%- endif -%}
    {%- if change.how == 'unchanged' -%}
        {%- call noop_statement('main', 'unchanged') -%} {%- endcall -%}
        {%- do healing_tables._report_leftovers(build, healing_tables._tables_beside(target))
            if build.changes is not none -%}
        {%- do healing_tables._after_publish(build, change, build.log_row.version_before) -%}
        {{- return(dict(change, properties=build.stored.properties, is_created=false)) -}}
    {%- endif -%}
    {%- do healing_tables._compute_candidate_by_shard(build, change) -%}
    {#- a merge keeps rows that another writer has changed in the meantime; an overwrite would not -#}
    {%- set conflicts = (healing_tables._look_at_commits(build, 0, healing_tables._table_exists(target)).conflicts
            if change.how == 'overwrite' else [])
        or healing_tables._publish_numbers(build, sequence)
        or healing_tables._publish(build, change) -%}
    {%- if conflicts -%}
        {%- do healing_tables._after_conflict(build, attempt, conflicts) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set tables = healing_tables._tables_beside(target) -%}
    {%- set seen = healing_tables._look_at_commits(build, 1, target.identifier | lower in tables | map('lower')) -%}
    {%- if seen.conflicts -%}
        {%- do healing_tables._after_conflict(build, attempt, seen.conflicts, true) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._report_leftovers(build, tables) -%}
    {%- do healing_tables._after_publish(build, change, seen.version, seen.written_rows) -%}
    {{- return(dict(change, properties=none if build.is_created else build.stored.properties,
        is_created=build.is_created)) -}}
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
    {%- endif -%}
    {{- return(mistakes) -}}
{%- endmacro %}

{#-
    `settings`: what a build knows before it reads any table, from the call in the model's SQL, or else from its
    configuration. They do not change while the build runs.

    call, metadata     see _call.sql; call is none, and metadata.sources empty, if the model does not call
                       dimension()
    format             see _format.sql
    publish, mode, shards   the options
    session            see _session_settings()
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
    {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- set settings = dict(
        chosen, session=session, call=call, metadata=metadata, format=healing_tables._format(), ratios=ratios,
        key_columns=metadata.key_columns,
        valid_from=metadata.names.valid_from, valid_to=metadata.names.valid_to, is_current=metadata.names.is_current,
        current_value=metadata.current_value, valid_to_current=metadata.valid_to_current, tracked=metadata.versioned,
        sequence=metadata.get('sequence'), checks=checks if is_bounded else {}) -%}
    {{- return(dict(settings, property=healing_tables._check_property(settings))) -}}
{%- endmacro %}

{#- The metadata of a model that does not call dimension(). -#}
{% macro _configured_metadata(mistakes) -%}
    {%- set names = healing_tables._generated_names(mistakes, healing_tables._option('column_names', none, {})) -%}
    {%- set surrogate_key = healing_tables._surrogate_key(mistakes, healing_tables._option('surrogate_key', none)) -%}
    {{- return({
        'key_columns': healing_tables._as_list(healing_tables._option('key_columns', none))
        or healing_tables._unique_key(),
        'names': names, 'versioned': healing_tables._as_list(healing_tables._option('tracked_columns',
            none, [names.row_hash])),
        'valid_to_current': healing_tables._valid_to_current(),
        'current_value': healing_tables._option('current_values', none, [true, false])[0],
        'sequence': healing_tables._sequence_name(surrogate_key), 'can_delete': true, 'has_gaps': true,
        'sources': []}) -}}
{%- endmacro %}

{% macro _log_progress(target, text) -%}
    {%- do log(healing_tables._plain_names(config.get('materialized') ~ ' ' ~ target ~ ': ' ~ text), info=true) -%}
{%- endmacro %}

{% macro _display_seconds(delta) -%}
    {{- return('%.1f s' | format(delta.total_seconds())) -}}
{%- endmacro %}
