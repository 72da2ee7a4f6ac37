{#- Whether columns can be looked up in the warehouse, and the placeholder for a select if not. -#}

{#- While dbt parses, and under --no-introspect, nothing may query the warehouse. -#}
{% macro _can_introspect() -%}
    {{- return(execute and flags.INTROSPECT) -}}
{%- endmacro %}

{#-
    What a macro returns instead of its select if columns cannot be looked up; none if they can. `relations`: argument
    to relation. In `dbt compile` and `dbt docs generate`, a relation that is not built yet is not an error: the
    returned select explains what to do. Otherwise it is a mistake, as is a condition [{argument, relation, condition;
    columns and rows, if it sees less than the relation}] that Spark rejects.
-#}
{% macro _placeholder_select(macro_name, relations, conditions=[], mistakes=none) -%}
    {%- if not healing_tables._can_introspect() -%}
        {{- return(healing_tables._placeholder_text('healing_tables has to look up columns: compile without '
            '--no-introspect')) -}}
    {%- endif -%}
    {%- set places = [] -%}
    {%- for argument, relation in relations.items() -%}
        {%- do places.append({'argument': argument, 'relation': relation, 'condition': none}) -%}
    {%- endfor -%}
    {#- a subquery may read a CTE of the model -#}
    {%- for item in conditions if item.condition is string and not healing_tables._reads_beyond_row(item.condition,
        'select') -%}
        {%- do places.append(item) -%}
    {%- endfor -%}
    {%- set checkable = [] -%}
    {%- for place in places if place.relation and place.relation.identifier is defined
        and healing_tables._relation_parts(place.relation) is not none -%}
        {%- do checkable.append(place) -%}
    {%- endfor -%}
    {%- if not checkable or healing_tables._analysis_error(checkable) is none -%} {{ return(none) }} {%- endif -%}
    {%- set found = [] if mistakes is none else mistakes -%}
    {%- set missing = [] -%}
    {%- for place in checkable -%}
        {%- if place.relation | string not in missing -%}
            {%- set error = healing_tables._analysis_error([place]) -%}
            {%- if error is not none and place.condition is not none -%}
                {%- do healing_tables._mistake(
                    found, place.argument, 'a condition over the columns '
                    ~ (place.columns or healing_tables._columns_of(place.relation)) | join(', '),
                    (place.condition | trim) ~ ': ' ~ healing_tables._strip_error_class(error),
                    'correct the condition') -%}
            {%- elif error is not none and error.startswith('[TABLE_OR_VIEW_NOT_FOUND') -%}
                {%- do missing.append(place.relation | string) -%}
                {%- do healing_tables._mistake(
                    found, place.argument, 'a table or view that exists', place.relation | string,
                    'build it first' ~ healing_tables._build_command() ~ ', or correct the name') -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if missing and flags.WHICH in ['compile', 'generate'] -%}
        {{- return(healing_tables._placeholder_text((missing | join(', ')) ~ ' not built yet: build it first'
            ~ healing_tables._build_command())) -}}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(macro_name, found) if missing or mistakes is none -%}
    {{- return(none) -}}
{%- endmacro %}

{% macro _placeholder_text(text) -%}
    {{- return('select ' ~ healing_tables._string_literal(text) ~ ' as not_compiled') -}}
{%- endmacro %}

{#- The command that builds what a model reads; empty without a model. -#}
{% macro _build_command() -%}
    {%- set node = healing_tables._attached_node() -%}
    {%- set name = node.name if node is not none else healing_tables._model_name() -%}
    {{- return('' if name == '(inline)' else ' (dbt run --select +' ~ name ~ ')') -}}
{%- endmacro %}

{#-
    The first line of Spark's analysis error for relations with their conditions; none without an error. `explain` shows
    an analysis error and does not raise it, and with `false` there is no scan to prepare: nothing is read.
-#}
{% macro _analysis_error(places) -%}
    {%- set selects = [] -%}
    {%- for place in places -%}
        {%- set condition = '(' ~ healing_tables._close_line_comment(place.condition) ~ ') and '
            if place.condition is not none else '' -%}
        {%- do selects.append('select 1 as one from ' ~ (place.rows or place.relation) ~ ' where ' ~ condition
            ~ 'false') -%}
    {%- endfor -%}
    {%- set lines = [] -%}
    {%- for row in run_query('explain ' ~ (selects | unique | join(' union all '))).rows -%}
        {%- do lines.extend((row[0] or '').split('\n')) -%}
    {%- endfor -%}
    {%- if not lines or not lines[0].startswith('Error occurred during query planning') -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return((lines[1:] | map('trim') | select | first) or lines[0]) -}}
{%- endmacro %}

{#- An error's text without its class, its SQLSTATE and its position in the explained query. -#}
{% macro _strip_error_class(error) -%}
    {{- return(modules.re.sub('^\\[[A-Z_.0-9]+\\] *|;? *SQLSTATE: .*$', '', error)) -}}
{%- endmacro %}

{#- What the sources of a call read: relations by argument, and conditions, as _placeholder_select() takes them. -#}
{% macro _inputs_of(sources) -%}
    {%- set read = {'relations': {}, 'conditions': []} -%}
    {%- for name, given in (sources.items() if sources is mapping and sources.identifier is not defined else [])
        if given is mapping and given.identifier is not defined -%}
        {%- for option in ['relation', 'calendar'] if given.get(option) -%}
            {%- do read.relations.update({'sources.' ~ name ~ '.' ~ option: given[option]}) -%}
        {%- endfor -%}
        {%- for option in ['where', 'deleted_when', 'truncated_when'] if given.get(option) -%}
            {%- do read.conditions.append({'argument': 'sources.' ~ name ~ '.' ~ option,
                'relation': given.get('relation'), 'condition': given[option]}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(read) -}}
{%- endmacro %}
