{#-
    How a build begins: its mode, and what earlier builds have left behind.

    `run`: one attempt of a materialization of this package to write its target. It is written when the attempt begins.

    settings            of the materialization: see _build_settings, _capture_settings
    target, format      the table, and the format that is written
    existing, stored    what has the target's name: a relation or none, and its details
    candidate_table     the name of a table for the new rows, beside the target
    side_tables         other tables of this run, which are dropped when it ends: the one field that changes
    log                 the log of builds
    mode, reason        rebuild (all keys), heal (those that changed since the last build), sample (--empty, --sample),
                        capture or merge; why it is this one, or none
    version_before      the version of the target that the run has seen, or none
    started_at
    definition          the hash of the definition, or none; table_id: of the stored table, or none
    marks               how far this build sees each source (see _high_water_marks)
    changed_keys        the keys to heal, as SQL after `in`, and changed_key_count; none: all keys are built
    listed_keys         the same as a list of literals, if they are few and of one column; else none
    publish             what the log shows as the way of publishing; none: that of the change
    notes               more properties of a table that this run makes
    beside              statements that write the tables beside the target, once that is published
    audit               see audit/_audit.sql; none: nothing is audited
    wider               stored columns whose type is changed before rows are published, {name: new type}
    undo                the statement that takes back what a run has written, if it is refused; or none
    location            a folder for the files of this run, or none
    key_buckets, partitions   of these files: the number of buckets, or none; the partition columns if they are not
                        those of the model, or none
    commit              see build/_publish_folders.sql; none: the table is published on its own
    keeps_foreign       a table that someone else has made has the target's name, and is kept under another one

    And in a build, and in a merge as SQL:

    sql                 the SQL of the model
    last, commits       the newest build of the table, and the commits after it; none if not known (see _earlier_builds)
    recent              the newest commits of the table, newest first, if the format has tags; or none
    newest_tag          the tag of the newest commit that has one, with its `version`, even if others have changed rows
                        after it; or none
    is_as_left          the stored table is as the last build of this definition has left it
-#}
{% macro _new_run(settings, format, target, existing, mode, log_format=none) -%}
    {%- set stored = healing_tables._table_details(existing) -%}
    {%- set log = healing_tables._log_of(target, healing_tables._option('log_schema', none)) -%}
    {%- do healing_tables._ensure_log(target, log, log_format,
        is_known='healing_tables.spec=' in stored.get('properties', '')) -%}
    {{- return({
        'settings': settings, 'target': target, 'format': format, 'existing': existing, 'stored': stored,
        'candidate_table': healing_tables._candidate_relation(target), 'side_tables': [], 'log': log, 'mode': mode,
        'reason': none,
        'version_before': healing_tables._table_version(existing, stored) if mode != 'rebuild' else none,
        'started_at': healing_tables._utc_now(), 'definition': none, 'table_id': none, 'marks': {},
        'changed_keys': none, 'changed_key_count': 0, 'listed_keys': none, 'location': none, 'keeps_foreign': false,
        'key_buckets': none, 'partitions': none, 'commit': none,
        'publish': none, 'notes': {}, 'undo': none, 'beside': [], 'audit': none, 'wider': {}}) -}}
{%- endmacro %}

{#- The run of one attempt of a healing_table. -#}
{% macro _begin_build(target, existing, sql, settings, attempt) -%}
    {%- set run = healing_tables._new_run(settings, settings.format, target, existing, 'rebuild') -%}
    {%- do healing_tables._warn_about_backups(target, healing_tables._tables_beside(target)) if existing is none -%}
    {%- set run = healing_tables._with_earlier_builds(
        dict(run, sql=sql), healing_tables._definition_hash(sql, settings.call)) -%}
    {%- set run = dict(run, location=settings.format.files.new_location(target, attempt),
        key_buckets=healing_tables._key_buckets()) -%}
    {%- set run = healing_tables._with_audit(run) -%}
    {%- set last = run.last -%}
    {%- if healing_tables._is_partial_run() -%}
        {%- do healing_tables._check_sample(existing, last) -%}
        {%- set run = dict(run, mode='sample') -%}
    {%- elif healing_tables._can_heal() -%}
        {%- set run = dict(run, marks=healing_tables._high_water_marks(settings.metadata.scans,
            last.marks if last is not none else {})) -%}
        {%- if healing_tables._requests_keys() or settings.mode == 'heal' -%}
            {%- set run = healing_tables._begin_heal(run) -%}
        {%- endif -%}
    {%- endif -%}
    {%- do healing_tables._report_begin(run) -%}
    {{- return(run) -}}
{%- endmacro %}

{#- The run with what earlier builds of this definition have left. -#}
{% macro _with_earlier_builds(run, definition) -%}
    {%- set earlier = healing_tables._earlier_builds(run) -%}
    {%- set last = earlier.last -%}
    {%- set run = dict(
        run, definition=definition, version_before=earlier.newest, last=last, commits=earlier.others,
        newest_tag=earlier.newest_tag, recent=earlier.recent,
        table_id=last.table_id if last is not none and last.is_tagged
            else healing_tables._table_id(run.existing, run.stored)
                if healing_tables._can_heal() and not run.format.commits.has_tags
            else none) -%}
    {{- return(dict(run, is_as_left=healing_tables._changed_since_last_build(run) is none)) -}}
{%- endmacro %}

{#- One line when a build begins: what is read, what is stored, and what the build is. -#}
{% macro _report_begin(run) -%}
    {%- set sources = run.settings.metadata.scans | length -%}
    {%- set stored = 'nothing is stored yet' if not run.stored
        else 'stored version ' ~ run.version_before if run.version_before is not none else 'a stored table' -%}
    {%- set is_heal = run.mode == 'heal' -%}
    {%- do healing_tables._log_progress(run.target, run.mode ~ ' from '
        ~ (healing_tables._counted(sources, 'source') if sources else 'the select') ~ ', ' ~ stored
        ~ (', ' ~ healing_tables._counted(run.changed_key_count, 'changed key') if is_heal)
        ~ (': ' ~ run.reason if is_heal and run.reason is not none)
        ~ ('; computing' if not is_heal or run.changed_key_count > 0)) -%}
{%- endmacro %}

{#- The run as a heal of the keys with news. If a heal could give another result than a rebuild, a rebuild. -#}
{% macro _begin_heal(run) -%}
    {%- set last = run.last -%}
    {%- set obstacle = healing_tables._heal_obstacle(run.stored, run.format)
        or healing_tables._changed_since_last_build(run) -%}
    {%- set changes = {'selects': [], 'keys': [], 'obstacle': obstacle} -%}
    {%- if obstacle is none -%}
        {%- set changes = healing_tables._changed_keys(run.settings, run.existing, run.marks, last.marks) -%}
    {%- endif -%}
    {%- if changes.obstacle is not none -%}
        {{- return(healing_tables._rebuild_instead(run, changes.obstacle)) -}}
    {%- endif -%}
    {%- set run = dict(run, mode='heal') -%}
    {%- if healing_tables._requests_keys() -%}
        {#- other keys may have changed too: the next heal sees them -#}
        {%- set run = dict(run, marks=last.marks, reason='keys named by the run') -%}
    {%- endif -%}
    {{- return(healing_tables._store_changed_keys(run, changes)) -}}
{%- endmacro %}

{% macro _rebuild_instead(run, reason) -%}
    {%- do healing_tables._drop_side_tables(run) -%}
    {%- do healing_tables._log_progress(run.target, 'a rebuild, not a heal: ' ~ reason) -%}
    {{- return(dict(run, mode='rebuild', reason=reason, changed_keys=none, changed_key_count=0,
        listed_keys=none)) -}}
{%- endmacro %}

{#- Keep the keys to heal for the statements that read them: a few as literals in their text, others as a table. A list
    of literals is a filter of the scans, which can skip rows by it; it takes keys of one column. -#}
{% macro _store_changed_keys(run, changes) -%}
    {%- set names = healing_tables._key_names(run.settings.key_columns) -%}
    {%- set keys = changes['keys'] | unique(case_sensitive=true) | list -%}
    {%- set listed = 'select * from values ' ~ (keys | join(', ')) ~ ' as changed_keys (' ~ names ~ ')' -%}
    {%- if not changes.selects -%}
        {%- set is_one_column = run.settings.key_columns | length == 1 -%}
        {%- set literals = '(' ~ (keys | join(', ') if is_one_column else listed) ~ ')' -%}
        {{- return(dict(run, changed_keys=literals, changed_key_count=keys | length,
            listed_keys=literals if is_one_column else none) if keys else run) -}}
    {%- endif -%}
    {%- set table = healing_tables._create_side_table(run, '_keys', 'select distinct * from (select * from ('
        ~ (changes.selects + ([listed] if keys else [])) | join(') union all select * from (') ~ '))') -%}
    {{- return(dict(run, changed_keys='(select ' ~ names ~ ' from ' ~ table ~ ')',
        changed_key_count=run_query('select count(*) as n from ' ~ table).rows[0]['n'] | int)) -}}
{%- endmacro %}

{#- A table that was built from all rows is not replaced by a few of them by mistake. -#}
{% macro _check_sample(existing, last) -%}
    {%- if existing is none or var('allow_sample', false) is sameas true
        or (last is not none and last.mode == 'sample') -%}
        {{- return(none) -}}
    {%- endif -%}
    {#- without a row in the log it is someone else's: a table that is to become a dimension -#}
    {%- if last is not none or healing_tables._has_rows(existing) -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, '--empty or --sample', 'a target that was not built in full', existing | string ~ ', which was',
            "build into another schema; or allow it once: --vars '{allow_sample: true}'") -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
{%- endmacro %}
