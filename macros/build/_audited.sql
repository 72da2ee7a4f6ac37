{#- The audit of what a run has published: the difference that it has found before, or one to the version before. -#}

{% macro _audit_change(run, change, version) -%}
    {%- if run.audit is none -%} {{ return(none) }} {%- endif -%}
    {%- set found = {'staged': change.staged, 'columns': change.candidate.columns} if change.how == 'merge'
        else healing_tables._difference_of_commit(run, version, run.version_before) -%}
    {%- do healing_tables._write_audit(run, found, invocation_id, version) -%}
{%- endmacro %}

{#-
    What a commit has changed: {staged (a table of changes, see _difference.sql), columns}. The rows of the run
    are compared with the version before, of the keys that differ between the two versions. `base`: the
    version that the run has seen, or none.
-#}
{% macro _difference_of_commit(run, version, base) -%}
    {%- set base = run.format.commits.before(version, base) -%}
    {%- set keys = healing_tables._quoted_list(run.settings.key_columns) -%}
    {%- set after = run.target ~ ' version as of ' ~ version -%}
    {%- set before = run.target ~ ' version as of ' ~ base -%}
    {%- set stored = healing_tables._query_columns('select * from ' ~ before) if base is not none else {} -%}
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
    {%- set candidate = healing_tables._new_candidate(past, healing_tables._sequence(past)) -%}
    {%- set past = dict(past, existing='(select * from ' ~ (before if stored else after ~ ' where false') ~ ')',
        stored=dict(past.stored, columns=stored or past.stored.columns)) -%}
    {%- set staged = healing_tables._create_side_table(run, '_audit', healing_tables._changes(past, candidate,
        healing_tables._diff_inputs(past, candidate))) -%}
    {{- return({'staged': staged, 'columns': candidate.columns}) -}}
{%- endmacro %}
