{#- What an audit lacks when a build begins: the publish of one that was killed, and what others have changed. -#}

{#- The run with its audit, which has all that was published before; without the option, as it is. -#}
{% macro _with_audit(run) -%}
    {%- set audit, mistakes = healing_tables._audit_of_build(run), [] -%}
    {%- if audit is none -%} {{ return(run) }} {%- endif -%}
    {%- set run = dict(run, audit=audit) -%}
    {%- do healing_tables._ensure_audit(run, mistakes, audit)
        if not run.is_as_left or not healing_tables._table_exists(audit.table) -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {%- do healing_tables._complete_audit_of_build(run) -%}
    {%- do healing_tables._audit_others(run) -%}
    {{- return(run) -}}
{%- endmacro %}

{#- Add the publish of a build that was killed after its commit. -#}
{% macro _complete_audit_of_build(run) -%}
    {%- set tag = run.newest_tag or {} -%}
    {%- if not tag.get('is_audited') -%} {{ return(none) }} {%- endif -%}
    {%- if healing_tables._has_audit_of(run.format, run.audit, tag.id, tag.version) -%} {{ return(none) }} {%- endif -%}
    {%- set commits = healing_tables._commits_to_audit(run, run.format.commits.before(tag.version, tag.base)) -%}
    {%- set commit = commits | selectattr('version', 'equalto', tag.version) | first -%}
    {%- if commit is undefined -%} {{ return(none) }} {%- endif -%}
    {%- do healing_tables._log_progress(run.target, 'adding the audit of version ' ~ tag.version
        ~ ', whose build was stopped') -%}
    {%- do healing_tables._write_audit(
        run, healing_tables._difference_of_commit(run, tag.version, tag.base), tag.id, commit) -%}
{%- endmacro %}

{#- Add what others have changed since the last publish, with an unknown actor. -#}
{% macro _audit_others(run) -%}
    {%- if not run.stored or run.last is none or run.last.version_after is none
        or not (run.commits or []) | selectattr('changes_rows') | list -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set id, since = 'others/' ~ run.version_before, run.last.version_after | int -%}
    {#- a build that was refused may have added some of it -#}
    {%- set newest = run_query('select max_by(batch_id, publish_no) as id from ' ~ run.audit.table).rows[0]['id'] or ''
        -%}
    {%- set since = newest.split('/')[1] | int if newest.startswith('others/') else since -%}
    {%- if since == run.version_before -%} {{ return(none) }} {%- endif -%}
    {%- set commits = healing_tables._commits_to_audit(run, since) -%}
    {%- if not commits -%} {{ return(none) }} {%- endif -%}
    {%- set found = healing_tables._difference_of_versions(run, run.target ~ ' version as of ' ~ since,
        run.target ~ ' version as of ' ~ run.version_before) -%}
    {%- set past = dict(run, audit=dict(run.audit, options=dict(run.audit.options, actor='unknown', reason=none,
        source=none))) -%}
    {%- do healing_tables._log_progress(run.target, 'adding to its audit what others have changed since version '
        ~ since) -%}
    {%- do healing_tables._write_audit(past, found, id, dict(commits | selectattr('changes_rows') | first,
        version=run.version_before)) -%}
{%- endmacro %}

{#- The commits after a version, [] with a warning if that version cannot be read any more. -#}
{% macro _commits_to_audit(run, since) -%}
    {%- set commits = run.format.commits.since(run.existing, since) -%}
    {%- if commits is none or run.format.commits.may_be_gone(commits, run.stored) -%}
        {%- do exceptions.warn(healing_tables._plain_names(run.target ~ ': its audit lacks what has changed since '
            ~ 'version ' ~ since ~ ', which may be gone')) -%}
        {{- return([]) -}}
    {%- endif -%}
    {{- return(commits) -}}
{%- endmacro %}
