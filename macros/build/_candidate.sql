{#- The candidate of a build: written next to the target, checked in one scan, its left-out rows reported. -#}

{#-
    The candidate, checked and compared: the change to publish [see _compare_with_stored]. A heal that cannot be merged
    into what is stored, for instance since a column has another type now, becomes a rebuild.
-#}
{% macro _build_candidate(build, sequence) -%}
    {%- set is_heal = build.log_row.mode == 'heal' -%}
    {%- if is_heal and build.changed_key_count == 0 -%}
        {%- set rows = run_query('select count(*) as n from ' ~ build.existing).rows[0]['n'] | int -%}
        {{- return({'how': 'unchanged', 'summary': 'no key has changed', 'log_row': {
            'rows_added': 0, 'rows_changed': 0, 'rows_removed': 0, 'rows_unchanged': rows}}) -}}
    {%- endif -%}
    {%- set query = build.sql if build.changed_keys is none
        else healing_tables._with_changed_keys(build.sql, build.settings.call, build.changed_keys) -%}
    {%- set started = healing_tables._utc_now() -%}
    {%- call statement('candidate') -%}
        {{ healing_tables._create_candidate(build, healing_tables._add_sequence(query, build, sequence)) }}
    {%- endcall -%}
    {%- set duration = healing_tables._utc_now() - started -%}
    {#- before the checks: a build that they refuse reports these rows too -#}
    {%- do healing_tables._warn_about_rows(build) if not is_heal -%}
    {%- do healing_tables._check_partitions(build) -%}
    {%- do healing_tables._check_candidate(build, duration) -%}
    {#- the constraints of a contract too hold before anything is published -#}
    {%- do persist_constraints(build.candidate, model) -%}
    {%- set change = healing_tables._compare_with_stored(build) -%}
    {%- if is_heal and change.how == 'overwrite' -%}
        {%- do healing_tables._rebuild_instead(build, change.obstacle) -%}
        {{- return(healing_tables._build_candidate(build, sequence)) -}}
    {%- endif -%}
    {{- return(change) -}}
{%- endmacro %}

{% macro _create_candidate(build, sql) -%}
    {%- if build.get('location') and config.get('partition_by') is not none -%}
        {#- partitions kept in the metastore would stay behind when the table moves to another folder; not set back,
            since other threads of this session may be at the same point -#}
        {%- do healing_tables._set_session_conf('spark.sql.hive.manageFilesourcePartitions', 'false') -%}
    {%- endif -%}
    {%- set query = sql -%}
    {%- if config.get('contract').enforced -%}
        {%- do get_assert_columns_equivalent(sql) -%}
        {%- set query = get_select_subquery(sql) -%}
    {%- endif -%}
    {{ healing_tables._create_table(build.format, build.candidate, query, build.get('location')) }}
{%- endmacro %}

{#-
    Columns that a partition does not keep as they are. Its values are texts in the names of folders: of a timestamp in
    the session's time zone, and an empty text is read as NULL, so that each build would find a difference.
-#}
{% macro _check_partitions(build) -%}
    {%- set columns = healing_tables._as_list(config.get('partition_by')) -%}
    {%- if not columns -%} {{ return(none) }} {%- endif -%}
    {%- set types = healing_tables._columns_of(build.candidate) -%}
    {%- set mistakes = [] -%}
    {%- set empty = {} -%}
    {%- for column in columns -%}
        {%- set type = healing_tables._type_of_column(types, column) -%}
        {%- if type == 'timestamp' -%}
            {%- do healing_tables._mistake(
                mistakes, 'partition_by', 'columns that a partition keeps as they are',
                column ~ ', a timestamp: its text follows the time zone of the session',
                'partition by a date or another column') -%}
        {%- elif type is not none and healing_tables._type_family(type) == 'text' -%}
            {#- a file format of Hive has lost it in the candidate: no key is NULL otherwise -#}
            {%- set is_key = healing_tables._find_column(column, build.settings.key_columns) is not none -%}
            {%- do empty.update({column: healing_tables._id(column) ~ " = ''"
                ~ (' or ' ~ healing_tables._id(column) ~ ' is null' if is_key)}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if empty -%}
        {%- set counts = [] -%}
        {%- for condition in empty.values() -%}
            {%- do counts.append('count_if(' ~ condition ~ ') as n' ~ loop.index) -%}
        {%- endfor -%}
        {%- set row = run_query('select ' ~ (counts | join(', ')) ~ ' from ' ~ build.candidate).rows[0] -%}
        {%- for column in empty -%}
            {%- set rows = row[loop.index0] | int -%}
            {%- do healing_tables._mistake(
                mistakes, 'partition_by', 'columns that a partition keeps as they are',
                column ~ ', which is the empty text in ' ~ rows ~ ' rows: a partition makes NULL of it',
                'partition by a date or another column') if rows -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do healing_tables._refuse(build, mistakes) if mistakes -%}
{%- endmacro %}

{#- The checks, in one scan of the candidate; all that fail are reported together. -#}
{% macro _check_candidate(build, duration) -%}
    {%- set checks = build.settings.checks -%}
    {%- if not checks -%}
        {%- do healing_tables._log_progress(build.target,
            'not checked: valid_from or valid_to is left out, or every check is off') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set check_request = dict(build.settings, relation=build.candidate | string) -%}
    {%- do healing_tables._check_request_columns('healing_table', check_request,
        healing_tables._columns_of(build.candidate)) -%}
    {%- set started = healing_tables._utc_now() -%}
    {%- set summary = run_query(healing_tables._check_summary(check_request)).rows[0] -%}
    {%- for check in checks -%} {%- do build.log_row.checks.update({check: summary[check] | int}) -%} {%- endfor -%}
    {%- do healing_tables._log_progress(
        build.target, 'candidate ' ~ build.candidate.identifier ~ ' has ' ~ summary['keys'] ~ ' keys and '
        ~ summary['versions'] ~ ' versions ('
        ~ healing_tables._display_seconds(duration) ~ ')') -%}
    {%- set failed = [] -%}
    {%- set failed_checks = [] -%}
    {%- for check in checks if summary[check] > 0 -%}
        {%- do failed_checks.append(check) -%}
        {%- do failed.append(check ~ ': ' ~ summary[check] ~ ' failing, in keys such as '
            ~ summary[check ~ '_keys']) -%}
    {%- endfor -%}
    {%- if failed -%}
        {%- do healing_tables._end_build(build, 'refused', {'reason': 'failed ' ~ (failed_checks | join(', '))}) -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, failed | join('\n  '), 'no violation', 'the candidate ' ~ build.candidate
            ~ ', kept so that you can look at it',
            "mend the sources or the model, or set meta.healing_tables.checks, e.g. {'" ~ failed_checks[0]
            ~ "': false}; then drop the candidate") -%}
        {%- do healing_tables._raise_error(
            'healing_table ' ~ build.target ~ ': ' ~ (failed | length) ~ ' of ' ~ (checks | length)
            ~ ' checks failed; the target is as it was.', mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._log_progress(
        build.target, 'passed ' ~ (checks | join(', ')) ~ ' ('
        ~ healing_tables._display_seconds(healing_tables._utc_now() - started) ~ ')') -%}
{%- endmacro %}

{#- Rows without a place and ties that were decided by value: nothing is left out or chosen in silence. -#}
{% macro _warn_about_rows(build) -%}
    {%- set sources = build.settings.metadata.sources -%}
    {%- set queries = [] -%}
    {#- CTEs of the model, and of ephemeral models, are in front of its select -#}
    {%- set ctes = healing_tables._ctes_before(build.settings.call) if build.settings.call is not none else none -%}
    {%- set uncounted = [] -%}
    {%- for source in sources -%}
        {%- if ctes is none and (source.parts is none or source.has_subquery) -%} {%- do uncounted.append(
            source.name) -%}
        {%- else -%}
            {%- do queries.append('select ' ~ healing_tables._text(source.name) ~ ' as source, (' ~ source.set_aside
                ~ ') as set_aside, '
                ~ ('(' ~ source.ties ~ ')' if source.ties else 'cast(0 as bigint)') ~ ' as ties') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if uncounted -%}
        {%- do healing_tables._log_progress(
            build.target, 'rows set aside are not counted: source ' ~ (uncounted | join(', '))
            ~ ' or its where is a part of the model, which only the model can read') -%}
    {%- endif -%}
    {%- set counts = {'rows_set_aside': 0, 'ties_resolved': 0} -%}
    {%- set warnings = [] -%}
    {%- for row in (run_query((ctes or '') ~ queries | join(' union all ')).rows if queries else []) -%}
        {%- do counts.update({
            'rows_set_aside': counts.rows_set_aside + row['set_aside'] | int,
            'ties_resolved': counts.ties_resolved + row['ties'] | int}) -%}
        {%- if row['set_aside'] > 0 -%}
            {%- do warnings.append(
                build.target ~ ': ' ~ row['set_aside'] ~ ' rows of source ' ~ row['source']
                ~ ' set aside (NULL key, NULL or endless moment, '
                ~ 'or empty period); healing_tables.set_aside lists them') -%}
        {%- endif -%}
        {%- if row['ties'] > 0 -%}
            {%- do warnings.append(
                build.target ~ ': ' ~ row['ties'] ~ ' ties in source ' ~ row['source']
                ~ ' resolved by on_tie: greatest') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do build.log_row.update(counts) if not uncounted -%}
    {%- if warnings and (flags.WARN_ERROR or flags.WARN_ERROR_OPTIONS.includes('JinjaLogWarning')) -%}
        {#- dbt makes an error of the first -#}
        {%- do healing_tables._end_build(build, 'refused', {'reason': warnings | join('; ')}) -%}
    {%- endif -%}
    {%- for text in warnings -%} {%- do exceptions.warn(text) -%} {%- endfor -%}
{%- endmacro %}
