{#-
    The tag of a commit: which build made it, as a text in the commit itself. So the next build need not read the log to
    know that what is stored is as this package has left it, and a build that was killed after its commit is known too.
    Delta shows the tag in the history, in the predicate of a MERGE or in the properties that a statement sets.

    id           of the run (invocation_id)
    mode, spec   of the build, as in the log
    base         the version that the build has compared with its rows, none if nothing was stored. If another writer
                 has changed rows between it and the commit, the tag does not count.
    row_count    the rows of the table, or none
    marks        see _high_water_marks
-#}
{% macro _commit_tag(build, row_count) -%}
    {#- encoded as in a URL, with ~ for %: no client and no history has to escape any of it -#}
    {{- return(tojson({
        'id': invocation_id, 'mode': build.log_row.mode, 'spec': build.log_row.spec,
        'base': build.log_row.version_before if build.created == build.target else none, 'row_count': row_count,
        'marks': healing_tables._kept_marks(build)}) | urlencode | replace('~', '%7E') | replace('%', '~')) -}}
{%- endmacro %}

{#- The tag as a table property, {} where the format has no tags. -#}
{% macro _tag_properties(build, row_count=none) -%}
    {{- return({'healing_tables.build': healing_tables._commit_tag(build, row_count)}
        if build.format.has_commit_tags else {}) -}}
{%- endmacro %}

{#- The tag of a commit, or none. `parameters`: those of its operation, as the history has them. -#}
{% macro _read_tag(parameters) -%}
    {%- set found = modules.re.search('~7B~22id~22~3A[A-Za-z0-9._~/-]+~7D', parameters) -%}
    {%- if not found -%} {{ return(none) }} {%- endif -%}
    {#- ~22 is \u0022 in a text of JSON -#}
    {{- return(fromjson(fromjson('"' ~ found.group(0) | replace('~', '\\u00') ~ '"') or 'null')) -}}
{%- endmacro %}

{#-
    What the newest commit that changes rows says of its build, as _earlier_builds() returns it; none if it has no tag,
    or one that does not count. `commits`: the newest of a table, newest first, without a gap.
-#}
{% macro _tagged_build(commits) -%}
    {%- set newest = namespace(commit=none, tag=none) -%}
    {%- for commit in commits if newest.commit is none -%}
        {%- set tag = healing_tables._read_tag(commit.parameters) -%}
        {%- if tag is not none or commit.changes_rows -%}
            {%- set newest.commit, newest.tag = commit, tag -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set commit, tag = newest.commit, newest.tag -%}
    {%- if tag is none -%} {{ return(none) }} {%- endif -%}
    {%- set base = -1 if tag.base is none else tag.base -%}
    {%- set between = commits | selectattr('version', 'gt', base) | selectattr('version', 'lt', commit.version)
        | list -%}
    {%- if between | selectattr('changes_rows') | list or between | length != commit.version - base - 1 -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return({
        'last': {
            'mode': tag.mode, 'spec': tag.spec, 'table_id': tag.id, 'version_after': commit.version,
            'marks': tag.marks, 'is_tagged': true,
            'row_count': tag.row_count if tag.row_count is not none else commit.written_rows},
        'newest': commits[0].version,
        'others': commits | selectattr('version', 'gt', commit.version) | list}) -}}
{%- endmacro %}
