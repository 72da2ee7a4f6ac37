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
    {%- set about = healing_tables._capture_about(target, existing) -%}
    {%- set is_new = existing is none or about.replaced is not none -%}

    {{ run_hooks(pre_hooks) }}

    {%- set ended = [] -%}
    {%- for attempt in range(1, healing_tables._attempts() + 1) if not ended -%}
        {%- do ended.append(true) if healing_tables._attempt_capture(target, existing, sql, about, attempt) -%}
    {%- endfor -%}

    {%- do apply_grants(target, config.get('grants'), should_revoke(existing, full_refresh_mode=is_new)) -%}
    {%- do healing_tables._set_properties(target) -%}
    {%- do healing_tables._set_comments(target) -%}

    {{ run_hooks(post_hooks) }}

    {{ return({'relations': [target]}) }}
{% endmaterialization %}

{#- One attempt: whether it has ended without another capture in between. -#}
{% macro _attempt_capture(target, existing, sql, about, attempt) -%}
    {%- set candidate = healing_tables._candidate(target) -%}
    {%- do about.update({'build': healing_tables._begin_other(target, 'capture', existing if attempt == 1 else target)}) -%}
    {%- set log_table = target if attempt > 1 else none if about.replaced is not none else existing -%}
    {#- before the source is read: two runs that overlap must not both append -#}
    {%- set at = healing_tables._capture_moment(about, log_table) -%}
    {%- call statement('candidate') -%}
        {{ healing_tables._create_candidate(candidate, none, sql) }}
    {%- endcall -%}
    {%- do about.update(healing_tables._capture_columns(target, candidate, about, log_table)) -%}
    {%- do healing_tables._check_captured_keys(target, candidate, about) -%}
    {%- set figures = healing_tables._capture_figures(target, candidate, about, log_table) -%}
    {%- do healing_tables._move_away(about.replaced) if attempt == 1 -%}
    {%- do healing_tables._prepare_log(target, candidate, about, log_table) -%}
    {%- if figures.appended == 0 -%}
        {%- call noop_statement('main', 'unchanged') -%} {%- endcall -%}
    {%- else -%}
        {%- set others = healing_tables._run_unless_overtaken('main', healing_tables._append_news(target, candidate, about, at)) -%}
        {%- set is_appended = not others and run_query('select 1 from ' ~ target ~ ' where ' ~ healing_tables._id(about.captured_at)
            ~ ' = timestamp_micros(' ~ at.moment ~ ') limit 1').rows | length > 0 -%}
        {%- set others = others or ([] if is_appended else ['another capture']) -%}
        {%- if others -%}
            {%- do healing_tables._lost_race(target, candidate, about, attempt, others) -%}
            {{- return(false) -}}
        {%- endif -%}
    {%- endif -%}
    {%- do healing_tables._drop_replaced(target, about.replaced) -%}
    {%- do healing_tables._after_capture(target, candidate, about, figures, at) -%}
    {{- return(true) -}}
{%- endmacro %}

{#- The options, checked, and what stands at the target's name. -#}
{% macro _capture_about(target, existing) -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._check_model_options(mistakes) -%}
    {%- do healing_tables._check_delta(mistakes) -%}
    {%- set about = {
        'key_columns': healing_tables._list(healing_tables._option('key_columns', none)) or healing_tables._unique_key(),
        'captured_at': healing_tables._option('captured_at', none, 'captured_at'),
        'deleted': healing_tables._option('deleted', none, 'is_deleted'),
        'on_absence': healing_tables._option('on_absence', none, 'delete'),
        'ratios': healing_tables._removal_ratios(mistakes)} -%}
    {%- do healing_tables._warn_of_kept(target) if existing is none -%}
    {%- do about.update({'replaced': healing_tables._full_refresh(
        mistakes, target, existing, about.key_columns + [about.captured_at, about.deleted])}) -%}
    {%- if not about.key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'unique_key', 'the key columns of the source', 'none', 'set unique_key in config()') -%}
    {%- endif -%}
    {%- if about.on_absence not in ['delete', 'ignore'] -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_absence', 'one of delete, ignore', about.on_absence, 'delete: the select holds every row; ignore: only some') -%}
    {%- endif -%}
    {%- if healing_tables._file_format() != 'delta' -%}
        {%- do healing_tables._mistake(
            mistakes, 'file_format', 'delta, since a run is one commit', healing_tables._file_format(), 'set file_format: delta') -%}
    {%- endif -%}
    {%- if config.get('contract').enforced -%}
        {%- do healing_tables._mistake(
            mistakes, 'contract.enforced', 'no contract: the table has more columns than the select', 'true',
            'leave it out; on_schema_change: fail keeps the columns as they are') -%}
    {%- endif -%}
    {#- ignore is what dbt puts there where nothing is set -#}
    {%- if config.get('on_schema_change') not in [none, 'ignore', 'append_new_columns', 'fail'] -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_schema_change', 'append_new_columns or fail: a log loses no column', config.get('on_schema_change'), 'choose one of them') -%}
    {%- endif -%}
    {%- if existing is not none and about.replaced is none -%}
        {%- set columns = healing_tables._columns_of(existing) if healing_tables._details(existing).get('provider') == 'delta' else {} -%}
        {%- if healing_tables._type_in(columns, about.captured_at) != 'timestamp' or healing_tables._type_in(columns, about.deleted) != 'boolean' -%}
            {%- do healing_tables._mistake(
                mistakes, 'the table ' ~ target, 'a log that capture has made: a Delta table with ' ~ about.captured_at ~ ' (timestamp) and '
                ~ about.deleted ~ ' (boolean)', 'a ' ~ existing.type ~ (' with ' ~ (columns | join(', ')) if columns else ' that is not Delta'),
                'give the model another name, or move what stands there away') -%}
        {%- endif -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('capture', mistakes) -%}
    {{- return(about) -}}
{%- endmacro %}

{#-
    The moment of this capture and the newest one in the log, in microseconds. It is the clock of the warehouse, read
    before the source is. A log that is ahead of it would take this run's rows for old ones.
-#}
{% macro _capture_moment(about, log_table) -%}
    {%- set row = run_query(
        'select unix_micros(now()) as moment, '
        ~ ('max(unix_micros(' ~ healing_tables._id(about.captured_at) ~ ')) as newest from ' ~ log_table if log_table is not none
           else 'cast(null as bigint) as newest')).rows[0] -%}
    {%- set at = {'moment': row['moment'] | int, 'newest': row['newest'] | int if row['newest'] is not none else none} -%}
    {%- if at.newest is not none and at.newest >= at.moment -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, about.captured_at, 'a moment after the newest one in the log, ' ~ healing_tables._instant_text(at.newest),
            healing_tables._instant_text(at.moment) ~ ', the clock of the warehouse',
            'set the clock right or wait until it is past that moment; if the log holds a wrong moment, correct it there') -%}
        {%- do healing_tables._raise_mistakes('capture', mistakes) -%}
    {%- endif -%}
    {{- return(at) -}}
{%- endmacro %}

{#- A log that is not there yet is made empty, so that rows always come by the same statement; new columns are added. -#}
{% macro _prepare_log(target, candidate, about, log_table) -%}
    {%- set generated = ', timestamp_micros(0) as ' ~ healing_tables._id(about.captured_at) ~ ', false as ' ~ healing_tables._id(about.deleted) -%}
    {%- if log_table is none -%}
        {%- do run_query(healing_tables._create_table(
            target, 'select *' ~ generated ~ ' from ' ~ candidate ~ ' where false', none, true,
            {'delta.isolationLevel': 'Serializable'}, replace=false)) -%}
    {%- elif about.come -%}
        {%- set added = [] -%}
        {%- for name in about.come -%} {%- do added.append(healing_tables._id(name) ~ ' ' ~ about.columns[name]) -%} {%- endfor -%}
        {%- if healing_tables._needs_mapping(about.come) -%}
            {%- do run_query('alter table ' ~ target ~ " set tblproperties ('delta.columnMapping.mode' = 'name')") -%}
        {%- endif -%}
        {%- do run_query('alter table ' ~ target ~ ' add columns (' ~ (added | join(', ')) ~ ')') -%}
        {%- do healing_tables._progress(target, 'new columns: ' ~ (about.come | join(', ')) ~ '; rows from before have NULL') -%}
    {%- endif -%}
{%- endmacro %}

{#- What is left to do when the log is as it should be. -#}
{% macro _after_capture(target, candidate, about, figures, at) -%}
    {%- set told = figures.appeared ~ ' new, ' ~ figures.changed ~ ' changed, ' ~ figures.gone ~ ' gone' -%}
    {%- set version = healing_tables._newest_version(target) -%}
    {%- if figures.appended == 0 -%}
        {%- do healing_tables._progress(target, 'unchanged, nothing to append: ' ~ told) -%}
    {%- else -%}
        {%- do healing_tables._progress(
            target, 'appended in one commit, version ' ~ version ~ ', as of ' ~ healing_tables._instant_text(at.moment) ~ ': ' ~ told) -%}
    {%- endif -%}
    {%- do healing_tables._end_build(about, 'unchanged' if figures.appended == 0 else 'published', {
        'rows_added': figures.appended, 'rows_changed': 0, 'rows_removed': 0, 'keys_affected': figures.appended, 'version_after': version}) -%}
    {%- do run_query('drop table if exists ' ~ candidate) -%}
{%- endmacro %}
