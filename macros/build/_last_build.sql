{#- The last build of a table, and later commits to the table. Whether there are any decides if the table can be healed,
    if its hashes are trusted (_new_candidate), and if the row count in the log is. -#}

{#-
    What is known about the builds of the stored table, {last, newest, others, newest_tag, recent (see _begin.sql)}:

    last      the newest successful build, or none: mode, spec, marks, row_count (rows of the table after it, or none),
              table_id; is_tagged: the stored table still has the rows of this build
    newest    the number of the newest commit of the stored table, or none
    others    commits after the last build, newest first; none if they are not known

    Commits of builds have a tag [see _commit_tag.sql]. The log is read only if the format has no tags, or if another
    writer made the newest commit that changed rows.
-#}
{% macro _earlier_builds(run) -%}
    {%- set format = healing_tables._stored_format(run.stored) -%}
    {%- set nothing = {'last': none, 'newest': none, 'others': none, 'newest_tag': none, 'recent': none} -%}
    {%- if not run.stored -%} {{ return(nothing) }} {%- endif -%}
    {%- set newest_tag, commits = none, none -%}
    {%- if format is not none and format.commits.has_tags -%}
        {%- set commits = format.commits.newest(run.existing) -%}
        {%- set is_ordered = format.commits.has_ordered_versions -%}
        {%- set found = healing_tables._tagged_build(commits, is_ordered) -%}
        {%- set newest_tag = healing_tables._newest_tag(commits) -%}
        {#- the newest commits may all be from OPTIMIZE and VACUUM -#}
        {%- if found is none and not commits | selectattr('changes_rows') | list -%}
            {%- set found = healing_tables._tagged_build(format.commits.newest(run.existing, none), is_ordered) -%}
        {%- endif -%}
        {%- if found is not none -%} {{ return(dict(found, newest_tag=newest_tag, recent=commits)) }} {%- endif -%}
    {%- endif -%}
    {%- set last = healing_tables._logged_build(run.target, run.log) -%}
    {{- return(dict(healing_tables._commits_after(run.existing, format, last), last=last, newest_tag=newest_tag,
        recent=commits)) -}}
{%- endmacro %}

{#- The newest successful build of this table in the log, or none. -#}
{% macro _logged_build(target, log) -%}
    {%- set found = run_query(
        'select mode, spec, table_id, version_after, to_json(high_water_marks) as marks, rows_added + rows_changed'
        ~ ' + rows_unchanged as row_count from ' ~ log ~ ' where '
        ~ healing_tables._log_condition(target)
        ~ " and status in ('published', 'unchanged') and mode in ('rebuild', 'heal', 'sample')"
        ~ ' order by finished_at desc limit 1').rows -%}
    {%- if not found -%} {{ return(none) }} {%- endif -%}
    {%- set row = found[0] -%}
    {%- set marks = {} -%}
    {%- for name, text in fromjson(row['marks'] or '{}').items() if text and text.startswith('{') -%}
        {%- do marks.update({name: fromjson(text)}) -%}
    {%- endfor -%}
    {{- return({
        'mode': row['mode'], 'spec': row['spec'], 'table_id': row['table_id'], 'version_after': row['version_after'],
        'marks': marks, 'row_count': row['row_count'], 'is_tagged': false}) -}}
{%- endmacro %}

{#- {newest, others} as in _earlier_builds(). -#}
{% macro _commits_after(existing, format, last) -%}
    {%- if format is none or not format.has_commits -%} {{ return({'newest': none, 'others': none}) }} {%- endif -%}
    {%- set others = none if last is none or last.version_after is none
        else format.commits.since(existing, last.version_after | int) -%}
    {{- return({'others': others, 'newest': format.commits.newest_version(existing) if others is none
        else others[0].version if others else last.version_after | int}) -}}
{%- endmacro %}

{#- Why the stored table may have changed since the last build of this definition; none if it has not. -#}
{% macro _changed_since_last_build(run) -%}
    {%- set last = run.last -%}
    {%- if last is none -%} {{ return('the log has no build of this table') }} {%- endif -%}
    {%- if last.mode == 'sample' -%} {{ return('the last build was one with --empty or --sample') }} {%- endif -%}
    {%- if last.mode == 'undo' -%} {{ return('the last publish was an undo') }} {%- endif -%}
    {%- if last.spec != run.definition -%}
        {{- return('the definition, or a type of its sources, has changed since the last build') -}}
    {%- endif -%}
    {%- if last.is_tagged -%} {{ return(none) }} {%- endif -%}
    {%- set others = (run.commits or []) | selectattr('changes_rows') | map(attribute='operation') | unique | list -%}
    {%- if others -%}
        {{- return('the stored table has commits that are not in the log (' ~ (others | join(', '))
            ~ '): a killed build, or another writer') -}}
    {%- endif -%}
    {%- if last.table_id != run.table_id
        or 'healing_tables.spec=' not in run.stored.get('properties', '') -%}
        {{- return('the stored table is not the one that the last build wrote') -}}
    {%- endif -%}
    {%- if run.commits is none and (run.format.has_commits or last.table_id is none) -%}
        {{- return('the history of the stored table does not reach back to the last build') -}}
    {%- endif -%}
    {{- return('no build of this definition has made the newest commit of the stored table'
        if run.format.commits.has_tags else none) -}}
{%- endmacro %}
