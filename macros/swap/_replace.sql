{#-
    Replace a table that one statement cannot turn into the target: it has another format, or this model did not build
    it. The new table is created beside it and then takes its name, so that a build that is killed in between loses no
    rows.

    name               1. create              2. rename              3. rename              4. drop, unless it is kept
    dim                old rows               -                      new rows               new rows
    dim__before_1a2b   -                      old rows               old rows               -
    dim__candidate_..  new rows               new rows               -                      -
-#}

{#- A name of this run for the table that takes the target's name later. -#}
{% macro _table_beside(run) -%}
    {%- do healing_tables._log_progress(
        run.target, 'the ' ~ run.existing.type
        ~ ' that has this name cannot become this table in one step: the new table is created beside it and then takes '
        'its name') if run.existing is not none -%}
    {{- return(run.candidate_table.incorporate(path={'identifier': run.candidate_table.identifier ~ '_new'})) -}}
{%- endmacro %}

{#- Rename the new table to the target. An existing view is dropped, since it has no rows to lose. -#}
{% macro _rename_into_place(run, created) -%}
    {%- if created == run.target -%} {{ return(none) }} {%- endif -%}
    {%- set backup = healing_tables._backup_relation(run.target) -%}
    {%- if run.existing is not none and run.existing.is_table -%}
        {%- do adapter.rename_relation(run.existing, backup) -%}
    {%- elif run.existing is not none -%} {%- do adapter.drop_relation(run.existing) -%}
    {%- endif -%}
    {%- do adapter.rename_relation(created, run.target) -%}
    {%- if run.existing is none -%} {{ return(none) }} {%- endif -%}
    {%- if run.keeps_foreign -%} {%- do healing_tables._log_progress(run.target,
        'the table that had this name is kept as ' ~ backup) -%}
    {%- elif run.existing.is_table -%} {%- do adapter.drop_relation(backup) -%}
    {%- endif -%}
{%- endmacro %}

{#- The backup name of a table while it is replaced, or permanently if it is kept. -#}
{% macro _backup_relation(target) -%}
    {{- return(target.incorporate(path={'identifier': target.identifier ~ '__before_' ~ invocation_id[:8]})) -}}
{%- endmacro %}

{#- Whether the new table would have the same location as the stored one. -#}
{% macro _is_same_location(stored, target) -%}
    {%- set root = config.get('location_root') -%}
    {%- set places = [] -%}
    {%- for place in [stored.get('location') or '', (root or '') ~ '/' ~ target.identifier] -%}
        {%- do places.append(modules.re.sub('^[a-z0-9]+:/*|^/+', '', place) | string) -%}
    {%- endfor -%}
    {{- return(root is not none and places[0] == places[1]) -}}
{%- endmacro %}

{#- The mistake of a table that another program has created. `naming`: how to name its columns in the model. -#}
{% macro _foreign_table_mistake(mistakes, target, wanted, columns, naming) -%}
    {%- do healing_tables._mistake(
        mistakes, 'the table ' ~ target, 'a table that this model has built, or one with the columns '
        ~ (wanted | join(', ')),
        'a table with rows that is not in healing_log, with the columns ' ~ (columns | join(', ')),
        naming ~ "; or give the model another name (alias); or replace the table once: --vars '{allow_replace: true}', "
        "which keeps it as "
        ~ healing_tables._backup_relation(target)) -%}
{%- endmacro %}

{% macro _allows_replace() -%} {{ return(var('allow_replace', false) is sameas true) }} {%- endmacro %}
