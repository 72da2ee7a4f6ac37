{#- Statements that another writer of the table may overtake. -#}

{#- The same limit as for a merge, see targets/retry.py. -#}
{% macro _max_attempts() -%} {{ return(30) }} {%- endmacro %}

{#- Run a statement. Returns a list of conflicts with other writers. If Spark has no SQL scripting, a conflict ends the
    build with an error. -#}
{% macro _run_or_conflict(build, name, statement_text) -%}
    {%- if statement_text is none -%} {{ return([]) }} {%- endif -%}
    {%- if not (build.format.has_commits and healing_tables._has_scripts(build.settings.session)) -%}
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
{% macro _changes_of_files(build) -%}
    {%- set table_id = build.log_row.table_id -%}
    {%- if table_id is none or not build.stored or build.format.has_commits -%} {{ return([]) }} {%- endif -%}
    {%- if not healing_tables._table_exists(build.target) -%} {{ return(['DROP TABLE']) }} {%- endif -%}
    {%- set now_there = healing_tables._table_id(build.target, healing_tables._table_details(build.target)) -%}
    {{- return(['its files have changed'] if now_there != table_id else []) -}}
{%- endmacro %}
