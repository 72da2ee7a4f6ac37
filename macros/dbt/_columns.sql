{#-
    Columns and types of a relation, as {name: type}, in order; none if they cannot be looked up: a CTE, an
    ephemeral model, a fixture of a unit test. Under --empty and --sample, a ref is a subquery, so the lookup
    uses the plain relation.
-#}
{% macro _columns_of(relation) -%}
    {%- if relation is string -%} {{ return(none) }} {%- endif -%}
    {%- if relation.is_cte or relation.identifier.startswith('__dbt__cte__') -%}
        {%- set relation = healing_tables._relation_of_fixture(relation.identifier.removeprefix('__dbt__cte__')) -%}
        {%- if relation is none -%} {{ return(none) }} {%- endif -%}
    {%- endif -%}
    {%- set plain = api.Relation.create(
        database=relation.database, schema=relation.schema, identifier=relation.identifier) -%}
    {{- return(healing_tables._described_columns(plain)) -}}
{%- endmacro %}

{#- In a unit test, the table or view that a fixture replaces: dbt gives the fixture its columns and types. It is
    looked up in the target's schema. none outside of unit tests, and for an ephemeral model. -#}
{% macro _relation_of_fixture(name) -%}
    {%- if not healing_tables._is_unit_test() -%} {{ return(none) }} {%- endif -%}
    {{- return(load_relation(api.Relation.create(
        database=target.database or none, schema=target.schema, identifier=name))) -}}
{%- endmacro %}

{#- The columns and types of a relation that is not looked up elsewhere. -#}
{% macro _described_columns(relation) -%}
    {{- return(healing_tables._columns_in(healing_tables._described_rows('describe table ' ~ relation), relation)) -}}
{%- endmacro %}

{#- The columns and types of a query. -#}
{% macro _query_columns(query) -%}
    {{- return(healing_tables._columns_in(healing_tables._described_rows('describe query ' ~ query), '(\n' ~ query
        ~ '\n)')) -}}
{%- endmacro %}

{% macro _described_rows(describe) -%}
    {%- call statement('healing_tables_columns', fetch_result=true, auto_begin=false) -%}
        {{ describe }}
    {%- endcall -%}
    {{- return(load_result('healing_tables_columns')['table'].rows) -}}
{%- endmacro %}

{#- The columns in the rows of a `describe`, up to the sections that may follow them. `rows`: the same table or query as
    SQL for a `from`. -#}
{% macro _columns_in(described, rows) -%}
    {%- set columns = {} -%}
    {%- set ended = [] -%}
    {%- for row in described -%}
        {#- sections on partitions follow the columns; their titles have no type -#}
        {%- if not row[1] -%} {%- do ended.append(true) -%} {%- endif -%}
        {#- a column named null is read as NULL -#}
        {%- do columns.update({('null' if row[0] is none else row[0] | string): row[1]}) if not ended -%}
    {%- endfor -%}
    {{- return(healing_tables._whole_types(columns, rows)) -}}
{%- endmacro %}

{#- {name: type} with the types as _type_name() spells them. `describe` abbreviates a struct of more than 25 fields; of
    no rows, typeof() gives its whole type. -#}
{% macro _whole_types(columns, rows) -%}
    {%- set types, spelled, cut, expressions = {}, {}, [], [] -%}
    {%- for name, type in columns.items() -%}
        {%- if modules.re.search('[.]{3} [0-9]+ more fields?', type) -%}
            {%- do cut.append(name) -%}
            {%- do expressions.append('typeof(first(' ~ healing_tables._quoted(name) ~ '))') -%}
        {%- endif -%}
        {%- do types.update({name: type}) -%}
    {%- endfor -%}
    {%- if cut -%}
        {%- set whole = run_query('select ' ~ (expressions | join(', ')) ~ ' from ' ~ rows ~ ' where false').rows[0] -%}
        {%- for name in cut -%} {%- do types.update({name: whole[loop.index0]}) -%} {%- endfor -%}
    {%- endif -%}
    {%- for name, type in types.items() -%}
        {%- do spelled.update({type: healing_tables._type_name(type)}) if type not in spelled -%}
        {%- do types.update({name: spelled[type]}) -%}
    {%- endfor -%}
    {{- return(types) -}}
{%- endmacro %}

{#- `otherwise`: a remedy where no column has a similar name. -#}
{% macro _check_columns(mistakes, argument, names, relation, columns, otherwise='') -%}
    {%- if columns is not none -%}
        {%- for name in healing_tables._missing_names(names, columns) -%}
            {%- set question = healing_tables._did_you_mean(name, columns) -%}
            {%- do healing_tables._mistake(mistakes, argument, 'a column of ' ~ relation, name,
                (question ~ ' ' if question is not none else otherwise)
                ~ 'its columns are ' ~ (columns | join(', '))) -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- The columns of a relation as _columns_of gives them; one that does not exist is a mistake. -#}
{% macro _columns_of_existing(mistakes, argument, relation) -%}
    {%- set columns = healing_tables._columns_of(relation) if relation else {} -%}
    {%- if columns is not none and not columns -%}
        {%- do healing_tables._mistake(
            mistakes, argument, 'a table or view that exists, or the name of a CTE', relation | string,
            'build it first, or correct the name') -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return(columns) -}}
{%- endmacro %}

{% macro _check_moment_column(mistakes, argument, name, relation, columns) -%}
    {%- do healing_tables._check_columns(mistakes, argument, [name], relation | string, columns) -%}
    {%- set type = healing_tables._type_of_column(columns, name) -%}
    {%- if type is not none and type not in ['date', 'timestamp', 'timestamp_ntz'] -%}
        {%- do healing_tables._mistake(
            mistakes, argument ~ ': moment column ' ~ name, 'a date or a timestamp', type,
            'cast it in the relation') -%}
    {%- endif -%}
{%- endmacro %}
