{#-
    A build that another writer has overtaken is made again: what it was compared with is no longer stored. A commit is
    seen by a look before the publishing statement, by Delta while that statement runs, or by a look after it.
-#}

{#- The limit of a merge, see retries.py. -#}
{% macro _attempts() -%} {{ return(30) }} {%- endmacro %}

{#-
    What others have done to the target since the build began, as texts. `own`: commits of the build itself that are
    there by now, each of which may have changed rows.
-#}
{% macro _other_writes(target, build, existing, stored, own) -%}
    {%- if not healing_tables._has_commits() or (stored and stored.get('provider') != 'delta') or build.created != target -%} {{ return([]) }} {%- endif -%}
    {%- if not healing_tables._is_there(target) -%} {{ return([] if not stored else ['DROP TABLE']) }} {%- endif -%}
    {%- if existing is not none and not stored -%} {{ return([]) }} {%- endif -%}
    {%- set before = build.version_before if build.version_before is not none else -1 -%}
    {%- if healing_tables._newest_version(target) < before -%} {{ return(['DROP TABLE, CREATE TABLE']) }} {%- endif -%}
    {%- set commits = healing_tables._commits_since(target, before) -%}
    {#- the log has this version: a commit that comes after this look is another writer's -#}
    {%- do build.update({'version_seen': commits | map(attribute='version') | max}) if commits -%}
    {%- set writes = healing_tables._told_writes(commits) -%}
    {{- return(writes if writes | length > own else []) -}}
{%- endmacro %}

{#- What is left of the attempt goes; after the last one the build fails. -#}
{% macro _lost_race(target, candidate, about, attempt, others, is_published=false) -%}
    {%- set told = others | join(', ') -%}
    {%- if attempt < healing_tables._attempts() -%}
        {%- do healing_tables._drop_side_tables(about.build) if about.build is defined -%}
        {%- do run_query('drop table if exists ' ~ candidate) -%}
        {%- do healing_tables._progress(target, 'attempt ' ~ attempt ~ ' met a commit of another writer (' ~ told ~ '); it begins again') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set remedy = 'run it again when fewer writers change the table' -%}
    {%- do healing_tables._mistake(
        mistakes, 'concurrent writers', 'an attempt without a commit of another writer', attempt ~ ' attempts that met one, at last: ' ~ told, remedy) -%}
    {%- if is_published -%}
        {#- without a row in the log, the next build rebuilds all keys -#}
        {{- exceptions.raise_compiler_error(
            config.get('materialized') ~ ' ' ~ target ~ ': published, but another writer was at work (' ~ told ~ '): rows of both may be there\n  remedy: ' ~ remedy) -}}
    {%- endif -%}
    {%- do healing_tables._refuse(target, candidate, about, mistakes) -%}
{%- endmacro %}

{#-
    Run a statement; who has overtaken it, as a list, or an empty list. Jinja cannot catch an error. A SQL script can: it returns a row if
    Delta refuses the commit because of another writer's (SQLSTATE 2D521). Every other error stays what it is. A Spark without scripts
    ends the build with the error.
-#}
{% macro _run_unless_overtaken(name, statement_text) -%}
    {%- if statement_text is none -%} {{ return([]) }} {%- endif -%}
    {%- set is_script = healing_tables._has_commits() and healing_tables._setting('spark.sql.scripting.enabled') | lower == 'true' -%}
    {%- call statement(name, fetch_result=is_script) -%}
{%- if is_script -%}
begin
    declare exit handler for sqlstate '2D521'
    begin
        select 'one that was committed while this one was written' as overtaken_by;
    end;
{{ statement_text }};
end
{%- else -%}
{{ statement_text }}
{%- endif -%}
    {%- endcall -%}
    {%- set answer = load_result(name)['table'] if is_script else none -%}
    {{- return([answer.rows[0]['overtaken_by']] if answer is not none and 'overtaken_by' in answer.column_names else []) -}}
{%- endmacro %}
