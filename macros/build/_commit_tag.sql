{#-
    The tag of a commit: a string in the commit itself that identifies the build. From it, the next build knows without
    reading the log that the table is as this package left it, even if the build was killed after its commit.
    Delta shows the tag in the history, in the predicate of a MERGE or in the properties that a statement sets. In
    Iceberg, it is a property of the table that names the snapshot.

    id           of the run (invocation_id)
    mode, spec   of the build, as in the log
    base         the version that the build compared with its rows, none if nothing was stored. The tag is ignored if
                 another writer changed rows between this version and the commit.
    row_count    the rows of the table, or none
    published_by   the id of the run whose publish the commit is, if that goes to an audit: another one has only
                 found the table unchanged
    marks        see _high_water_marks
-#}
{% macro _commit_tag(run, row_count, is_of_target=true, version=none) -%}
    {%- set tag = {
        'id': invocation_id, 'mode': run.mode, 'spec': run.definition,
        'base': run.version_before if is_of_target else none, 'row_count': row_count,
        'marks': healing_tables._kept_marks(run.marks)} -%}
    {%- set before = run.newest_tag if version is not none and run.newest_tag is not none
        and run.newest_tag.version == version else {} -%}
    {%- if version is not none -%}
        {%- do tag.update({'published_by': before.published_by}) if 'published_by' in before -%}
    {%- elif is_of_target and run.audit is not none and not run.audit.is_dated and not run.audit.is_left_out -%}
        {%- do tag.update({'published_by': invocation_id}) -%}
    {%- endif -%}
    {#- URL-encoded, with ~ for %, so that no client and no history has to escape it -#}
    {{- return(tojson(tag) | urlencode | replace('~', '%7E') | replace('%', '~')) -}}
{%- endmacro %}

{#- The tag as a table property, {} if the format has no tags. `version`: the version of the commit, or none if it is
    not known yet. -#}
{% macro _tag_properties(run, row_count=none, is_of_target=true, version=none) -%}
    {%- if not run.format.commits.has_tags -%} {{ return({}) }} {%- endif -%}
    {{- return({run.format.commits.tag_property(run.version_before if is_of_target else none, version):
        healing_tables._commit_tag(run, row_count, is_of_target, version)}) -}}
{%- endmacro %}

{#- The tag of a commit, or none. `parameters`: the operation's parameters in the history. -#}
{% macro _read_tag(parameters) -%}
    {%- set found = modules.re.search('~7B~22(?:base|id)~22~3A[A-Za-z0-9._~/-]+~7D', parameters) -%}
    {%- if not found -%} {{ return(none) }} {%- endif -%}
    {#- ~22 becomes \u0022, an escape in a JSON string -#}
    {{- return(fromjson(fromjson('"' ~ found.group(0) | replace('~', '\\u00') ~ '"') or 'null')) -}}
{%- endmacro %}

{#-
    The build that made the newest commit that changes rows, as _earlier_builds() returns it; none if the commit has no
    tag, or one that is ignored. `commits`: the newest commits of a table, newest first, without gaps; `is_ordered`:
    their versions are numbers without gaps. Otherwise a build commits only if nothing has changed since its base.
-#}
{% macro _tagged_build(commits, is_ordered=true) -%}
    {%- set newest, others, between = namespace(commit=none, tag=none, base_seen=not is_ordered), [], [] -%}
    {%- for commit in commits -%}
        {%- if newest.commit is none -%}
            {%- set tag = healing_tables._read_tag(commit.parameters) -%}
            {%- if tag is not none or commit.changes_rows -%}
                {%- set newest.commit, newest.tag = commit, tag -%}
            {%- else -%} {%- do others.append(commit) -%}
            {%- endif -%}
        {%- elif not newest.base_seen -%}
            {%- if newest.tag is not none and commit.version == newest.tag.base -%} {%- set newest.base_seen = true -%}
            {%- else -%} {%- do between.append(commit) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set commit, tag = newest.commit, newest.tag -%}
    {%- if tag is none or between | selectattr('changes_rows') | list
        or not (newest.base_seen or (tag.base is none and commits[-1].version == 0)) -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return({
        'last': {
            'mode': tag.mode, 'spec': tag.spec, 'table_id': tag.id, 'version_after': commit.version,
            'marks': tag.marks, 'is_tagged': true,
            'row_count': tag.row_count if tag.row_count is not none else commit.written_rows},
        'newest': commits[0].version, 'others': others}) -}}
{%- endmacro %}

{#- The tag of the newest of these commits that has one, with the `version` of the commit, or none. -#}
{% macro _newest_tag(commits) -%}
    {%- for commit in commits -%}
        {%- set tag = healing_tables._read_tag(commit.parameters) -%}
        {%- if tag is not none -%} {{ return(dict(tag, version=commit.version)) }} {%- endif -%}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}

{#- High-water marks without the fields that only this build needs. -#}
{% macro _kept_marks(marks) -%}
    {%- set passing = ['last_overlap', 'rows_without_time', 'new_rows', 'stored'] -%}
    {%- set all_kept = {} -%}
    {%- for name, mark in marks.items() -%}
        {%- set kept = {} -%}
        {%- for field, value in mark.items() if field not in passing -%}
            {%- do kept.update({field: value}) -%}
        {%- endfor -%}
        {%- do all_kept.update({name: kept}) -%}
    {%- endfor -%}
    {{- return(all_kept) -}}
{%- endmacro %}
