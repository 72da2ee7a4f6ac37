{#-
    Build a candidate, check it, compare it with what is stored, publish in one step. Until that step, and after any
    failure, readers see the target as it was; a candidate that is refused stays, under the name that the error gives.
-#}
{% materialization healing_table, default, supported_languages=['sql'] %}
    {%- set target = this.incorporate(type='table') -%}
    {%- set about = healing_tables._build_about(sql) -%}
    {%- set candidate = healing_tables._candidate(target) -%}
    {%- set existing = load_relation(this) -%}

    {{ run_hooks(pre_hooks) }}

    {%- set started = modules.datetime.datetime.now() -%}
    {%- set folder = healing_tables._new_folder(target) -%}
    {%- set stored = healing_tables._details(existing) -%}
    {%- set sequence = healing_tables._sequence(about, existing, stored) -%}
    {%- call statement('candidate') -%}
        {{ healing_tables._create_candidate(candidate, folder, healing_tables._with_sequence(sql, about, sequence)) }}
    {%- endcall -%}
    {%- set built = modules.datetime.datetime.now() -%}
    {%- do healing_tables._check_candidate(target, candidate, about, built - started) -%}
    {%- do healing_tables._warn_of_rows(target, about) -%}

    {%- set rows = healing_tables._candidate_rows(candidate, about, sequence) -%}
    {%- set change = healing_tables._compare(target, candidate, rows, about, existing, stored) -%}
    {%- if change.how == 'unchanged' -%}
        {%- call noop_statement('main', 'unchanged') -%} {%- endcall -%}
    {%- else -%}
        {%- call statement('main') -%}
            {{ healing_tables._publish(target, candidate, rows, folder, existing, stored, change, sequence) }}
        {%- endcall -%}
    {%- endif -%}
    {%- do healing_tables._after_publish(target, candidate, folder, stored, change) -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=true)) -%}
    {%- if healing_tables._file_format() == 'delta' -%}
        {%- do healing_tables._set_properties(target) -%}
        {%- do healing_tables._set_comments(target) -%}
    {%- endif -%}
    {%- if change.how == 'overwrite' -%} {%- do persist_constraints(target, model) -%} {%- endif -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}

{#- What the build knows of its columns: from the comment that dimension() leaves, else from the configuration. -#}
{% macro _build_about(sql) -%}
    {%- set mistakes = [] -%}
    {%- set spec = healing_tables._read_spec_comment(sql) -%}
    {%- set options = [
        'key_columns', 'attributes', 'exists_in', 'column_names', 'valid_to_current', 'current_values',
        'valid_from_first', 'surrogate_key', 'column_types', 'on_tie', 'on_absence', 'checks', 'tracked_columns',
        'max_removed_keys_ratio', 'max_removed_versions_ratio', 'publish'] -%}
    {%- do healing_tables._check_options(mistakes, 'meta.healing_tables', healing_tables._meta(), options) -%}
    {%- if spec is none -%}
        {%- set names = healing_tables._generated_names(mistakes, healing_tables._option('column_names', none, {})) -%}
        {%- set spec = {
            'key_columns': healing_tables._list(healing_tables._option('key_columns', none)) or healing_tables._unique_key(),
            'names': names, 'versioned': healing_tables._list(healing_tables._option('tracked_columns', none, [names.row_hash])),
            'valid_to_current': healing_tables._option('valid_to_current', '(not given)', '9999-12-31 23:59:59'),
            'current_value': healing_tables._option('current_values', none, [true, false])[0],
            'sequence': healing_tables._sequence_name(healing_tables._surrogate_key(mistakes, healing_tables._option('surrogate_key', none))),
            'can_delete': true, 'has_gaps': true, 'sources': []} -%}
    {%- endif -%}
    {%- if not spec.key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'unique_key', 'the key columns of the dimension', 'none', 'set unique_key in config()') -%}
    {%- endif -%}
    {%- do spec.update({
        'ratios': healing_tables._removal_ratios(mistakes), 'publish': healing_tables._option('publish', none, 'auto')}) -%}
    {%- if spec.publish not in ['auto', 'merge', 'overwrite'] -%}
        {%- do healing_tables._mistake(mistakes, 'publish', 'auto, merge or overwrite', spec.publish, 'choose one of them') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- set defaults = {'single_current': {'at_most_one': spec.can_delete}, 'no_overlaps': {}, 'valid_order': {}} -%}
    {%- if spec.versioned | select | list -%} {%- do defaults.update({'no_consecutive_duplicates': {}}) -%} {%- endif -%}
    {%- if not spec.has_gaps -%} {%- do defaults.update({'no_gaps': {}}) -%} {%- endif -%}
    {%- set bounded = spec.names.valid_from is not none and spec.names.valid_to is not none -%}
    {%- do spec.update({
        'relation': none, 'valid_from': spec.names.valid_from, 'valid_to': spec.names.valid_to,
        'is_current': spec.names.is_current, 'tracked': spec.versioned,
        'checks': healing_tables._wanted_checks('healing_table', healing_tables._option('checks', none, {}), defaults)
            if bounded else {}}) -%}
    {{- return(spec) -}}
{%- endmacro %}

{#- A name of this run's own, next to the target. -#}
{% macro _candidate(target) -%}
    {{- return(api.Relation.create(
        database=target.database, schema=target.schema, type='table',
        identifier=target.identifier ~ '__candidate_' ~ invocation_id | replace('-', ''))) -}}
{%- endmacro %}

{#- The checks, in one scan of the candidate; all that fail are reported together. -#}
{% macro _check_candidate(target, candidate, about, seconds) -%}
    {%- if not about.checks -%}
        {%- do healing_tables._progress(target, 'not checked: valid_from or valid_to is left out, or every check is off') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do about.update({'relation': candidate | string}) -%}
    {%- do healing_tables._check_about_columns('healing_table', about, healing_tables._columns_of(candidate)) -%}
    {%- set started = modules.datetime.datetime.now() -%}
    {%- set summary = run_query(healing_tables._check_summary(about)).rows[0] -%}
    {%- do healing_tables._progress(
        target, 'candidate ' ~ candidate.identifier ~ ' has ' ~ summary['keys'] ~ ' keys and ' ~ summary['versions'] ~ ' versions (' ~ healing_tables._seconds(seconds) ~ ')') -%}
    {%- set failed = [] -%}
    {%- set failed_checks = [] -%}
    {%- for check in about.checks if summary[check] > 0 -%}
        {%- do failed_checks.append(check) -%}
        {%- do failed.append('  ' ~ check ~ ': ' ~ summary[check] ~ ' failing, in keys such as ' ~ summary[check ~ '_keys']) -%}
    {%- endfor -%}
    {%- if failed -%}
        {{- exceptions.raise_compiler_error(
            ['healing_table ' ~ target ~ ': ' ~ (failed | length) ~ ' of ' ~ (about.checks | length)
             ~ ' checks failed; the target is as it was.'] | join('') ~ '\n' ~ failed | join('\n')
            ~ '\n  wanted: no violation\n  got:    the candidate ' ~ candidate ~ ', kept so that you can look at it'
            ~ "\n  remedy: mend the sources or the model, or set meta.healing_tables.checks, e.g. {'" ~ failed_checks[0] ~ "': false}; then drop the candidate") -}}
    {%- endif -%}
    {%- do healing_tables._progress(
        target, 'passed ' ~ (about.checks | join(', ')) ~ ' (' ~ healing_tables._seconds(modules.datetime.datetime.now() - started) ~ ')') -%}
{%- endmacro %}

{#- Rows without a place and ties that were decided by value: nothing is left out or chosen in silence. -#}
{% macro _warn_of_rows(target, about) -%}
    {%- set queries = [] -%}
    {%- for source in about.sources -%}
        {%- do queries.append('select ' ~ healing_tables._text(source.name) ~ ' as source, (' ~ source.set_aside ~ ') as set_aside, '
            ~ ('(' ~ source.ties ~ ')' if source.ties else 'cast(0 as bigint)') ~ ' as ties') -%}
    {%- endfor -%}
    {%- if queries -%}
        {%- for row in run_query(queries | join(' union all ')).rows -%}
            {%- if row['set_aside'] > 0 -%}
                {%- do exceptions.warn(
                    target ~ ': ' ~ row['set_aside'] ~ ' rows of source ' ~ row['source'] ~ ' set aside (NULL key, NULL or endless moment, '
                    ~ 'or empty period); healing_tables.set_aside lists them') -%}
            {%- endif -%}
            {%- if row['ties'] > 0 -%}
                {%- do exceptions.warn(
                    target ~ ': ' ~ row['ties'] ~ ' ties in source ' ~ row['source'] ~ ' resolved by on_tie: greatest') -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{% macro _progress(target, text) -%}
    {%- do log('healing_table ' ~ target ~ ': ' ~ text, info=true) -%}
{%- endmacro %}

{% macro _seconds(delta) -%}
    {{- return('%.1f s' | format(delta.total_seconds())) -}}
{%- endmacro %}
