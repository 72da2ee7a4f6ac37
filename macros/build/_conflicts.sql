{#-
    A build is retried after a concurrent commit, because the rows that it was compared with are no longer stored. Delta
    detects the commit while the publishing statement runs, or the build detects it afterwards; if that statement
    replaces the whole table, the build also checks before it. On Iceberg, publishing the branch fails (formats/), in
    key buckets the files are compared (_changes_of_files in swap/_retry.sql).
-#}

{#-
    The commits to the target since the build began: {conflicts (strings: commits of other writers), version (the newest
    number, or none), at (its moment), written_rows (by that commit, or none)}. `own_commits`: the number of commits
    that the build has made itself, each of which may have changed rows; `exists`: whether the target exists; `created`:
    the table that it has made. This version is written to the log: a later commit is another writer's.
-#}
{% macro _look_at_commits(run, own_commits, exists, created=none) -%}
    {%- set nothing = {'conflicts': [], 'version': none, 'at': none, 'written_rows': none} -%}
    {%- set stored_format = healing_tables._stored_format(run.stored) -%}
    {%- set is_comparable = run.format.has_commits and (created or run.target) == run.target
        and (not run.stored or (stored_format is not none and stored_format.has_commits)) -%}
    {%- if not is_comparable -%} {{ return(nothing) }} {%- endif -%}
    {%- if not exists -%}
        {{- return(dict(nothing, conflicts=['DROP TABLE'] if run.stored else [])) -}}
    {%- endif -%}
    {%- if run.existing is not none and not run.stored -%} {{ return(nothing) }} {%- endif -%}
    {%- set commits = run.format.commits.since(run.target, run.version_before) -%}
    {%- if commits is none -%} {{ return(dict(nothing, conflicts=['DROP TABLE, CREATE TABLE'])) }} {%- endif -%}
    {%- set changing = [] -%}
    {%- for commit in commits if commit.changes_rows -%}
        {%- do changing.append('version ' ~ commit.version ~ ' (' ~ commit.operation ~ ')') -%}
    {%- endfor -%}
    {{- return({
        'conflicts': changing if changing | length > own_commits else [],
        'version': commits[0].version if commits else run.version_before, 'at': (commits | first or {}).get('at'),
        'written_rows': commits[0].written_rows if commits else none}) -}}
{%- endmacro %}

{#- The attempt gets its row in the log, and what it has written is dropped; after the last one the run fails.
    `candidate`: see _refuse(). -#}
{% macro _after_conflict(run, attempt, conflicts, candidate, is_published=false) -%}
    {%- set found = conflicts | join(', ') -%}
    {%- set is_last = attempt == healing_tables._max_attempts() -%}
    {%- if not is_last or is_published -%}
        {%- do healing_tables._drop_side_tables(run) -%}
        {%- do healing_tables._run('drop table if exists ' ~ run.candidate_table) -%}
    {%- endif -%}
    {%- if not is_last -%}
        {%- do healing_tables._log_progress(
            run.target, 'attempt ' ~ attempt ~ ' found a commit of another writer (' ~ found ~ '); it retries') -%}
        {%- do healing_tables._end_run(run, 'retried',
            dict(candidate.figures, reason='a commit of another writer: ' ~ found)) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set remedy = 'run it again when fewer writers change the table' -%}
    {%- do healing_tables._mistake(
        mistakes, 'concurrent writers', 'an attempt without a commit of another writer in between',
        attempt ~ ' attempts with such a commit, the last one: ' ~ found, remedy) -%}
    {%- if is_published -%}
        {#- without a row in the log, the next build rebuilds all keys -#}
        {%- do healing_tables._raise_error(
            config.get('materialized') ~ ' ' ~ run.target
            ~ ': published, but another writer has committed, too: the table may have rows of both.', mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._refuse(run, mistakes, candidate) -%}
{%- endmacro %}
