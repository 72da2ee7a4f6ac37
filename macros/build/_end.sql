{#- How a run ends: its row of the log, what it drops, what a refused one keeps. -#}

{#- Insert the run's row into the log and drop its side tables; only the candidate may be kept. `figures`: more columns
    of the row; `counted_in`: see _log_insert(). -#}
{% macro _end_run(run, status, figures, counted_in=none) -%}
    {%- do healing_tables._log_progress(run.target, 'writing its row of ' ~ run.log) -%}
    {%- set insert = healing_tables._log_insert(run.log, dict(healing_tables._log_row(run), status=status,
        finished_at=healing_tables._utc_now(), **figures), counted_in) -%}
    {%- if run.side_tables and healing_tables._has_scripts(run.settings.session) -%}
        {#- one script instead of several statements -#}
        {%- do healing_tables._run('begin\n' ~ insert ~ ';\ndrop table if exists '
            ~ run.side_tables | join(';\ndrop table if exists ') ~ ';\nend') -%}
        {%- do run.side_tables.clear() -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._run(insert) -%}
    {%- do healing_tables._drop_side_tables(run) -%}
{%- endmacro %}

{#- The row of the log, as far as the run has it. -#}
{% macro _log_row(run) -%}
    {%- set marks = {} -%}
    {%- for name, mark in healing_tables._kept_marks(run.marks).items() -%}
        {%- do marks.update({name: tojson(mark)}) -%}
    {%- endfor -%}
    {{- return({
        'dimension': run.target.identifier, 'relation': healing_tables._plain_names(run.target), 'mode': run.mode,
        'reason': run.reason, 'keys_affected': 0 if run.mode == 'heal' else none, 'high_water_marks': marks,
        'spec': run.definition, 'table_id': run.table_id, 'version_before': run.version_before,
        'started_at': run.started_at, 'invocation_id': invocation_id}) -}}
{%- endmacro %}

{#- Raise the error of a refused run. `candidate`: what can be looked at, or none; `reasons`: for the log. -#}
{% macro _refuse(run, mistakes, candidate=none, head='refused', reasons=none) -%}
    {%- do healing_tables._run(run.undo) if run.undo is not none -%}
    {%- set found = [] -%}
    {%- for mistake in mistakes -%} {%- do found.append(healing_tables._logged_mistake(mistake)) -%} {%- endfor -%}
    {%- set kept = healing_tables._keep_for_a_look(run, candidate) if candidate is not none else none -%}
    {%- set figures = candidate.figures if candidate is not none else {} -%}
    {%- do healing_tables._end_run(run, 'refused', dict(figures, reason=(reasons or found) | join('; '))) -%}
    {%- do healing_tables._raise_error(
        config.get('materialized') ~ ' ' ~ run.target ~ ': ' ~ head ~ '; the target is unchanged.', mistakes,
        'To look at it: ' ~ kept if kept is not none else none) -%}
{%- endmacro %}

{#- What a refused run keeps for inspection, as a sentence: a branch, or else a table. -#}
{% macro _keep_for_a_look(run, candidate) -%}
    {%- if candidate.query is not none and healing_tables._can_use_branch(run, candidate)
        and not healing_tables._is_sharded(run) -%}
        {%- set place = healing_tables._empty_branch(run) -%}
        {%- do healing_tables._run(healing_tables._insert_candidate(candidate, place, healing_tables._checked_select(
            run, dict(candidate, conditions=[], checks={})))) -%}
        {{- return('the whole candidate is in a branch of the table: select * from ' ~ place
            ~ '. The next build, or ' ~ healing_tables._drop_command() ~ ', drops the branch.') -}}
    {%- elif candidate.changes is not none -%}
        {%- do run.side_tables.remove(candidate.changes) if candidate.changes in run.side_tables -%}
        {{- return('the rows that differ from the stored ones, and those that violate a check, are kept in '
            ~ candidate.changes ~ '; dbt show --select ' ~ model.name ~ ' shows the whole candidate. '
            ~ healing_tables._drop_command() ~ ' drops the table.') -}}
    {%- elif candidate.table is not none -%}
        {{- return('the candidate ' ~ candidate.table ~ ' is kept. ' ~ healing_tables._drop_command()
            ~ ' drops it.') -}}
    {%- endif -%}
    {{- return('dbt show --select ' ~ model.name ~ ' shows the candidate.') -}}
{%- endmacro %}
