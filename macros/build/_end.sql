{#- How a build ends: its row of the log, what it drops, what a refused one keeps. -#}

{#- Insert the build's row into the log and drop its side tables; only the candidate may be kept. `more`, `counted_in`:
    see _log_insert(). -#}
{% macro _end_build(build, status, more, counted_in=none) -%}
    {%- do healing_tables._log_progress(build.target, 'writing its row of ' ~ build.log) -%}
    {%- set marks = {} -%}
    {%- for name, mark in healing_tables._kept_marks(build).items() -%}
        {%- do marks.update({name: tojson(mark)}) -%}
    {%- endfor -%}
    {%- set insert = healing_tables._log_insert(build.log, dict(build.log_row, high_water_marks=marks, status=status,
        finished_at=healing_tables._utc_now(), **more), counted_in) -%}
    {%- if build.side_tables and healing_tables._has_scripts(build.settings.session) -%}
        {#- one script instead of several statements -#}
        {%- do healing_tables._run('begin\n' ~ insert ~ ';\ndrop table if exists '
            ~ build.side_tables | join(';\ndrop table if exists ') ~ ';\nend') -%}
        {%- do build.side_tables.clear() -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._run(insert) -%}
    {%- do healing_tables._drop_side_tables(build) -%}
{%- endmacro %}

{#- Raise the error of a refused build. `has_candidate`: there is one to inspect. `reasons`: for the log. -#}
{% macro _refuse(build, mistakes, has_candidate=true, head='refused', reasons=none) -%}
    {%- set found = [] -%}
    {%- for mistake in mistakes -%} {%- do found.append(mistake.argument ~ ': ' ~ mistake.got) -%} {%- endfor -%}
    {%- set kept = healing_tables._keep_for_a_look(build) if has_candidate else none -%}
    {%- do healing_tables._end_build(build, 'refused', {'reason': (reasons or found) | join('; ')}) -%}
    {%- do healing_tables._raise_error(
        config.get('materialized') ~ ' ' ~ build.target ~ ': ' ~ head ~ '; the target is unchanged.', mistakes,
        'To look at it: ' ~ kept if kept is not none else none) -%}
{%- endmacro %}

{#- What a refused build keeps for inspection, as a sentence: a branch, or else its table of changes. -#}
{% macro _keep_for_a_look(build) -%}
    {%- if build.get('query') and healing_tables._can_use_branch(build) and not healing_tables._is_sharded(build) -%}
        {%- set place = healing_tables._empty_branch(build) -%}
        {%- do healing_tables._run(healing_tables._insert_candidate(build, place, healing_tables._checked_select(
            dict(build, conditions=[], settings=dict(build.settings, checks={}))))) -%}
        {{- return('the whole candidate is in a branch of the table: select * from ' ~ place
            ~ '. The next build, or ' ~ healing_tables._drop_command() ~ ', drops the branch.') -}}
    {%- elif build.get('changes') is not none -%}
        {%- do build.side_tables.remove(build.changes) if build.changes in build.side_tables -%}
        {{- return('the rows that differ from the stored ones, and those that violate a check, are kept in '
            ~ build.changes ~ '; dbt show --select ' ~ model.name ~ ' shows the whole candidate. '
            ~ healing_tables._drop_command() ~ ' drops the table.') -}}
    {%- elif build.get('is_written', true) -%}
        {{- return('the candidate ' ~ build.candidate ~ ' is kept. ' ~ healing_tables._drop_command()
            ~ ' drops it.') -}}
    {%- endif -%}
    {{- return('dbt show --select ' ~ model.name ~ ' shows the candidate.') -}}
{%- endmacro %}
