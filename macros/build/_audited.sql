{#- The audit of what a run has published: the difference that it has found before, or one to the version before. -#}

{% macro _audit_change(run, change, version) -%}
    {%- if run.audit is none -%} {{ return(none) }} {%- endif -%}
    {%- set found = healing_tables._known_difference(change)
        or healing_tables._difference_of_commit(run, version, run.version_before) -%}
    {%- do healing_tables._write_audit(run, found, invocation_id, version) -%}
{%- endmacro %}

{#- The difference of a change, if it has been stored: {staged (a table of changes, see _difference.sql), columns}. -#}
{% macro _known_difference(change) -%}
    {{- return({'staged': change.staged, 'columns': change.candidate.columns} if change.how == 'merge' else none) -}}
{%- endmacro %}

{#- The same of a commit. `base`: the version that the run has seen, or none. -#}
{% macro _difference_of_commit(run, version, base) -%}
    {%- set base = run.format.commits.before(version, base) -%}
    {{- return(healing_tables._difference_of_rows(
        run, run.target ~ ' version as of ' ~ base if base is not none else none,
        run.target ~ ' version as of ' ~ version, healing_tables._sequence(run))) -}}
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
    {{- return({'staged': staged, 'columns': candidate.columns}) -}}
{%- endmacro %}
