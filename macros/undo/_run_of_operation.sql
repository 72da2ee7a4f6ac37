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

{#- Add the newest commit to the audit; before the run has published, the audit must have all others. -#}
{% macro _audit_of_operation(run, reason) -%}
    {%- set recent = run.format.commits.newest(run.target) -%}
    {%- do healing_tables._with_audit(dict(run, recent=recent, settings=dict(run.settings,
        audit=dict(run.settings.audit, reason=reason))), (recent | selectattr('changes_rows') | first).version) -%}
{%- endmacro %}
