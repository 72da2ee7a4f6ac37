{#-
    The relation that an argument of an operation names: a ref, or as text the name of a model, a snapshot or a seed of
    the project, 'source.table', 'schema.table' (or with a catalog before it, where there are catalogs), or a table in
    the target's schema. It must exist.
-#}
{% macro _resolve_relation(mistakes, argument, given) -%}
    {%- set relation = given -%}
    {%- if given is string -%} {%- set relation = healing_tables._parse_relation_name(given) -%} {%- endif -%}
    {%- set found = load_relation(relation) if relation else none -%}
    {%- if found is none and given and given is not string -%}
        {%- set found = healing_tables._find_new_table(given) -%}
    {%- endif -%}
    {%- if found is none -%}
        {%- do healing_tables._mistake(
            mistakes, argument, 'a table or view that exists, or the name of the model that builds it', given | string,
            healing_tables._question_about_table(given) ~ 'build it first, or correct the name') -%}
    {%- endif -%}
    {#- in the requested spelling: dbt's cache has Spark's lower case, the log has the spelling of the build -#}
    {{- return(found.incorporate(path={'schema': relation.schema, 'identifier': relation.identifier})
        if found is not none else none) -}}
{%- endmacro %}

{#- The question for a text that is similar to the name of a model, a snapshot or a seed; else an empty text. -#}
{% macro _question_about_table(given) -%}
    {%- set names = [] -%}
    {%- for node in healing_tables._named_nodes() -%}
        {%- do names.extend(healing_tables._node_names(node)) -%}
    {%- endfor -%}
    {%- set question = healing_tables._did_you_mean(given, names)
        if given is string and given.split('.')[-1] not in names else none -%}
    {{- return(question ~ ' Else ' if question is not none else '') -}}
{%- endmacro %}

{#- In hooks, dbt's cache does not have a table yet that the same run creates. -#}
{% macro _find_new_table(relation) -%}
    {%- for row in run_query('show tables in ' ~ relation.include(identifier=false)).rows
        if row['tableName'] | lower == relation.identifier | lower -%}
        {{- return(relation.incorporate(type='table')) -}}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}

{% macro _parse_relation_name(text) -%}
    {%- set node = healing_tables._find_node(text) -%}
    {%- if node is not none -%}
        {{- return(healing_tables._node_relation(node)) -}}
    {%- endif -%}
    {%- for node in graph.sources.values() if text == node.source_name ~ '.' ~ node.name -%}
        {{- return(healing_tables._node_relation(node)) -}}
    {%- endfor -%}
    {%- set parts = [] -%}
    {%- for part in modules.re.findall('`(?:[^`]|``)*`|[^.`]+', text) -%}
        {%- do parts.append(part[1:-1] | replace('``', '`') if part.startswith('`') else part | trim) -%}
    {%- endfor -%}
    {%- if parts | length == 3 and parts[0] == 'spark_catalog' -%} {%- do parts.pop(0) -%} {%- endif -%}
    {%- set has_catalogs = healing_tables._platform().has_catalogs -%}
    {%- if parts | length not in ([1, 2, 3] if has_catalogs else [1, 2]) -%} {{ return(none) }} {%- endif -%}
    {{- return(api.Relation.create(
        database=parts[0] if parts | length == 3 else target.database if has_catalogs else none,
        schema=parts[-2] if parts | length > 1 else target.schema, identifier=parts[-1])) -}}
{%- endmacro %}

{#- Database, schema and name of a relation that other statements can read, too; none for a CTE. -#}
{% macro _relation_parts(relation) -%}
    {%- if relation is string or relation.is_cte or relation.identifier.startswith('__dbt__cte__') -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return([relation.database, relation.schema, relation.identifier]) -}}
{%- endmacro %}

{% macro _relation_of_parts(parts) -%}
    {{- return(api.Relation.create(database=parts[0], schema=parts[1], identifier=parts[2], type='table')) -}}
{%- endmacro %}

{% macro _table_exists(relation) -%}
    {{- return(run_query('show tables in ' ~ relation.without_identifier() ~ ' like '
        ~ healing_tables._string_literal(relation.identifier)).rows | length > 0) -}}
{%- endmacro %}

{#- Create the schema of a side table. dbt has already created the schema of the target. -#}
{% macro _ensure_schema(target, beside) -%}
    {%- if beside.schema != target.schema -%}
        {%- do healing_tables._run('create schema if not exists ' ~ beside.without_identifier()) -%}
    {%- endif -%}
{%- endmacro %}

{#- The table that has the name of another one and a suffix. -#}
{% macro _beside(relation, suffix) -%}
    {{- return(relation.incorporate(path={'identifier': relation.identifier ~ suffix}, type='table')) -}}
{%- endmacro %}

{% macro _has_rows(relation) -%}
    {{- return(run_query('select 1 as one from ' ~ relation ~ ' limit 1').rows | length > 0) -}}
{%- endmacro %}

{#- The name of a table of a run beside its candidate; the run drops the table when it ends. -#}
{% macro _side_table(run, suffix) -%}
    {%- set table = run.candidate_table.incorporate(
        path={'identifier': run.candidate_table.identifier ~ suffix}) -%}
    {%- do run.side_tables.append(table) -%}
    {{- return(table) -}}
{%- endmacro %}

{#- Rows as a table next to the candidate: several statements read it, and all see the same. -#}
{% macro _create_side_table(run, suffix, query) -%}
    {%- set table = healing_tables._side_table(run, suffix) -%}
    {%- do healing_tables._run(
        'create table ' ~ table ~ ' using ' ~ run.format.staging_format ~ ' as ' ~ query) -%}
    {{- return(table) -}}
{%- endmacro %}

{% macro _drop_side_tables(run) -%}
    {%- for table in run.side_tables -%}
        {%- do healing_tables._run('drop table if exists ' ~ table) -%}
    {%- endfor -%}
    {%- do run.side_tables.clear() -%}
{%- endmacro %}
