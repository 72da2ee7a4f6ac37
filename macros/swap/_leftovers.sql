{#- What builds that were refused or killed have left: candidates, as tables or as branches. -#}

{#- Report candidates (tables or branches) of builds without a row in the log, and drop branches of ended ones.
    `tables`: the names of the tables in the target's schema. -#}
{% macro _report_leftovers(run, tables) -%}
    {%- set leftovers = [] -%}
    {%- for name in healing_tables._tables_of_other_runs(run.target, tables) | sort -%}
        {%- do leftovers.append({'kind': 'table', 'name': name, 'id': healing_tables._run_of_candidate(name)}) -%}
    {%- endfor -%}
    {%- set stored_format = healing_tables._stored_format(run.stored) -%}
    {%- for branch in (stored_format.branches.leftovers(run.existing) if stored_format is not none else []) -%}
        {%- do leftovers.append({'kind': 'branch', 'name': branch.name, 'id': branch.id}) -%}
    {%- endfor -%}
    {%- if not leftovers -%} {{ return(none) }} {%- endif -%}
    {%- set ended, reported = healing_tables._ended_runs(run.target, run.log), [] -%}
    {%- for left in leftovers -%}
        {%- if left.id in ended -%}
            {%- do stored_format.branches.drop(run.existing, left.name) if left.kind == 'branch' -%}
        {%- elif left.id not in reported -%}
            {%- do reported.append(left.id) -%}
            {%- do healing_tables._log_progress(
                run.target, 'another build of it was killed or is running: its ' ~ left.kind ~ ' ' ~ left.name
                ~ ' exists, and the log has no row for it') -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- The names of the tables in the schema of a table. -#}
{% macro _tables_beside(relation) -%}
    {%- set tables = run_query('show tables in ' ~ relation.without_identifier()).rows -%}
    {{- return(tables | map(attribute='tableName') | list) -}}
{%- endmacro %}

{#- Those of these names that are tables of other runs, left behind or still being written: candidates with their
    side tables, rekeys, backups. -#}
{% macro _tables_of_other_runs(relation, tables, what='candidate') -%}
    {%- set prefix = relation.identifier | lower ~ '__' ~ what ~ '_' -%}
    {%- set own = prefix ~ invocation_id | replace('-', '') -%}
    {%- set names = [] -%}
    {#- the id of a run, or its first eight digits -#}
    {%- for name in tables if name.startswith(prefix) and not name.startswith(own)
        and modules.re.match('[0-9a-f]{8}([0-9a-f]{24})?(_|$)', name[prefix | length:]) -%}
        {%- do names.append(name) -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{#- The run of a candidate. The name of its side table goes on after the id; that table may be the only one left. -#}
{% macro _run_of_candidate(name) -%}
    {{- return(name.split('__candidate_')[-1].split('_')[0]) -}}
{%- endmacro %}

{#- The runs of which the log has a row that is not an attempt: they no longer write. invocation_id without dashes. -#}
{% macro _ended_runs(relation, log) -%}
    {%- set found = [] -%}
    {%- for row in run_query('select distinct invocation_id from ' ~ log ~ " where status <> 'retried' and "
        ~ healing_tables._log_condition(relation)).rows -%}
        {%- do found.append(row[0] | replace('-', '')) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#-
    Candidates of other runs, beside the table or as branches of it: {relation, branch (name, or none), age (text),
    may_be_running (it is younger than `build_hours`, and the log has no end of its run)}. The age is that of the
    newest file; a table without rows, or a branch without a commit, counts as new.
-#}
{% macro _candidates_of(relation, format, build_hours) -%}
    {%- set found = [] -%}
    {%- set names = healing_tables._tables_of_other_runs(relation, healing_tables._tables_beside(relation)) -%}
    {%- set branches = format.branches.leftovers(relation) if format is not none else [] -%}
    {%- set log = healing_tables._log_of(relation, healing_tables._option('log_schema', none)) -%}
    {%- set ended = healing_tables._ended_runs(relation, log)
        if (names or branches) and load_relation(log) is not none else [] -%}
    {%- for name in names -%}
        {%- set candidate = api.Relation.create(database=relation.database, schema=relation.schema, identifier=name,
            type='table') -%}
        {%- set own_format = healing_tables._stored_format(healing_tables._table_details(candidate))
            or healing_tables._no_format() -%}
        {%- set hours = run_query('select (unix_micros(now()) - ' ~ own_format.files.written_at(candidate)
            ~ ') / 3600000000 as hours').rows[0]['hours'] -%}
        {%- do found.append({
            'relation': candidate, 'branch': none,
            'age': 'without rows' if hours is none else '%.1f hours old' | format(hours | float),
            'may_be_running': build_hours > 0 and (hours or 0) | float < build_hours
                and healing_tables._run_of_candidate(name) not in ended}) -%}
    {%- endfor -%}
    {%- for branch in branches -%}
        {%- do found.append({
            'relation': 'branch ' ~ branch.name, 'branch': branch.name,
            'age': 'without a commit of its own' if branch.hours is none else '%.1f hours old' | format(branch.hours),
            'may_be_running': build_hours > 0 and (branch.hours or 0) < build_hours and branch.id not in ended}) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- The command that drops the candidates of all models. `is_forced`: also those whose build may be running. -#}
{% macro _drop_command(is_forced=false) -%}
    {{- return('dbt run-operation healing_tables.drop_candidates'
        ~ (" --args '{build_hours: 0}'" if is_forced)) -}}
{%- endmacro %}

{#- A running build is detected by its candidate, once that is written. `force`: of an operation that has it. -#}
{% macro _check_no_build(mistakes, candidates, build_hours, force=none) -%}
    {%- for candidate in candidates if candidate.may_be_running and not force -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'no running build: no candidate younger than ' ~ build_hours
            ~ ' hours (build_hours)',
            candidate.relation ~ ', ' ~ candidate.age,
            'wait for that build; if it was killed, ' ~ ('add force: true, or ' if force is not none)
            ~ 'drop what it has left: ' ~ healing_tables._drop_command(true)) -%}
    {%- endfor -%}
{%- endmacro %}

{#- The name that this run gives a table it writes beside another one. -#}
{% macro _candidate_relation(target) -%}
    {{- return(api.Relation.create(
        database=target.database, schema=target.schema, type='table',
        identifier=target.identifier ~ '__candidate_' ~ invocation_id | replace('-', ''))) -}}
{%- endmacro %}

{#- If a build was killed between the two renames, the rows are still in the backup. -#}
{% macro _warn_about_backups(target, tables) -%}
    {%- set kept = healing_tables._tables_of_other_runs(target, tables, 'before') -%}
    {%- if kept -%}
        {%- do healing_tables._log_progress(
            target, 'no table has this name; the table that had it before is kept as ' ~ (kept | sort | join(', '))
            ~ '; a build may have been killed while it replaced that table') -%}
    {%- endif -%}
{%- endmacro %}
