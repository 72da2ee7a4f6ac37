{#-
    A `subject`: a table from which keys are erased, with the tables beside it: the dimension, and each captured log
    that it reads.

    relation, node, details   the table; the model that builds it, or none; see _table_details()
    format                    of the table
    key_columns               the columns that hold the keys
    keys                      the keys as typed literals, a list for each key
    texts                     see _texts_of_keys(), from _with_texts() on
    what                      'dimension' or 'captured log', for people
    surrogate                 the column of the surrogate key, or none
-#}

{#- {subjects, the dimension first; sources: {name: {relation, expressions}}, the other tables that it reads}. `keys`: a
    value for each, or a map where a key has several columns; none: no keys are asked for. -#}
{% macro _erase_subjects(mistakes, operation, dimension, keys) -%}
    {%- set table = healing_tables._operation_table(operation, dimension) -%}
    {%- set node, given = table.node, healing_tables._as_list(keys) -%}
    {%- set metadata = healing_tables._metadata_of_table(mistakes, node) -%}
    {%- set key_columns = metadata.key_columns or (given[0] | list if given and given[0] is mapping else []) -%}
    {%- do healing_tables._mistake(mistakes, 'keys', 'at least one key', 'none', "write e.g. {keys: [1002, 1003]}")
        if not given and keys is not none -%}
    {%- do healing_tables._mistake(mistakes, 'keys', 'a map for each key, since no model says what the key is',
        given | join(', '), 'write e.g. {keys: [{customer_id: 1002}]}') if given and not key_columns -%}
    {%- set subjects = [healing_tables._erase_subject(mistakes, table.relation, node,
        'captured log' if node is not none and node.config.materialized == 'capture' else 'dimension',
        key_columns, key_columns, given, metadata.get('sequence')
            or (metadata.get('hash_key') or {}).get('name'))] -%}
    {%- set sources = {} -%}
    {%- for scan in metadata.scans if scan.parts is not none -%}
        {%- set relation = healing_tables._relation_of_parts(scan.parts) -%}
        {%- set source = healing_tables._node_of_table(relation) -%}
        {%- if source is not none and source.config.materialized == 'capture' -%}
            {%- do subjects.append(healing_tables._erase_subject(mistakes, relation, source, 'captured log',
                scan.key_columns, key_columns, given, none)) -%}
        {%- else -%}
            {%- do sources.update({scan.name: {'relation': relation, 'expressions': scan['keys']}}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return({'subjects': subjects, 'sources': sources}) -}}
{%- endmacro %}

{#- `given_columns`: the names of the key columns in maps of `given`; `key_columns`: those of the table, in the same
    order. -#}
{% macro _erase_subject(mistakes, relation, node, what, key_columns, given_columns, given, surrogate) -%}
    {%- set details, keys = healing_tables._table_details(relation), [] -%}
    {%- set columns = details.get('columns', {}) -%}
    {%- do healing_tables._check_columns(mistakes, 'keys', key_columns, relation | string, columns) -%}
    {%- for key in given -%}
        {%- set values = key if key is mapping else {given_columns[0]: key} if given_columns | length == 1
            else {} -%}
        {%- set literals = [] -%}
        {%- for name in given_columns -%}
            {%- set found = healing_tables._find_column(name, values) -%}
            {%- do literals.append(healing_tables._erase_literal(mistakes, values[found],
                healing_tables._type_of_column(columns, key_columns[loop.index0]))) if found is not none
                and (values[found] is not none or given_columns | length > 1) -%}
        {%- endfor -%}
        {%- if literals | length != given_columns | length or not literals | reject('equalto', 'null') | list -%}
            {%- do healing_tables._mistake(mistakes, 'keys', 'a value of each of ' ~ (given_columns | join(', ')), key,
                'write e.g. {keys: [{' ~ (given_columns | join(': ..., ')) ~ ': ...}]}') -%}
        {%- endif -%}
        {%- do keys.append(literals) -%}
    {%- endfor -%}
    {{- return({'relation': relation, 'node': node, 'details': details, 'key_columns': key_columns, 'keys': keys,
        'format': healing_tables._stored_format(details) or healing_tables._no_format(), 'what': what,
        'surrogate': healing_tables._find_column(surrogate or '', columns)}) -}}
{%- endmacro %}

{#- A text stands for a value of any type, as on the command line. -#}
{% macro _erase_literal(mistakes, value, type) -%}
    {%- if value is string and type is not none and healing_tables._type_family(type) in ['integer', 'decimal']
        and modules.re.fullmatch('-?[0-9]+([.][0-9]+)?', value) -%}
        {{- return('cast(' ~ healing_tables._string_literal(value) ~ ' as ' ~ type ~ ')') -}}
    {%- endif -%}
    {{- return(healing_tables._typed_literal(mistakes, 'keys', value, type)) -}}
{%- endmacro %}

{#- Whether a row has one of these keys, as SQL. `expressions`: its key columns. -#}
{% macro _has_key(expressions, keys) -%}
    {%- if expressions | length == 1 -%}
        {{- return(expressions[0] ~ ' in (' ~ (keys | map('first') | join(', ')) ~ ')') -}}
    {%- endif -%}
    {%- set conditions = [] -%}
    {%- for key in keys -%}
        {%- set parts = [] -%}
        {%- for literal in key -%}
            {%- do parts.append(expressions[loop.index0] ~ (' is null' if literal == 'null' else ' = ' ~ literal)) -%}
        {%- endfor -%}
        {%- do conditions.append('(' ~ (parts | join(' and ')) ~ ')') -%}
    {%- endfor -%}
    {{- return('(' ~ (conditions | join(' or ')) ~ ')') -}}
{%- endmacro %}

{#- The keys as a select: key_1, key_2, ... -#}
{% macro _select_keys(subject) -%}
    {%- set selects = [] -%}
    {%- for key in subject['keys'] -%}
        {%- set values = [] -%}
        {%- for literal in key -%} {%- do values.append(literal ~ ' as key_' ~ loop.index) -%} {%- endfor -%}
        {%- do selects.append('select ' ~ (values | join(', '))) -%}
    {%- endfor -%}
    {{- return(selects | join(' union all ')) -}}
{%- endmacro %}

{#-
    How other tables write the keys, each a list of literals in the order of the keys: json (the audit), map (the key
    map), named (messages), hashes (the keyed hashes).
-#}
{% macro _texts_of_keys(subject, secret) -%}
    {%- set fields, typed, numbered = [], [], {} -%}
    {%- set texts = {'json': [], 'map': [], 'named': [], 'hashes': []} -%}
    {%- if not subject['keys'] -%} {{ return(texts) }} {%- endif -%}
    {%- for name in subject.key_columns -%}
        {%- set type = healing_tables._type_of_column(subject.details.columns, name) -%}
        {%- do numbered.update({'key_' ~ loop.index: type}) -%}
        {%- do typed.append({'expression': 'key_' ~ loop.index, 'type': type}) -%}
        {%- do fields.append('key_' ~ loop.index ~ ' as ' ~ healing_tables._quoted(name)) -%}
    {%- endfor -%}
    {%- set version = healing_tables._version_id('', {'key_columns': numbered | list, 'valid_from': none}, numbered) -%}
    {%- for row in run_query('select to_json(struct(' ~ (fields | join(', ')) ~ '), ' ~ healing_tables._json_options()
        ~ ') as json, ' ~ version.key ~ ' as map, concat(' ~ healing_tables._key_text(subject.key_columns)
        ~ ') as named, ' ~ healing_tables._erased_hash(secret, typed)
        ~ ' as hashes from (' ~ healing_tables._select_keys(subject) ~ ')').rows -%}
        {%- for name in texts -%}
            {%- do texts[name].append(healing_tables._string_literal(row[name])) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(texts) -}}
{%- endmacro %}

{% macro _with_texts(subjects, secret) -%}
    {%- set found = [] -%}
    {%- for subject in subjects -%}
        {%- do found.append(dict(subject, texts=healing_tables._texts_of_keys(subject, secret))) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
