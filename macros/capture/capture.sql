{#-
    Turn a source that only has its current state into a change log: each run appends the rows that are new, changed or
    gone since the last one. The log is only ever appended to.

    source  id | name      log  id | name | captured_at      | is_deleted
            1  | Ann   ->       1  | Ann  | 2024-01-01 02:00 | false         the first run
    then    1  | Bea   ->       1  | Bea  | 2024-01-02 02:00 | false         the second
    then    (empty)    ->       1  | Bea  | 2024-01-03 02:00 | true          the third
-#}
{% materialization capture, default, supported_languages=['sql'] %}
    {%- set target = this.incorporate(type='table') -%}
    {%- set existing = load_relation(this) -%}
    {%- set settings = healing_tables._capture_settings(target, existing) -%}
    {%- set is_new = existing is none or settings.replaced is not none -%}

    {{ run_hooks(pre_hooks) }}

    {%- set ended = [] -%}
    {%- for attempt in range(1, healing_tables._max_attempts() + 1) -%}
        {%- if not ended -%}
            {%- do ended.append(true) if healing_tables._attempt_capture(target, existing, sql, settings, attempt) -%}
        {%- endif -%}
    {%- endfor -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=is_new)) -%}
    {%- do healing_tables._set_properties(settings.format, target) -%}
    {%- do healing_tables._set_comments(target) -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}

{#- One attempt. Returns whether it finished without a concurrent capture. -#}
{% macro _attempt_capture(target, existing, sql, settings, attempt) -%}
    {%- set run = healing_tables._new_run(settings, settings.format, target, existing if attempt == 1 else target,
        'capture') -%}
    {%- set log_table = target if attempt > 1 else none if settings.replaced is not none else existing -%}
    {#- before the source is read: two runs that overlap must not both append -#}
    {%- set at = healing_tables._capture_moment(settings, log_table) -%}
    {%- set types, values = healing_tables._query_columns(sql), {} -%}
    {%- for name, type in types.items() -%}
        {%- do values.update({name: {'type': healing_tables._plain_type(type),
            'expression': healing_tables._normalized_value(healing_tables._quoted(name), type)}}) -%}
    {%- endfor -%}
    {%- set read = healing_tables._with_plain_text(healing_tables._batch_without_erased(target, sql, values,
        'unix_micros(now())'), types) -%}
    {%- do healing_tables._log_progress(target, 'computing the rows of the select') -%}
    {%- call statement('candidate') -%}
        {{ healing_tables._create_table(run.format, run.candidate_table, read.sql, read.columns, none) }}
    {%- endcall -%}
    {%- set columns = healing_tables._capture_columns(run, log_table) -%}
    {%- set set_aside = healing_tables._check_captured_keys(run) -%}
    {%- set changes = healing_tables._capture_changes(run.candidate_table, settings, columns, log_table) -%}
    {%- set figures = healing_tables._capture_figures(run, changes) -%}
    {%- do healing_tables._rename_to_backup(settings.replaced) if attempt == 1 -%}
    {%- do healing_tables._prepare_log(run, columns, log_table) -%}
    {%- if figures.appended == 0 -%}
        {%- call noop_statement('main', 'unchanged') -%} {%- endcall -%}
    {%- else -%}
        {%- set version = healing_tables._base_version(run.format, target) -%}
        {%- set conflicts = healing_tables._run_or_conflict(run, 'main', healing_tables._append_changes(
            run, columns, at, run.format.commits.begin(target, version)))
            or run.format.commits.end(target, version) -%}
        {%- set is_appended = not conflicts
            and run_query('select 1 from ' ~ target ~ ' where ' ~ healing_tables._quoted(settings.captured_at)
            ~ ' = timestamp_micros(' ~ at.moment ~ ') limit 1').rows | length > 0 -%}
        {%- set conflicts = conflicts or ([] if is_appended else ['another capture']) -%}
        {%- if conflicts -%}
            {%- do healing_tables._after_conflict(run, attempt, conflicts, healing_tables._captured_state(run)) -%}
            {{- return(false) -}}
        {%- endif -%}
    {%- endif -%}
    {%- do healing_tables._drop_backup(target, settings.replaced) -%}
    {%- do healing_tables._after_capture(run, figures, at, set_aside) -%}
    {{- return(true) -}}
{%- endmacro %}

{#- The select of a model as {sql, columns}, with text as the package reads it: a Delta table stores no collation, and
    has no MERGE into columns of a fixed length, which `describe query` shows as string. -#}
{% macro _with_plain_text(sql, columns) -%}
    {%- set selected, plain = [], {} -%}
    {%- for name, type in columns.items() -%}
        {%- set value = healing_tables._quoted(name) -%}
        {%- do plain.update({name: healing_tables._plain_type(type)}) -%}
        {%- do selected.append(('cast(' ~ value ~ ' as string)' if plain[name] == 'string'
            else healing_tables._normalized_value(value, type) if plain[name] != type else value) ~ ' as ' ~ value) -%}
    {%- endfor -%}
    {{- return({'columns': plain, 'sql': 'select ' ~ (selected | join(', ')) ~ '\nfrom (\n'
        ~ healing_tables._as_subquery(sql) ~ ')'}) -}}
{%- endmacro %}

{#-
    `settings` of a capture: key_columns, has_null_keys (NULL in one of several is a value), captured_at, deleted (names
    of columns), on_absence, within (columns for whose values the select is complete; none: for all), at (the moment of
    the extract, or none: now), ratios, format, session (see _session_settings), replaced (see _full_refresh). Raises
    mistakes, also if another table has the target's name.
-#}
{% macro _capture_settings(target, existing) -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._check_model_options(mistakes) -%}
    {%- set format = healing_tables._format() -%}
    {%- if format is none or not format.has_commits -%}
        {%- do healing_tables._mistake(
            mistakes, 'file_format', (healing_tables._formats_with('has_commits') | join(' or '))
            ~ ', since a run is one commit',
            config.get('file_format'), 'choose one of them') -%}
        {%- set format = healing_tables._format('delta') -%}
    {%- endif -%}
    {%- set session = healing_tables._session_settings() -%}
    {%- do format.check_session(mistakes, session) if not mistakes -%}
    {%- do healing_tables._check_cluster_by(mistakes, format) -%}
    {%- set on_absence = healing_tables._option('on_absence', none, 'delete') -%}
    {#- a partial run reads only some rows: keys without a row were not deleted -#}
    {%- set null_keys = healing_tables._option('null_keys', none, 'set_aside') -%}
    {%- do healing_tables._check_choice(mistakes, 'null_keys', null_keys, ['set_aside', 'keep']) -%}
    {%- set settings = {
        'key_columns': healing_tables._as_list(healing_tables._option('key_columns', none))
        or healing_tables._unique_key(),
        'captured_at': healing_tables._option('captured_at', none, 'captured_at'),
        'deleted': healing_tables._option('deleted', none, 'is_deleted'),
        'on_absence': 'ignore' if healing_tables._is_partial_run() else on_absence,
        'within': healing_tables._as_list(healing_tables._option('within', none)),
        'at': healing_tables._option('at', none),
        'ratios': healing_tables._removal_ratios(mistakes), 'format': format, 'session': session} -%}
    {%- do healing_tables._warn_about_backups(target, healing_tables._tables_beside(target)) if existing is none -%}
    {%- do settings.update({'has_null_keys': healing_tables._has_null_keys(null_keys, settings.key_columns)}) -%}
    {%- set replaced = healing_tables._full_refresh(
        mistakes, target, existing, settings.key_columns + [settings.captured_at, settings.deleted]) -%}
    {%- if not settings.key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'unique_key', 'the key columns of the source', 'none', 'set unique_key in config()') -%}
    {%- endif -%}
    {%- do healing_tables._check_moment(mistakes, 'at', settings.at) if settings.at is not none -%}
    {%- if on_absence not in ['delete', 'ignore'] -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_absence', 'one of delete, ignore', on_absence,
            healing_tables._did_you_mean(on_absence, ['delete', 'ignore'])
            or 'delete: the select returns every row; ignore: only some') -%}
    {%- endif -%}
    {%- do healing_tables._mistake(mistakes, 'within', 'a select in which an absent key was deleted',
        'on_absence: ignore', 'remove one of the two') if settings.within and on_absence == 'ignore' -%}
    {%- if config.get('contract').enforced -%}
        {%- do healing_tables._mistake(
            mistakes, 'contract.enforced', 'no contract: the table has more columns than the select', 'true',
            'leave it out; on_schema_change: fail keeps the columns as they are') -%}
    {%- endif -%}
    {#- ignore is dbt's default -#}
    {%- if config.get('on_schema_change') not in [none, 'ignore', 'append_new_columns', 'fail'] -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_schema_change', 'append_new_columns or fail: no column of a log is removed',
            config.get('on_schema_change'), healing_tables._did_you_mean(config.get('on_schema_change'),
                ['append_new_columns', 'fail']) or 'choose one of them') -%}
    {%- endif -%}
    {%- do healing_tables._check_is_log(mistakes, target, existing, settings) if existing is not none
        and replaced is none -%}
    {%- do healing_tables._raise_mistakes('capture', mistakes) -%}
    {{- return(dict(settings, replaced=replaced)) -}}
{%- endmacro %}

{#- An existing table with the target's name must be a log that capture has created. -#}
{% macro _check_is_log(mistakes, target, existing, settings) -%}
    {%- set columns = healing_tables._columns_of(existing)
        if healing_tables._table_details(existing).get('provider') == settings.format.name else {} -%}
    {%- if healing_tables._type_of_column(columns, settings.captured_at) != 'timestamp'
        or healing_tables._type_of_column(columns, settings.deleted) != 'boolean' -%}
        {%- do healing_tables._mistake(
            mistakes, 'the table ' ~ target, 'a log that capture has created: a ' ~ settings.format.name
            ~ ' table with ' ~ settings.captured_at
            ~ ' (timestamp) and '
            ~ settings.deleted ~ ' (boolean)', 'a ' ~ existing.type ~ (' with ' ~ (columns | join(', ')) if columns
                else ' that is not in ' ~ settings.format.name),
            'give the model another name, or rename the existing table') -%}
    {%- endif -%}
{%- endmacro %}

{#-
    The moment of this capture and the newest one in the log, in microseconds, and the number of rows in the log
    (`stored`). The moment is `at`, or the warehouse's clock, read before the source. If the log were ahead of it, this
    run's rows would look older than the stored ones. The number is right when the rows are appended, too: they are
    appended only if the newest moment is still the same.
-#}
{% macro _capture_moment(settings, log_table) -%}
    {%- set row = run_query(
        'select ' ~ ('unix_micros(now())' if settings.at is none else healing_tables._micros_constant(settings.at))
        ~ ' as moment, '
        ~ ('max(unix_micros(' ~ healing_tables._quoted(settings.captured_at) ~ ')) as newest, count(*) as stored from '
            ~ log_table if log_table is not none
           else 'cast(null as bigint) as newest, 0 as stored')).rows[0] -%}
    {%- set at = {'moment': row['moment'] | int, 'newest': row['newest'] | int if row['newest'] is not none
        else none, 'stored': row['stored'] | int} -%}
    {%- if at.newest is not none and at.newest >= at.moment -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, settings.captured_at if settings.at is none else 'at',
            'a moment after the newest one in the log, ' ~ healing_tables._instant_text(at.newest),
            healing_tables._instant_text(at.moment) ~ (', the clock of the warehouse' if settings.at is none),
            ('set the clock right or wait until it is past that moment' if settings.at is none
                else 'capture the extracts in the order of their moments, each once')
            ~ '; if the log holds a wrong moment, correct it there') -%}
        {%- do healing_tables._raise_mistakes('capture', mistakes) -%}
    {%- endif -%}
    {{- return(at) -}}
{%- endmacro %}

{#- Create an empty log if there is none, so that the same statement always appends the rows; add new columns. -#}
{% macro _prepare_log(run, columns, log_table) -%}
    {%- set target = run.target -%}
    {%- set settings = run.settings -%}
    {%- if log_table is none -%}
        {%- do healing_tables._run(healing_tables._create_table(
            run.format, target, 'select *, timestamp_micros(0) as ' ~ healing_tables._quoted(settings.captured_at)
            ~ ', false as '
            ~ healing_tables._quoted(settings.deleted) ~ ' from ' ~ run.candidate_table ~ ' where false', columns.types,
            none, true,
            run.format.properties.change_log, replace=false)) -%}
        {%- do healing_tables._order_files(run.format, target, healing_tables._cluster_by_key(
            run.format, settings.key_columns, columns.types)) -%}
    {%- elif columns.added -%}
        {%- set added, types = [], {} -%}
        {%- for name in columns.added -%}
            {%- do types.update({name: columns.types[name]}) -%}
            {%- do added.append(healing_tables._quoted(name) ~ ' ' ~ types[name]) -%}
        {%- endfor -%}
        {%- set properties = run.format.properties.for_columns(types, false) -%}
        {%- do healing_tables._run('alter table ' ~ target ~ ' set ' ~ healing_tables._properties_clause(properties))
            if properties -%}
        {%- do healing_tables._run('alter table ' ~ target ~ ' add columns (' ~ (added | join(', ')) ~ ')') -%}
        {%- do healing_tables._log_progress(target, 'new columns: ' ~ (columns.added | join(', '))
            ~ '; existing rows have NULL in them') -%}
    {%- endif -%}
{%- endmacro %}

{#- Finish a capture whose rows are in the log. -#}
{% macro _after_capture(run, figures, at, set_aside) -%}
    {%- set summary = figures.appeared ~ ' new, ' ~ figures.changed ~ ' changed, ' ~ figures.ended_keys ~ ' gone' -%}
    {%- set version = run.format.commits.newest_version(run.target) -%}
    {%- if figures.appended == 0 -%}
        {%- do healing_tables._log_progress(run.target, 'unchanged, nothing to append: ' ~ summary) -%}
    {%- else -%}
        {%- do healing_tables._log_progress(
            run.target, 'appended in one commit, version ' ~ version ~ ', as of '
            ~ healing_tables._instant_text(at.moment) ~ ': ' ~ summary) -%}
    {%- endif -%}
    {%- do healing_tables._end_run(run, 'unchanged' if figures.appended == 0 else 'published', {
        'rows_added': figures.appended, 'rows_changed': 0, 'rows_removed': 0, 'rows_unchanged': at.stored,
        'keys_affected': figures.appended, 'rows_set_aside': set_aside, 'version_after': version}) -%}
    {%- do healing_tables._run('drop table if exists ' ~ run.candidate_table) -%}
{%- endmacro %}
