{#- Statements that another writer of the table may overtake. -#}

{#- The same limit as for a merge, see src/healing_tables/targets/retry.py; without its pauses. -#}
{% macro _max_attempts() -%} {{ return(30) }} {%- endmacro %}

{#- Run a statement. Returns a list of conflicts with other writers. If Spark has no SQL scripting, a conflict ends the
    build with an error. -#}
{% macro _run_or_conflict(run, name, statement_text) -%}
    {%- if statement_text is none -%} {{ return([]) }} {%- endif -%}
    {%- if not (run.format.has_commits and healing_tables._has_scripts(run.settings.session)) -%}
        {%- call statement(name) -%} {{ statement_text }} {%- endcall -%}
        {{- return([]) -}}
    {%- endif -%}
    {%- set caught = healing_tables._run_script(name, statement_text,
        {'overtaken': healing_tables._overtaken(), 'dropped': "sqlstate '42P01'"}) -%}
    {{- return(healing_tables._conflicts_of(caught)) -}}
{%- endmacro %}

{#- The condition with which Delta rejects a commit because of a concurrent one. -#}
{% macro _overtaken() -%} {{ return("sqlstate '2D521'") }} {%- endmacro %}

{#- The conflicts behind a handler of a script. -#}
{% macro _conflicts_of(caught) -%}
    {%- set texts = {'overtaken': 'one that was committed while this one was written', 'dropped': 'DROP TABLE'} -%}
    {{- return([texts[caught]] if caught in texts else []) -}}
{%- endmacro %}

{#- Conflicts of a table in key buckets: other writers have changed its files since the build began. -#}
{% macro _changes_of_files(run) -%}
    {%- set table_id = run.table_id -%}
    {%- if table_id is none or not run.stored or run.format.has_commits -%} {{ return([]) }} {%- endif -%}
    {%- if not healing_tables._table_exists(run.target) -%} {{ return(['DROP TABLE']) }} {%- endif -%}
    {%- set now_there = healing_tables._table_id(run.target, healing_tables._table_details(run.target)) -%}
    {{- return(['its files have changed'] if now_there != table_id else []) -}}
{%- endmacro %}
