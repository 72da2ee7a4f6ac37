{#- Statements that another writer of the table may overtake. -#}

{#- The same limit as for a merge, see targets/retry.py. -#}
{% macro _max_attempts() -%} {{ return(30) }} {%- endmacro %}

{#- Run a statement. Returns a list of conflicts with other writers. If Spark has no SQL scripting, a conflict ends the
    build with an error. -#}
{% macro _run_or_conflict(run, name, statement_text) -%}
    {%- if statement_text is none -%} {{ return([]) }} {%- endif -%}
    {%- if not (run.format.has_commits and healing_tables._has_scripts(run.settings.session)) -%}
        {%- call statement(name) -%} {{ statement_text }} {%- endcall -%}
        {{- return([]) -}}
    {%- endif -%}
    {%- set caught = healing_tables._run_script(name, statement_text, {
        "sqlstate '2D521'": healing_tables._overtaken(), "sqlstate '42P01'": 'DROP TABLE'}) -%}
    {{- return([caught] if caught is not none else []) -}}
{%- endmacro %}

{#- The conflict behind SQLSTATE 2D521: Delta rejects a commit because of a concurrent one. -#}
{% macro _overtaken() -%} {{ return('one that was committed while this one was written') }} {%- endmacro %}

{#- Conflicts of a table in key buckets: other writers have changed its files since the build began. -#}
{% macro _changes_of_files(run) -%}
    {%- set table_id = run.table_id -%}
    {%- if table_id is none or not run.stored or run.format.has_commits -%} {{ return([]) }} {%- endif -%}
    {%- if not healing_tables._table_exists(run.target) -%} {{ return(['DROP TABLE']) }} {%- endif -%}
    {%- set now_there = healing_tables._table_id(run.target, healing_tables._table_details(run.target)) -%}
    {{- return(['its files have changed'] if now_there != table_id else []) -}}
{%- endmacro %}
