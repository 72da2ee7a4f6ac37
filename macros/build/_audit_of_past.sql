{#- What an audit lacks when a build begins: the publish of one that was killed, and what others have changed. -#}

{#- The run with its audit, which has all that was published before; without the option, as it is. `own`: the version
    that the run itself has just published, if its commit does not name the run. -#}
{% macro _with_audit(run, own=none) -%}
    {%- set audit, mistakes = healing_tables._audit_of_build(run), [] -%}
    {%- if audit is none -%} {{ return(run) }} {%- endif -%}
    {%- set run = dict(run, audit=audit) -%}
    {%- do healing_tables._ensure_audit(run, mistakes, audit)
        if not run.is_as_left or not healing_tables._table_exists(audit.table) -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {%- for commit in healing_tables._commits_to_audit(run, own) -%}
        {%- do healing_tables._mistake(mistakes, audit.table | string, 'the audit of version ' ~ commit.version,
            'none: its merge was stopped before', 'run the merge once more: it adds what that one lacks')
            if commit.is_merged -%}
        {%- do healing_tables._raise_mistakes('audit', mistakes) -%}
        {%- set found = healing_tables._difference_of_versions(run, run.target ~ ' version as of ' ~ commit.before
            if commit.before is not none else none, run.target ~ ' version as of ' ~ commit.version) -%}
        {%- set past = run if commit.is_ours else dict(run, audit=dict(audit, options={'actor': 'unknown'})) -%}
        {%- do healing_tables._log_progress(run.target, 'adding to its audit version ' ~ commit.version
            ~ (', whose build was stopped' if commit.is_ours else ', which is of another writer'))
            if commit.id != invocation_id -%}
        {%- do healing_tables._write_audit(past, found, commit.id, commit) -%}
        {#- if nothing differed, Delta has no commit of the audit: without this, the next build would compare again -#}
        {%- do healing_tables._run('alter table ' ~ audit.table ~ ' set ' ~ healing_tables._properties_clause(
            {'healing_tables.written_by': healing_tables._publish_id(commit.id, commit.version)}))
            if run.format.commits.shows_predicates -%}
    {%- endfor -%}
    {{- return(run) -}}
{%- endmacro %}

{#-
    The commits that change rows after the newest one in the audit, oldest first, with their `id` there, `is_ours` (of a
    run with an audit) and the version `before`, or none. An audit without any publish begins with the builds that say
    so in their tags.
-#}
{% macro _commits_to_audit(run, own) -%}
    {%- set missing, at = [], namespace(is_known=not run.recent, has_any=none) -%}
    {%- for commit in run.recent or [] -%}
        {%- if commit.changes_rows and not at.is_known -%}
            {%- set tag = healing_tables._read_tag(commit.parameters) or {} -%}
            {%- set id = invocation_id if commit.version == own
                else tag.get('published_by') or 'others/' ~ commit.version -%}
            {%- set ids = [id] + (modules.re.findall('[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}', commit.parameters)
                if id.startswith('others/') else []) -%}
            {%- if healing_tables._has_audit_of(run.format, run.audit, ids, commit.version, commit) -%}
                {%- set at.is_known = true -%}
            {%- else -%}
                {%- set at.has_any = healing_tables._has_rows('(select 1 from ' ~ run.audit.table
                    ~ ' where publish_no is not null)') if at.has_any is none else at.has_any -%}
                {%- set at.is_known = not at.has_any and 'published_by' not in tag and commit.version != own -%}
                {%- set before = run.recent[loop.index].version if loop.index < run.recent | length else none -%}
                {%- do missing.insert(0, dict(commit, id=id, is_ours=not id.startswith('others/'),
                    is_merged=((tag.get('marks') or {}).get('changes') or {}).get('is_audited', false)
                        and tag.base | string != commit.version | string, before=before))
                    if not at.is_known -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {#- Delta lists only the newest commits -#}
    {%- if missing and ((not at.is_known and run.format.commits.has_ordered_versions and run.recent[-1].version != 0)
        or run.format.commits.may_be_gone(missing, run.stored)) -%}
        {%- do exceptions.warn(healing_tables._plain_names(run.target ~ ': its audit lacks versions '
            ~ missing[0].version ~ ' to ' ~ missing[-1].version ~ ', since older ones may be gone')) -%}
        {{- return([]) -}}
    {%- endif -%}
    {{- return(missing) -}}
{%- endmacro %}
