{#- Facts that store columns of a dimension, and how many of them rekey_facts would change if the dimension were another
    one: for compare. -#}

{#-
    The facts of a dimension, from the tests facts_covered of the project: [{table (a relation), arguments (of the
    test)}]. `node`: the dimension's.
-#}
{% macro _facts_of_dimension(node) -%}
    {%- set found = [] -%}
    {%- for test in graph.nodes.values() if test.resource_type == 'test' and test.test_metadata
        and test.test_metadata.name == 'facts_covered' and test.test_metadata.namespace == 'healing_tables'
        and node.unique_id in test.depends_on.nodes -%}
        {%- for id in test.depends_on.nodes if id != node.unique_id -%}
            {%- set facts = graph.nodes.get(id) or graph.sources.get(id) -%}
            {%- do found.append({
                'table': api.Relation.create(database=facts.database, schema=facts.schema,
                    identifier=facts.identifier or facts.alias),
                'arguments': test.test_metadata.kwargs}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(found | sort(attribute='table')) -}}
{%- endmacro %}

{#-
    [{facts, moved, resolved, became_unknown}] or, for facts that cannot be compared, [{facts, obstacle}]. `dimension`:
    as it is stored; `rows`, `columns`: SQL for a `from` with what it would be, and its columns of the same types.
-#}
{% macro _facts_that_move(node, dimension, rows, columns) -%}
    {%- set found = [] -%}
    {%- for facts in healing_tables._facts_of_dimension(node) -%}
        {%- set table = load_relation(facts.table) -%}
        {%- set given = facts.arguments -%}
        {%- set request = none if table is none else healing_tables._as_of_request(
            table, dimension, given.key_columns, given.at, given.columns, given.get('unknown'),
            given.get('valid_from', 'valid_from'), given.get('valid_to', 'valid_to'),
            given.get('valid_to_current', '(not given)'), given.get('versions_per_key'), 'compare') -%}
        {%- set needed = [] if table is none else request.key_columns | map(attribute='version_column') | list
            + [request.period.valid_from, request.period.valid_to]
            + request.columns | map(attribute='column') | list -%}
        {%- set missing = healing_tables._missing_names(needed, columns) -%}
        {%- if table is none or missing -%}
            {%- do found.append({'facts': facts.table, 'obstacle': 'the table does not exist' if table is none
                else 'they store ' ~ (missing | join(', ')) ~ ', which is not compared'}) -%}
        {%- else -%}
            {%- do request.update({'dimension': rows}) -%}
            {%- set figures = run_query(healing_tables._rekey_figures('(\n' ~ healing_tables._facts_to_rekey(request)
                ~ '\n)')).rows[0] -%}
            {%- do found.append({'facts': facts.table, 'moved': figures.moved, 'resolved': figures.resolved,
                'became_unknown': figures.became_unknown}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
