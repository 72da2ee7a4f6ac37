{#- An operation that publishes as a build does, and the audit of what it has published. -#}

{#- Its run, see build/_begin.sql. `settings`: see _settings_of_rows(). -#}
{% macro _run_of_operation(mode, target, stored, settings) -%}
    {%- set format = healing_tables._stored_format(stored) -%}
    {{- return({
        'settings': settings, 'target': target, 'format': format, 'existing': target, 'stored': stored, 'mode': mode,
        'definition': none, 'marks': {}, 'newest_tag': none, 'is_as_left': false, 'listed_keys': none,
        'candidate_table': healing_tables._candidate_relation(target), 'side_tables': [], 'undo': none,
        'version_before': healing_tables._table_version(target, stored), 'started_at': healing_tables._utc_now(),
        'recent': format.commits.newest(target), 'audit': none}) -}}
{%- endmacro %}

{#- The run of an operation on a table whose model has an audit, which has all that was published before; or none. -#}
{% macro _begin_audit_of_operation(mode, target, node, stored, key_columns) -%}
    {%- set mistakes, format = [], healing_tables._stored_format(stored) -%}
    {%- if node is none or format is none or not format.has_commits
        or healing_tables._option('audit', none) is none -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set settings = dict(healing_tables._settings_of_rows(mistakes, healing_tables._metadata_of_table(mistakes,
        node), stored.columns, format), key_columns=key_columns) -%}
    {%- do healing_tables._raise_mistakes(mode, mistakes) -%}
    {{- return(healing_tables._with_audit(healing_tables._run_of_operation(mode, target, stored, settings))) -}}
{%- endmacro %}

{#- Add the newest commit to the audit; before the run has published, the audit must have all others. -#}
{% macro _audit_of_operation(run, reason) -%}
    {%- set recent = run.format.commits.newest(run.target) -%}
    {%- do healing_tables._with_audit(dict(run, recent=recent, settings=dict(run.settings,
        audit=dict(run.settings.audit, reason=reason))), (recent | selectattr('changes_rows') | first).version) -%}
{%- endmacro %}

{#- Note that the newest commit needs no audit: the next build does not compare it with the version before, whose files
    may be gone by then. -#}
{% macro _note_no_audit(run) -%}
    {%- set newest = (run.format.commits.newest(run.target) | selectattr('changes_rows') | first).version -%}
    {%- do healing_tables._run('alter table ' ~ run.audit.table ~ ' set ' ~ healing_tables._properties_clause(
        {'healing_tables.written_by': healing_tables._publish_id('others/' ~ newest, newest)})) -%}
{%- endmacro %}
