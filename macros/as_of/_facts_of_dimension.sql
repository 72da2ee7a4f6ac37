{#- Facts that store columns of a dimension, and how many of them rekey_facts would change if the dimension were another
    one: for compare. -#}

{#- The tests facts_covered of the project that look up this dimension: [{facts (a relation), arguments}]. -#}
{% macro _facts_of_dimension(node) -%}
    {%- set found = [] -%}
    {%- for test in graph.nodes.values() | sort(attribute='unique_id') if test.resource_type == 'test'
        and test.test_metadata and test.test_metadata.name == 'facts_covered'
        and test.test_metadata.namespace == 'healing_tables' and node.unique_id in test.depends_on.nodes -%}
        {%- for id in test.depends_on.nodes if id != node.unique_id -%}
            {%- do found.append({
                'facts': healing_tables._node_relation(graph.nodes.get(id) or graph.sources[id]),
                'arguments': test.test_metadata.kwargs}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#-
    A row for each of these tests: the facts and the figures of _rekey_kinds(), or why there are none. `dimension`: as
    it is stored; `rows`, `columns`: SQL for a `from` with what it would be, and its columns of the same types.
-#}
{% macro _facts_that_move(node, dimension, rows, columns) -%}
    {%- set found = [] -%}
    {%- for test in healing_tables._facts_of_dimension(node) -%}
        {%- set facts = load_relation(test.facts) -%}
        {%- set cells = healing_tables._figures_of_facts(facts, dimension, test.arguments, rows, columns)
            if facts is not none else ['not compared: the table does not exist', '', ''] -%}
        {%- do found.append([test.facts] + cells) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{% macro _figures_of_facts(facts, dimension, arguments, rows, columns) -%}
    {%- set request = healing_tables._as_of_request(
        facts, dimension, arguments.key_columns, arguments.at, arguments.columns, arguments.get('unknown'),
        arguments.get('valid_from', 'valid_from'), arguments.get('valid_to', 'valid_to'),
        arguments.get('valid_to_current', '(not given)'), arguments.get('versions_per_key'), 'compare',
        null_keys=arguments.get('null_keys')) -%}
    {%- set missing = healing_tables._missing_names(healing_tables._looked_up_columns(request), columns) -%}
    {%- if missing -%}
        {{- return(['not compared: they store ' ~ (missing | join(', ')) ~ ', which is not compared', '', '']) -}}
    {%- endif -%}
    {%- do request.update({'dimension': rows}) -%}
    {%- set figures = run_query(healing_tables._rekey_figures('(\n' ~ healing_tables._facts_to_rekey(request)
        ~ '\n)')).rows[0] -%}
    {{- return(figures.values()[1:] | list) -}}
{%- endmacro %}
