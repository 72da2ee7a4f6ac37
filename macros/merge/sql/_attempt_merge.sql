{#-
    A merge as SQL: the batch becomes a table of the run; the versions of its keys are computed from the change log and
    that table, and checked; then its rows are added to the log, and the keys are published. A kill after that leaves
    rows in the log that the dimension lacks: the next merge publishes them, too.
-#}

{#- Merge the select of a model. `settings`: see _sql_merge_settings(). Returns {is_created}. -#}
{% macro _merge_by_sql(target, existing, sql, settings) -%}
    {%- set published = [] -%}
    {%- for attempt in range(1, healing_tables._max_attempts() + 1) -%}
        {%- if not published -%}
            {%- set is_new = attempt > 1 or healing_tables._finish_last_commit(settings.format, target) -%}
            {%- set found = existing if not is_new else target if healing_tables._table_exists(target) else none -%}
            {%- set ended = healing_tables._attempt_merge(target, found, sql, settings, attempt) -%}
            {%- do published.append(ended) if ended is not none -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(published[0]) -}}
{%- endmacro %}

{#- One attempt; none if another writer has changed dimension or log in the meantime. -#}
{% macro _attempt_merge(target, existing, sql, settings, attempt) -%}
    {%- set spec = settings.spec -%}
    {%- set merge = healing_tables._begin_merge(target, existing, sql, settings, attempt) -%}
    {%- set figures = healing_tables._read_figures(healing_tables._figures_of_batch(merge)) -%}
    {%- do healing_tables._check_batch(merge, spec, figures) -%}
    {%- set found = healing_tables._find_change(healing_tables._run_of_keys(merge.run, spec, merge.layout, merge.shown,
        merge.events, merge.log_rows, merge.has_full, merge.condition, merge.changed_keys)) -%}
    {%- do healing_tables._refuse_unlogged(found.run, spec, merge.layout, found.change, merge.events, merge.log_rows)
        if merge.history is none -%}
    {%- if merge.run.commit is not none -%}
        {{- return(healing_tables._publish_change(
            healing_tables._with_folders(found.run, merge, spec, figures), dict(found.change, figures=dict(
                found.change.figures, rows_set_aside=figures.aside)), found.sequence, attempt)) -}}
    {%- endif -%}
    {%- do healing_tables._set_batch_aside(found.run, merge.layout, merge.batch, figures.aside) -%}
    {%- set run, conflicts = found.run, [] -%}
    {%- do healing_tables._widen_types(run, merge.narrower) -%}
    {%- if figures.news > 0 -%}
        {%- set run = dict(run, undo=healing_tables._withdraw_from_change_log(merge.change_log)) -%}
        {%- set place = run.format.commits.begin(merge.change_log, merge.log_version) -%}
        {%- set conflicts = healing_tables._run_or_conflict(run, 'log', healing_tables._append_to_change_log(
            spec, merge.layout, merge.events, place, healing_tables._merge_id()))
            or run.format.commits.end(merge.change_log, merge.log_version) -%}
    {%- endif -%}
    {%- set now = healing_tables._state_of_change_log(run, merge.change_log, merge.log_version) -%}
    {%- set conflicts = conflicts or (['a row of the change log'] if now.row_commits > (1 if figures.news > 0 else 0)
        else []) -%}
    {%- set history_id = healing_tables._merge_id() ~ '/' ~ attempt if merge.history is not none else none -%}
    {%- set run = dict(run, marks={'changes': {'version': now.version, 'has_full': merge.has_full,
        'shown': merge.shown, 'is_audited': run.audit is not none, 'history': history_id,
        'has_seeds': merge.has_seeds, 'is_whole': run.changed_keys is none}}) -%}
    {%- set run = dict(run, beside=[
        healing_tables._merge_history(merge, run.versions, history_id),
        healing_tables._note_written_by(run.format, merge.history, history_id)]) if merge.history is not none
        else run -%}
    {%- set change = dict(found.change, figures=dict(found.change.figures, rows_set_aside=figures.aside)) -%}
    {%- set published = healing_tables._publish_change(run, change, found.sequence, attempt, conflicts) -%}
    {%- do healing_tables._clear_outbox(run, merge.delivered) if published is not none -%}
    {{- return(published) -}}
{%- endmacro %}

{#-
    `merge`: what an attempt begins with.

    run, layout         see build/_begin.sql, _layout.sql
    changed_keys        the keys to merge, as SQL after `in`; none: all. condition: on the rows of the log
    batch               the table of the batch; events: its rows for the log, as SQL for a `from`
    change_log          the relation; log_version; log_rows: its rows at that version, as SQL for a `from`
    history             the relation of type 4, or none
    full_at             the moment of a full batch, as SQL, or none; has_full: log or batch have full batches
    has_seeds           the log begins with stored versions
    shown               {end, flags} of the stored rows
    delivered           see _outbox.sql
    narrower            see _widen_types()
-#}
{% macro _begin_merge(target, existing, sql, settings, attempt) -%}
    {%- set spec, format, mistakes = settings.spec, settings.format, [] -%}
    {%- set change_log = healing_tables._change_log_relation(target, spec) -%}
    {#- as of a rebuild: the version of the table comes with its earlier builds -#}
    {%- set run = dict(healing_tables._new_run({'session': settings.session}, format, target, existing, 'rebuild'),
        mode='merge', publish='log and heal', reason=settings.reason,
        notes={'healing_tables.change_log': healing_tables._full_name(change_log)},
        undo=healing_tables._withdraw_from_change_log(change_log) if attempt > 1 else none) -%}
    {#- a full refresh does not read the stored table: it builds a new one from the log -#}
    {%- set stored_columns = run.stored.get('columns', {}) if not should_full_refresh() else {} -%}
    {#- a dimension that comes back from its log has the types of the log -#}
    {%- set logged_columns = healing_tables._columns_of(change_log) if not stored_columns
        and healing_tables._table_exists(change_log) else {} -%}
    {%- set layout = healing_tables._merge_layout(mistakes, format, spec, healing_tables._as_stored(format,
        healing_tables._query_columns(sql)), stored_columns, settings.at, logged_columns) -%}
    {%- do healing_tables._check_stored_table(mistakes, run) if existing is not none -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {%- set run = healing_tables._with_earlier_builds(run, local_md5(tojson([spec, layout]))) -%}
    {%- set run = healing_tables._with_commit(run, attempt) if format.commits.names_folders else run -%}
    {%- set seen = ((run.newest_tag or {}).get('marks') or {}).get('changes') or {} -%}
    {%- set shown = seen.get('shown') if stored_columns and run.last is not none and run.last.is_tagged else none -%}
    {%- set shown = shown or healing_tables._shown_ends(mistakes, spec, layout, existing, stored_columns) -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {%- set beside = healing_tables._prepare_tables_beside(run, spec, layout, change_log, seen, shown, stored_columns)
        -%}
    {%- set audit, history, delivered = beside.audit, beside.history, beside.delivered -%}
    {%- set has_seeds = seen.has_seeds if 'has_seeds' in seen
        else healing_tables._has_rows('(select 1 from ' ~ change_log ~ ' where is_seed)') -%}
    {%- set sql = healing_tables._batch_without_erased(target, sql, healing_tables._keys_of_batch(layout),
        healing_tables._moment_of_row(layout, settings.micros)) -%}
    {%- set batch = healing_tables._table_of_batch(run, spec, layout, sql, settings.micros, shown.end, change_log,
        has_seeds) -%}
    {%- set full_at = 'timestamp_micros(' ~ settings.micros ~ (' - pmod(' ~ settings.micros ~ ', 86400000000)'
        if layout.moment_type == 'date') ~ ')' if settings.is_full else none -%}
    {%- set events = healing_tables._events_of_batch(layout, batch, full_at, has_seeds) -%}
    {%- set log_version = format.commits.newest_version(change_log) -%}
    {%- set log_rows = healing_tables._rows_of_version(change_log, log_version) if run.commit is none
        else change_log | string -%}
    {%- set audit = dict(audit, said=healing_tables._said_by_events(layout, events)) if run.commit is not none
        and (audit or {}).get('said') else audit -%}
    {%- set has_full = settings.is_full or (seen.has_full if seen and seen.version == log_version
        else healing_tables._has_rows('(select 1 from ' ~ log_rows ~ ' where is_full)')) -%}
    {%- set behind = history is not none and seen.get('history')
        and not healing_tables._was_written_by(format, history, seen.history) -%}
    {%- set changed_keys = healing_tables._keys_to_merge(run, layout, batch, change_log, log_rows, log_version,
        seen.get('version'), delivered + (['sql-' ~ run.newest_tag.id] if behind else []))
        if stored_columns and not settings.is_full and not healing_tables._has_new_columns(layout, stored_columns)
        and not (behind and seen.is_whole) else none -%}
    {%- set condition = 'true' if changed_keys is none or not has_full
        else '(is_full or ' ~ (healing_tables._has_no_key(layout) ~ ' or ' if layout.rules.has_truncations)
            ~ healing_tables._is_changed_key(layout['keys'] | map(attribute='quoted') | list, changed_keys,
                layout.has_null_keys) ~ ')' -%}
    {#- of other keys, this run knows nothing: hashes that another writer has stored stay untrusted -#}
    {%- set wider = healing_tables._wider_columns(spec, layout, stored_columns) -%}
    {%- set run = dict(run, audit=audit, definition=run.definition if changed_keys is none or run.is_as_left
        else none, wider=wider, stored=dict(run.stored, columns=dict(stored_columns, **wider)) if wider
        else run.stored) -%}
    {{- return({
        'run': run, 'condition': condition, 'changed_keys': changed_keys, 'history': history, 'has_seeds': has_seeds,
        'layout': layout, 'batch': batch, 'change_log': change_log,
        'log_version': log_version, 'has_full': has_full, 'shown': shown, 'full_at': full_at, 'log_rows': log_rows,
        'events': events, 'delivered': delivered, 'narrower': beside.narrower}) -}}
{%- endmacro %}

{#- The tables beside the dimension, and what earlier merges have left to do there: {audit (see audit/_audit.sql),
    history (the relation), delivered (see _outbox.sql), narrower (see _widen_types())}. -#}
{% macro _prepare_tables_beside(run, spec, layout, change_log, seen, shown, stored_columns) -%}
    {%- set mistakes = [] -%}
    {%- set audit = healing_tables._audit_of_merge(run, spec, layout, change_log) -%}
    {%- do healing_tables._ensure_audit(run, mistakes, audit) if audit is not none
        and not healing_tables._has_been_checked(run, audit.table) -%}
    {%- set log = {'is_new': false, 'has_new_causes': false, 'narrower': {}}
        if healing_tables._has_been_checked(run, change_log)
        else healing_tables._ensure_change_log(run, layout, change_log) -%}
    {%- set narrower = [{'relation': change_log, 'columns': log.narrower}] -%}
    {%- set history = healing_tables._history_relation(run.target, spec) if healing_tables._has_history(layout)
        else none -%}
    {%- do narrower.append({'relation': history, 'columns': healing_tables._ensure_history(run, mistakes, layout,
        history, run.stored or not log.is_new)})
        if history is not none and not healing_tables._has_been_checked(run, history) -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {%- do healing_tables._seed_change_log(run, spec, layout, change_log, shown)
        if stored_columns and (log.is_new or not seen) -%}
    {%- do healing_tables._add_causes_to_log(run, spec, layout, change_log, shown)
        if stored_columns and log.has_new_causes and run.commit is none -%}
    {%- do healing_tables._complete_audit(run, spec, layout, change_log, shown) -%}
    {%- do healing_tables._check_has_history(run, change_log) if run.stored and not stored_columns -%}
    {%- set delivered = healing_tables._deliver_outbox(run, spec, layout, change_log, audit) -%}
    {%- do healing_tables._audit_others(run) if audit is not none -%}
    {{- return({'audit': audit, 'history': history, 'delivered': delivered, 'narrower': narrower}) -}}
{%- endmacro %}

{#- Whether the last merge, of this definition, has looked at a table beside the dimension that is still there. -#}
{% macro _has_been_checked(run, relation) -%}
    {{- return(run.is_as_left and healing_tables._table_exists(relation)) -}}
{%- endmacro %}

{#- With a new column, every row gets another hash. -#}
{% macro _has_new_columns(layout, stored_columns) -%}
    {{- return(healing_tables._missing_names(layout.attributes | map(attribute='name'), stored_columns)
        | length > 0) -}}
{%- endmacro %}

{#- A full refresh of a dimension whose log has no rows would begin again with this batch. -#}
{% macro _check_has_history(run, change_log) -%}
    {%- if healing_tables._option('allow_full_refresh', none, false) is sameas true
        or healing_tables._has_rows(change_log) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._mistake(mistakes, '--full-refresh', 'a change log with the history of the dimension',
        change_log ~ ', which has no rows',
        'run without it; or set meta.healing_tables.allow_full_refresh: true to start again with this batch') -%}
    {%- do healing_tables._refuse(run, mistakes) -%}
{%- endmacro %}

{#- The keys of the batch, and those of rows that are in the log, but perhaps not in the dimension: their merge was
    killed between the two. SQL after `in`. `published`: the version of the log whose rows are in the dimension, or
    none; `delivered`: see _outbox.sql. -#}
{% macro _keys_to_merge(run, layout, batch, change_log, log_rows, log_version, published, delivered) -%}
    {%- set keys = layout['keys'] | map(attribute='quoted') | join(', ') -%}
    {%- set has_no_key = healing_tables._has_no_key(layout) -%}
    {%- set has_key = ' and not ' ~ has_no_key if layout.rules.has_truncations else '' -%}
    {%- set selects = ['select ' ~ keys ~ ' from ' ~ batch ~ ' where healing_tables_reason is null' ~ has_key] -%}
    {#- a full batch may have ended any key, as a truncation does; of type 4, also one that has left the table -#}
    {%- set all_keys = 'select ' ~ keys ~ ' from ' ~ (log_rows if healing_tables._has_history(layout)
        else run.existing) ~ ' where exists (select 1 from ' -%}
    {%- set is_for_all = '(is_full or ' ~ has_no_key ~ ')' if has_key else 'is_full' -%}
    {%- do selects.append(all_keys ~ batch ~ ' where healing_tables_reason is null and ' ~ has_no_key ~ ')' ~ has_key)
        if has_key -%}
    {#- a merge of the library that has committed since may have been overwritten -#}
    {%- set is_undisturbed = run.last is not none and run.last.is_tagged -%}
    {%- set merges = healing_tables._merges_since(run, change_log, published,
        published is not none and not is_undisturbed) if published != log_version else [] -%}
    {%- if merges is none or merges or delivered -%}
        {%- set left = healing_tables._is_of_merges(merges, delivered) -%}
        {%- do selects.append('select ' ~ keys ~ ' from ' ~ log_rows ~ ' where not is_full and ' ~ left ~ has_key) -%}
        {%- do selects.append(all_keys ~ log_rows ~ ' where ' ~ is_for_all ~ ' and ' ~ left ~ ')' ~ has_key) -%}
    {%- endif -%}
    {{- return('(' ~ (selects | join(' union ')) ~ ')') -}}
{%- endmacro %}

{#- The open end and the flags: those of the stored rows, or else the options. -#}
{% macro _shown_ends(mistakes, spec, layout, existing, stored_columns) -%}
    {%- set given = {'end': spec.get('valid_to_current', '(not given)'), 'flags': spec.get('current_values')} -%}
    {%- set valid_to = healing_tables._find_column(layout.names.valid_to or '', stored_columns) -%}
    {%- set is_current = healing_tables._find_column(layout.names.is_current or '', stored_columns) -%}
    {%- set shown = given if not stored_columns else healing_tables._ends_and_flags(mistakes, dict(given,
        relation=existing, valid_to=valid_to, to_type=stored_columns.get(valid_to), is_current=is_current,
        flag_type=stored_columns.get(is_current),
        while_deleted=spec.get('current_while_deleted') is sameas true)) -%}
    {{- return({'end': '9999-12-31 00:00:00' if shown.end == '(not given)' else shown.end, 'flags': shown.flags}) -}}
{%- endmacro %}

{#- What has the name of the dimension must be a table of the format. It notes the name of its log: from then on, every
    merge uses it. -#}
{% macro _check_stored_table(mistakes, run) -%}
    {%- if run.stored.get('provider') != run.format.name -%}
        {%- do healing_tables._mistake(mistakes, run.target | string, 'a table in ' ~ run.format.name ~ ', or none yet',
            'a table in ' ~ run.stored.provider if run.stored.get('provider') else 'a view',
            'choose another name for the model, or rename what has this one') -%}
    {%- endif -%}
    {%- do healing_tables._check_named_log(mistakes, healing_tables._property(run.stored, 'healing_tables.change_log'),
        run.notes['healing_tables.change_log']) -%}
{%- endmacro %}
