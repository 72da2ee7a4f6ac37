{#-
    Drop the candidates that refused and killed builds have left, of one dimension or of all models. A candidate stays
    if its build may be running: the log has no row of its run, and it is younger than `build_hours`.

    tables before  dim, dim__candidate_a (refused), dim__candidate_b (an hour old)     after  dim, dim__candidate_b
-#}
{% macro drop_candidates(dimension=none, build_hours=12) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set places = healing_tables._places_of_builds(dimension) -%}
    {%- set dropped = [] -%}
    {%- for place in places -%}
        {%- do healing_tables._be_model(place.node, place.relation) if place.node is not none -%}
        {%- set format = healing_tables._stored_format(healing_tables._table_details(place.relation))
            if load_relation(place.relation) is not none else none -%}
        {%- for candidate in healing_tables._candidates_of(place.relation, format, build_hours) -%}
            {%- if candidate.may_be_running -%}
                {%- do healing_tables._report('drop_candidates', place.relation, 'kept ' ~ candidate.relation ~ ', '
                    ~ candidate.age ~ ': its build may be running') -%}
            {%- else -%}
                {%- do format.branches.drop(place.relation, candidate.branch) if candidate.branch is not none
                    else healing_tables._run('drop table if exists ' ~ candidate.relation) -%}
                {%- do dropped.append(candidate.relation) -%}
                {%- do healing_tables._report('drop_candidates', place.relation, 'dropped ' ~ candidate.relation ~ ', '
                    ~ candidate.age) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do healing_tables._print('healing_tables.drop_candidates: dropped ' ~ dropped | length
        ~ (' candidate of ' if dropped | length == 1 else ' candidates of ')
        ~ places | length ~ (' table' if places | length == 1 else ' tables')) -%}
{%- endmacro %}

{#- The tables whose builds can leave candidates, as _operation_table() returns them: one, or those of all models of
    this project in schemas that exist. A model need not be built. -#}
{% macro _places_of_builds(dimension) -%}
    {%- set named = healing_tables._find_node(dimension) if dimension is not none else none -%}
    {%- if dimension is not none and named is none -%}
        {{- return([healing_tables._operation_table('drop_candidates', dimension)]) -}}
    {%- endif -%}
    {%- set found, schemas = [], {} -%}
    {%- for node in (graph.nodes.values() if named is none else [named]) | sort(attribute='unique_id')
        if node.resource_type == 'model' and node.config.materialized in ['healing_table', 'capture'] -%}
        {%- set schema = [node.database, node.schema | lower] -%}
        {%- do schemas.update({schema | string: healing_tables._schema_exists(*schema)})
            if schema | string not in schemas -%}
        {%- do found.append({'relation': healing_tables._node_relation(node), 'node': node})
            if schemas[schema | string] -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- adapter.check_schema_exists() of dbt v2 reads an information_schema, which Spark does not have. -#}
{% macro _schema_exists(database, schema) -%}
    {%- set catalog = ' in ' ~ healing_tables._quoted(database) if database and healing_tables._platform().has_catalogs
        else '' -%}
    {{- return(run_query('show schemas' ~ catalog ~ ' like '
        ~ healing_tables._string_literal(schema)).rows | length > 0) -}}
{%- endmacro %}
