{#- The audit of what a run has published: the difference that it has found before, or one to the version before. -#}

{#- `commit`: the version and the moment of the run's own. -#}
{% macro _audit_change(run, change, commit) -%}
    {%- if run.audit is none or run.audit.is_left_out -%} {{ return(none) }} {%- endif -%}
    {%- if commit.version is none -%}
        {%- do exceptions.warn(healing_tables._plain_names(run.target ~ ': this build has no audit: what it replaces '
            ~ 'was no table in ' ~ run.format.name)) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set found = healing_tables._known_difference(run, change)
        or healing_tables._difference_of_commit(run, commit.version, run.version_before) -%}
    {%- do healing_tables._write_audit(run, found, invocation_id, commit) -%}
{%- endmacro %}

{#- What a change changes, as _rows_of_audit() takes it, if the pass has stored it; or none. -#}
{% macro _known_difference(run, change) -%}
    {%- if change.how != 'merge' -%} {{ return(none) }} {%- endif -%}
    {{- return({'columns': change.candidate.columns, 'rows': healing_tables._staged_rows(change.staged)
        if run.audit.is_dated else healing_tables._audited_pass(change.staged, change.candidate,
            healing_tables._key_names(run.settings.key_columns)),
        'stored': healing_tables._common_columns(run.stored.columns, change.candidate.columns)}) -}}
{%- endmacro %}

{#- The rows in a table of changes (_difference.sql). `keys`: 'key_1, key_2'. -#}
{% macro _audited_pass(changes, candidate, keys) -%}
    select {{ keys }}, start, was_current, is_current, candidate_row as new,
        case when row is not null then struct(
            {{- healing_tables._published_columns(candidate) | join(', ') }}) end as old
    from (select *, stored_row as row from {{ changes }} where differs)
{%- endmacro %}

{#- The same of a merge, whose table has whole stored rows. -#}
{% macro _staged_rows(staged) -%}
    {{- return('select *, candidate_row as new, stored_whole as old from ' ~ staged ~ ' where differs') -}}
{%- endmacro %}

{#- The columns of a table that a candidate has, too, as the candidate has them. -#}
{% macro _common_columns(stored, columns) -%}
    {%- set found = {} -%}
    {%- for name, type in columns.items() if name in stored -%} {%- do found.update({name: type}) -%} {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- The same of a commit. `base`: the version that the run has seen, or none. -#}
{% macro _difference_of_commit(run, version, base) -%}
    {%- set base = run.format.commits.before(version, base) -%}
    {%- set before = run.target ~ ' version as of ' ~ base if base is not none else none -%}
    {%- set after = run.target ~ ' version as of ' ~ version -%}
    {{- return(healing_tables._difference_of_rows(run, before, after, healing_tables._sequence(run))
        if run.audit.is_dated else healing_tables._difference_of_versions(run, before, after)) -}}
{%- endmacro %}

{#- The same of two versions of the table, as SQL for a `from`; `before` is none if there was no table. -#}
{% macro _difference_of_versions(run, before, after) -%}
    {%- set before = before or '(select * from ' ~ after ~ ' where false)' -%}
    {%- set stored = healing_tables._query_columns('select * from ' ~ before) -%}
    {%- set columns = healing_tables._query_columns('select * from ' ~ after) -%}
    {{- return({'columns': columns, 'stored': stored, 'rows': healing_tables._audited_versions(
        run.settings, before, after, stored, columns, run.settings.call is not none
            and not healing_tables._is_more_than_call(run.settings.call))}) -}}
{%- endmacro %}

{#- The same of the rows of the run, which are compared with those `before`, or none, of the keys that differ between
    `before` and `after`. Both: SQL for a `from`. -#}
{% macro _difference_of_rows(run, before, after, sequence) -%}
    {%- set keys = healing_tables._quoted_list(run.settings.key_columns) -%}
    {%- set stored = healing_tables._query_columns('select * from ' ~ before) if before is not none else {} -%}
    {%- set changed_keys = none -%}
    {%- if stored -%}
        {%- set listed = healing_tables._quoted_list(stored) | join(', ') -%}
        {%- set rows = {'before': 'select ' ~ listed ~ ' from ' ~ before, 'after': 'select ' ~ listed ~ ' from '
            ~ after} -%}
        {%- set changed_keys = '(select ' ~ (keys | join(', ')) ~ ' from ((' ~ rows.before ~ ' except ' ~ rows.after
            ~ ') union all (' ~ rows.after ~ ' except ' ~ rows.before ~ ')))' -%}
    {%- endif -%}
    {#- nothing is known about these rows: all columns are compared -#}
    {%- set past = dict(run, changed_keys=changed_keys, is_as_left=false, settings=dict(run.settings, checks={}),
        stored=dict(run.stored, columns=healing_tables._query_columns('select * from ' ~ after))) -%}
    {%- set candidate = healing_tables._new_candidate(past, sequence) -%}
    {%- set past = dict(past, existing='(select * from ' ~ (before if stored else after ~ ' where false') ~ ')',
        stored=dict(past.stored, columns=stored or past.stored.columns)) -%}
    {%- set staged = healing_tables._create_side_table(run, '_audit', healing_tables._changes(past, candidate,
        healing_tables._diff_inputs(past, candidate))) -%}
    {{- return({'columns': candidate.columns, 'rows': healing_tables._staged_rows(staged),
        'stored': healing_tables._common_columns(stored or candidate.columns, candidate.columns)}) -}}
{%- endmacro %}
