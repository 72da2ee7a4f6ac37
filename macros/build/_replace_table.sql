{#-
    A table that cannot become the target in one statement: one of another format, or one that this model has not built.
    The new table is created beside it and then takes its name, so that a build that dies in between loses no row.

    name               1. create              2. rename              3. rename              4. drop, unless it is kept
    dim                old rows               -                      new rows               new rows
    dim__before_1a2b   -                      old rows               old rows               -
    dim__candidate_..  new rows               new rows               -                      -
-#}

{#- Whether the log knows the stored table as one that this model has built. -#}
{% macro _is_own(build, last) -%}
    {{- return(last is not none and (last.table_id is none or build.table_id is none or last.table_id == build.table_id)) -}}
{%- endmacro %}

{#- Rows that this model has not built and cannot compare with its own are not replaced, unless the run allows it; then they are kept. -#}
{% macro _check_other_table(target, about, existing, stored) -%}
    {%- set build = about.build -%}
    {%- if not stored or build.is_own -%} {{ return(none) }} {%- endif -%}
    {%- set columns = healing_tables._columns_of(existing) -%}
    {%- set wanted = about.key_columns + ([about.valid_from] if about.valid_from is not none else []) -%}
    {%- set missing = healing_tables._missing(wanted, columns) -%}
    {%- if not missing or not healing_tables._has_rows(existing) -%} {{ return(none) }} {%- endif -%}
    {%- set kept = healing_tables._name_before(target) -%}
    {%- set mistakes = [] -%}
    {%- if not healing_tables._may_replace() -%}
        {%- do healing_tables._mistake_other_table(
            mistakes, target, wanted, columns, "name its columns in meta.healing_tables.column_names, e.g. {valid_from: effective_from}") -%}
    {%- elif healing_tables._is_same_place(stored, target) -%}
        {%- do healing_tables._mistake(
            mistakes, 'location_root', 'a folder of its own, since the table that is there is kept', stored.location,
            'choose another location_root, or move the table away') -%}
    {%- else -%}
        {%- do build.update({'keeps_other': true, 'reason': 'the table that had this name is kept as ' ~ kept}) -%}
    {%- endif -%}
    {%- do healing_tables._refuse(target, none, about, mistakes) if mistakes -%}
{%- endmacro %}

{#- The mistake of a table that someone else has made; `naming` says how the model can be told its columns. -#}
{% macro _mistake_other_table(mistakes, target, wanted, columns, naming) -%}
    {%- do healing_tables._mistake(
        mistakes, 'the table ' ~ target, 'a table that this model has built, or one with the columns ' ~ (wanted | join(', ')),
        'a table with rows that healing_log does not know, with the columns ' ~ (columns | join(', ')),
        naming ~ "; or give the model another name (alias); or replace the table once: --vars '{allow_replace: true}', which keeps it as "
        ~ healing_tables._name_before(target)) -%}
{%- endmacro %}

{% macro _may_replace() -%} {{ return(var('allow_replace', false) is sameas true) }} {%- endmacro %}

{% macro _has_rows(relation) -%}
    {{- return(run_query('select 1 as one from ' ~ relation ~ ' limit 1').rows | length > 0) -}}
{%- endmacro %}

{#- The name under which a replaced table stays while its successor takes its place, or for good. -#}
{% macro _name_before(target) -%}
    {{- return(target.incorporate(path={'identifier': target.identifier ~ '__before_' ~ invocation_id[:8]})) -}}
{%- endmacro %}

{#- Whether the files of the new table would be where those of the stored one are. -#}
{% macro _is_same_place(stored, target) -%}
    {%- set root = config.get('location_root') -%}
    {%- set places = [] -%}
    {%- for place in [stored.get('location') or '', (root or '') ~ '/' ~ target.identifier] -%}
        {%- do places.append(modules.re.sub('^[a-z0-9]+:/*|^/+', '', place) | string) -%}
    {%- endfor -%}
    {{- return(root is not none and places[0] == places[1]) -}}
{%- endmacro %}

{#- The statement that follows creates the table under a name of this run. -#}
{% macro _create_beside(target, candidate, build, existing) -%}
    {%- do build.update({'created': candidate.incorporate(path={'identifier': candidate.identifier ~ '_new'})}) -%}
    {%- do healing_tables._progress(
        target, 'the ' ~ existing.type ~ ' that has this name cannot become this table in one step: the new table is created beside it and then takes its name') -%}
{%- endmacro %}

{#- The new table takes the name of what is there. A view has no rows to lose. -#}
{% macro _take_name(target, build, existing) -%}
    {%- if build.created == target -%} {{ return(none) }} {%- endif -%}
    {%- set before = healing_tables._name_before(target) -%}
    {%- if existing.is_table -%} {%- do adapter.rename_relation(existing, before) -%}
    {%- else -%} {%- do adapter.drop_relation(existing) -%}
    {%- endif -%}
    {%- do adapter.rename_relation(build.created, target) -%}
    {%- if build.keeps_other -%} {%- do healing_tables._progress(target, 'the table that had this name is kept as ' ~ before) -%}
    {%- elif existing.is_table -%} {%- do adapter.drop_relation(before) -%}
    {%- endif -%}
{%- endmacro %}

{#- After a kill between the two renames the rows are under another name. -#}
{% macro _warn_of_kept(target) -%}
    {%- set kept = healing_tables._of_other_runs(target, 'before') -%}
    {%- if kept -%}
        {%- do healing_tables._progress(
            target, 'no table has this name, but what was there before is kept as ' ~ (kept | sort | join(', ')) ~ '; a build may have died while it replaced it') -%}
    {%- endif -%}
{%- endmacro %}

{#-
    A full refresh of a table whose history no source has: {target, before, is_view, is_kept}, or none without
    --full-refresh. What is stored gets the name `before` while its successor is made. Refused unless the model allows
    it; `wanted` are the columns by which the table is known as the model's own.
-#}
{% macro _full_refresh(mistakes, target, existing, wanted) -%}
    {%- if existing is none or not should_full_refresh() -%} {{ return(none) }} {%- endif -%}
    {%- if healing_tables._option('allow_full_refresh', none, false) is not sameas true -%}
        {%- do healing_tables._mistake(
            mistakes, '--full-refresh', 'a run that keeps the history: a batch alone cannot bring it back',
            'a full refresh of ' ~ target ~ ', which exists',
            'run without it; or set meta.healing_tables.allow_full_refresh: true to drop the table and begin with this batch') -%}
    {%- endif -%}
    {%- if healing_tables._details(existing).get('type') == 'EXTERNAL' -%}
        {#- its files would stay, and with them the rows -#}
        {%- do healing_tables._mistake(
            mistakes, '--full-refresh', 'a table that Spark manages', target ~ ', whose files stay when it is dropped',
            'drop the table, remove its files, and run without --full-refresh') -%}
    {%- endif -%}
    {%- set is_other = false -%}
    {%- if existing.is_table and not mistakes -%}
        {%- set columns = healing_tables._columns_of(existing) -%}
        {%- set is_other = healing_tables._missing(wanted, columns) | length > 0 and healing_tables._has_rows(existing) -%}
        {%- if is_other and not healing_tables._may_replace() -%}
            {%- do healing_tables._mistake_other_table(mistakes, target, wanted, columns, 'correct the names of its columns') -%}
        {%- endif -%}
    {%- endif -%}
    {{- return({
        'target': target | string, 'before': healing_tables._name_before(target) | string, 'is_view': existing.is_view,
        'is_kept': is_other}) -}}
{%- endmacro %}

{#- The stored table makes room for its successor. -#}
{% macro _move_away(replaced) -%}
    {%- if replaced is none -%} {{ return(none) }} {%- endif -%}
    {%- do run_query('drop view if exists ' ~ replaced.target if replaced.is_view else 'alter table ' ~ replaced.target ~ ' rename to ' ~ replaced.before) -%}
{%- endmacro %}

{#- Its successor is there. -#}
{% macro _drop_replaced(target, replaced) -%}
    {%- if replaced is none or replaced.is_view -%} {{ return(none) }} {%- endif -%}
    {%- if replaced.is_kept -%} {%- do healing_tables._progress(target, 'the table that had this name is kept as ' ~ replaced.before) -%}
    {%- else -%} {%- do run_query('drop table if exists ' ~ replaced.before) -%}
    {%- endif -%}
{%- endmacro %}
