{#-
    How a build begins: its mode, its row of the log, and what earlier builds have left behind.

    `build`: one attempt of a materialization of this package to write its target.

    settings            of the materialization: see _build_settings, _capture_settings
    target, candidate   the table, and the one that is written beside it
    existing, stored    what has the target's name: a relation or none, and its details
    format              the table format that is written
    log, log_row        the log, and the columns of its row as far as they are known (see _log_columns)
    side_tables         tables of this build that are dropped when it ends

    And in a healing_table:

    sql                 the SQL of the model
    location            the folder of this build's files, or none; once they are written, of all files of the table
    written             in how many key buckets, if in any, for people
    created             the table that the publishing statement makes: the target, or a name beside it
    last                the newest build of the table, or none (see _earlier_builds)
    changed_keys        the keys to heal, as SQL after `in`, and changed_key_count; none: all keys are built
    marks               how far this build sees each source (see _high_water_marks)
    keeps_foreign       a table that someone else has made has the target's name, and is kept under another one
    is_as_left          the stored table is as the last build of this definition has left it
    commits             those after the last build, or none (see _earlier_builds)
    query, columns      the statement that computes the candidate, and its columns {name: type}
    is_pure_call        the model is a call of dimension(), perhaps behind CTEs
    hashes              columns that the query leaves empty, {name: SQL}: see _hash_columns
    conditions          see _row_conditions
    changes             the table of the rows that differ, or none
    is_written          the candidate is a table; is_checked: its rows have passed the checks
    is_created          the target was created, or replaced by another table, and not only its rows
-#}
{% macro _new_build(settings, format, target, existing, mode, log_format=none) -%}
    {%- set stored = healing_tables._table_details(existing) -%}
    {%- set log = healing_tables._log_of(target, healing_tables._option('log_schema', none)) -%}
    {%- do healing_tables._ensure_log(target, log, log_format,
        is_known='healing_tables.spec=' in stored.get('properties', '')) -%}
    {{- return({
        'settings': settings, 'target': target, 'candidate': healing_tables._candidate_relation(target),
        'existing': existing, 'stored': stored,
        'format': format, 'log': log, 'side_tables': [], 'log_row': {
            'dimension': target.identifier, 'relation': healing_tables._plain_names(target), 'mode': mode,
            'reason': none, 'checks': {}, 'invocation_id': invocation_id,
            'version_before': healing_tables._table_version(existing, stored) if mode != 'rebuild' else none,
            'started_at': healing_tables._utc_now()}}) -}}
{%- endmacro %}

{#- `mode` rebuild (all keys), heal (those that changed since the last build) or sample (--empty and --sample). -#}
{% macro _begin_build(target, existing, sql, settings, attempt) -%}
    {%- set build = healing_tables._new_build(settings, settings.format, target, existing, 'rebuild') -%}
    {%- set row = build.log_row -%}
    {%- do healing_tables._warn_about_backups(target, healing_tables._tables_beside(target)) if existing is none -%}
    {%- set earlier = healing_tables._earlier_builds(build) -%}
    {%- set last = earlier.last -%}
    {%- do row.update({
        'spec': healing_tables._definition_hash(sql, settings.call),
        'version_before': earlier.newest,
        'table_id': last.table_id if last is not none and last.is_tagged
            else healing_tables._table_id(existing, build.stored)
                if healing_tables._can_heal() and not settings.format.has_commit_tags
            else none}) -%}
    {%- do build.update({
        'sql': sql, 'location': settings.format.new_location(target, attempt),
        'written': none, 'created': target, 'last': last,
        'changed_keys': none, 'changed_key_count': 0, 'marks': {}, 'keeps_foreign': false, 'changes': none,
        'is_written': false, 'is_checked': false, 'is_pure_call': false, 'is_created': false,
        'commits': earlier.others}) -%}
    {%- do build.update({'is_as_left': healing_tables._changed_since_last_build(build) is none}) -%}
    {%- if healing_tables._is_partial_run() -%}
        {%- do row.update({'mode': 'sample'}) -%}
        {%- do healing_tables._check_sample(existing, last) -%}
    {%- elif healing_tables._can_heal() -%}
        {%- do build.update({'marks': healing_tables._high_water_marks(settings.metadata.sources, last.marks
            if last is not none else {})}) -%}
        {%- do healing_tables._begin_heal(build) if healing_tables._requests_keys() or settings.mode == 'heal' -%}
    {%- endif -%}
    {%- do healing_tables._report_begin(build) -%}
    {{- return(build) -}}
{%- endmacro %}

{#- One line when a build begins: what is read, what is stored, and what the build is. -#}
{% macro _report_begin(build) -%}
    {%- set row = build.log_row -%}
    {%- set sources = build.settings.metadata.sources | length -%}
    {%- set stored = 'nothing is stored yet' if not build.stored
        else 'stored version ' ~ row.version_before if row.version_before is not none else 'a stored table' -%}
    {%- do healing_tables._log_progress(build.target, row.mode ~ ' from '
        ~ (healing_tables._counted(sources, 'source') if sources else 'the select') ~ ', ' ~ stored
        ~ (', ' ~ healing_tables._counted(build.changed_key_count, 'changed key') if row.mode == 'heal')
        ~ (': ' ~ row.reason if row.mode == 'heal' and row.reason is not none)
        ~ ('; computing' if row.mode != 'heal' or build.changed_key_count > 0)) -%}
{%- endmacro %}

{#- Find the keys to heal. If a heal could give another result than a rebuild, rebuild instead and log the reason. -#}
{% macro _begin_heal(build) -%}
    {%- set last = build.last -%}
    {%- set obstacle = healing_tables._heal_obstacle(build.stored, build.format)
        or healing_tables._changed_since_last_build(build) -%}
    {%- set changes = {'selects': [], 'keys': [], 'obstacle': obstacle} -%}
    {%- if obstacle is none -%}
        {%- set changes = healing_tables._changed_keys(build.settings, build.existing, build.marks, last.marks) -%}
    {%- endif -%}
    {%- if changes.obstacle is not none -%}
        {%- do healing_tables._rebuild_instead(build, changes.obstacle) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do build.log_row.update({'mode': 'heal'}) -%}
    {%- if healing_tables._requests_keys() -%}
        {#- other keys may have changed too: the next heal sees them -#}
        {%- do build.update({'marks': last.marks}) -%}
        {%- do build.log_row.update({'reason': 'keys named by the run'}) -%}
    {%- endif -%}
    {%- do healing_tables._store_changed_keys(build, changes) -%}
{%- endmacro %}

{% macro _rebuild_instead(build, reason) -%}
    {%- do healing_tables._drop_side_tables(build) -%}
    {%- do build.update({'changed_keys': none, 'changes': none}) -%}
    {%- do build.log_row.update({'mode': 'rebuild', 'reason': reason}) -%}
    {%- do healing_tables._log_progress(build.target, 'a rebuild, not a heal: ' ~ reason) -%}
{%- endmacro %}

{#- Keep the keys to heal for the statements that read them: a few as literals in their text, others as a table. A list
    of literals is a filter of the scans, which can skip rows by it; it takes keys of one column. -#}
{% macro _store_changed_keys(build, changes) -%}
    {%- do build.log_row.update({'keys_affected': 0}) -%}
    {%- set names = healing_tables._key_names(build.settings.key_columns) -%}
    {%- set keys = changes['keys'] | unique(case_sensitive=true) | list -%}
    {%- set listed = 'select * from values ' ~ (keys | join(', ')) ~ ' as changed_keys (' ~ names ~ ')' -%}
    {%- if not changes.selects -%}
        {%- do build.update({
            'changed_keys': '(' ~ (keys | join(', ') if build.settings.key_columns | length == 1 else listed) ~ ')',
            'changed_key_count': keys | length}) if keys -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set table = healing_tables._create_side_table(build, '_keys', 'select distinct * from (select * from ('
        ~ (changes.selects + ([listed] if keys else [])) | join(') union all select * from (') ~ '))') -%}
    {%- do build.update({
        'changed_keys': '(select ' ~ names ~ ' from ' ~ table ~ ')',
        'changed_key_count': run_query('select count(*) as n from ' ~ table).rows[0]['n'] | int}) -%}
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
