{#-
    Build a candidate, check it, compare it with what is stored, publish in one step. Until that step, and after any
    failure, readers see the target as it was; a candidate that is refused stays, under the name that the error gives.
-#}
{% materialization healing_table, default, supported_languages=['sql'] %}
    {%- set target = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {#- mistakes are raised before any hook runs -#}
    {%- set about = healing_tables._build_about(sql) -%}

    {{ run_hooks(pre_hooks) }}

    {%- set ended = [] -%}
    {%- for attempt in range(1, healing_tables._attempts() + 1) if not ended -%}
        {%- set change = healing_tables._attempt_build(target, existing, sql, about if attempt == 1 else healing_tables._build_about(sql), attempt) -%}
        {%- do ended.append(change) if change is not none -%}
    {%- endfor -%}
    {%- set change = ended[0] -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=true)) -%}
    {%- do healing_tables._set_properties(target, healing_tables._stored_spec(about)) -%}
    {%- if healing_tables._file_format() == 'delta' -%}
        {%- do healing_tables._set_comments(target) -%}
    {%- endif -%}
    {%- if change.how == 'overwrite' -%} {%- do persist_constraints(target, model) -%} {%- endif -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}

{#-
    One attempt: candidate, checks, comparison, publication. What was done, or none where another writer has changed the
    target meanwhile: then the next attempt begins from what is stored now.
-#}
{% macro _attempt_build(target, first_existing, sql, about, attempt) -%}
    {%- set candidate = healing_tables._candidate(target) -%}
    {#- dbt remembers the tables of the beginning -#}
    {%- set existing = first_existing if attempt == 1 else target if healing_tables._is_there(target) else none -%}
    {%- set folder = healing_tables._new_folder(target) -%}
    {%- set stored = healing_tables._details(existing) -%}
    {%- set build = healing_tables._begin_build(target, candidate, about, sql, existing, stored) -%}
    {%- do about.update({'build': build}) -%}
    {%- do healing_tables._check_other_table(target, about, existing, stored) -%}
    {%- set sequence = healing_tables._sequence(target, about, existing, stored) -%}
    {%- set change = healing_tables._build(target, candidate, folder, sql, about, existing, stored, sequence) -%}
    {%- set others = healing_tables._other_writes(target, about.build, existing, stored, 0) -%}
    {%- set is_published = [] -%}
    {%- if not others and change.how == 'unchanged' -%}
        {%- call noop_statement('main', 'unchanged') -%} {%- endcall -%}
    {%- elif not others -%}
        {%- set others = healing_tables._run_unless_overtaken('keys', healing_tables._record_keys(candidate, about, sequence))
            or healing_tables._lost_numbers(candidate, about, sequence)
            or healing_tables._run_unless_overtaken('main', healing_tables._publish(target, candidate, folder, about, existing, stored, change)) -%}
        {%- if not others -%}
            {%- do is_published.append(true) -%}
            {%- set others = healing_tables._other_writes(target, about.build, existing, stored, 1) -%}
        {%- endif -%}
    {%- endif -%}
    {%- if others -%}
        {%- do healing_tables._lost_race(target, candidate, about, attempt, others, is_published) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._after_publish(target, candidate, folder, about, existing, stored, change) -%}
    {{- return(change) -}}
{%- endmacro %}

{#- What the build knows of its columns: from the comment that dimension() leaves, else from the configuration. -#}
{% macro _build_about(sql) -%}
    {%- set mistakes = [] -%}
    {%- set spec = healing_tables._read_spec_comment(sql) -%}
    {%- do healing_tables._check_model_options(mistakes) -%}
    {%- if spec is none -%}
        {%- set names = healing_tables._generated_names(mistakes, healing_tables._option('column_names', none, {})) -%}
        {%- set spec = {
            'key_columns': healing_tables._list(healing_tables._option('key_columns', none)) or healing_tables._unique_key(),
            'names': names, 'versioned': healing_tables._list(healing_tables._option('tracked_columns', none, [names.row_hash])),
            'valid_to_current': healing_tables._valid_to_current(),
            'current_value': healing_tables._option('current_values', none, [true, false])[0],
            'sequence': healing_tables._sequence_name(healing_tables._surrogate_key(mistakes, healing_tables._option('surrogate_key', none))),
            'can_delete': true, 'has_gaps': true, 'sources': []} -%}
    {%- endif -%}
    {%- if not spec.key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'unique_key', 'the key columns of the dimension', 'none', 'set unique_key in config()') -%}
    {%- endif -%}
    {%- if healing_tables._file_format() not in ['delta', 'parquet', 'orc'] -%}
        {%- do healing_tables._mistake(
            mistakes, 'file_format', 'delta, parquet or orc', healing_tables._file_format(), 'choose one of them') -%}
    {%- endif -%}
    {%- do healing_tables._check_delta(mistakes) if healing_tables._has_commits() -%}
    {%- set changes = ['ignore', 'append_new_columns', 'sync_all_columns', 'fail'] -%}
    {%- if (config.get('on_schema_change') or 'ignore') not in changes -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_schema_change', changes | join(' or '), config.get('on_schema_change'), 'choose one of them') -%}
    {%- endif -%}
    {%- do spec.update({'ratios': healing_tables._removal_ratios(mistakes)}) -%}
    {%- do healing_tables._overlap(mistakes) -%}
    {%- for option, values in {'publish': ['auto', 'merge', 'overwrite'], 'mode': ['rebuild', 'heal']}.items() -%}
        {%- do spec.update({option: healing_tables._option(option, none, values[0])}) -%}
        {%- if spec[option] not in values -%}
            {%- do healing_tables._mistake(mistakes, option, values | join(' or '), spec[option], 'choose one of them') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- set defaults = healing_tables._default_checks(spec.can_delete, spec.has_gaps, spec.versioned | select | list | length > 0) -%}
    {%- set bounded = spec.names.valid_from is not none and spec.names.valid_to is not none -%}
    {%- do spec.update({
        'relation': none, 'valid_from': spec.names.valid_from, 'valid_to': spec.names.valid_to,
        'is_current': spec.names.is_current, 'tracked': spec.versioned,
        'checks': healing_tables._wanted_checks('healing_table', healing_tables._option('checks', none, {}), defaults)
            if bounded else {}}) -%}
    {{- return(spec) -}}
{%- endmacro %}

{% macro _progress(target, text) -%}
    {%- do log(config.get('materialized') ~ ' ' ~ target ~ ': ' ~ text, info=true) -%}
{%- endmacro %}

{% macro _seconds(delta) -%}
    {{- return('%.1f s' | format(delta.total_seconds())) -}}
{%- endmacro %}
