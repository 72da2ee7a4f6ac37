{#-
    What as_of() was asked, checked: facts and dimension (SQL text), key_columns [{name, fact, version (SQL),
    fact_column, version_column}], at (SQL), period [see _period], columns [{name, column, type, unknown (SQL)}], and
    order: what orders versions of a key that begin together, has_null_keys (see _spec.sql).

    For rekey_facts and facts_covered the facts store the columns already: `stored` is then the name of the macro.
-#}
{% macro _as_of_request(facts, dimension, key_columns, at, columns, unknown, valid_from, valid_to, valid_to_current,
    versions_per_key, stored=none, mistakes=none, known_at=none, audit=none, null_keys=none) -%}
    {%- set mistakes = [] if mistakes is none else mistakes -%}
    {%- set fact_columns = healing_tables._columns_of_existing(mistakes, 'facts', facts) -%}
    {%- set versions = healing_tables._versions_known_at(mistakes, 'dimension', dimension, valid_from, known_at, audit)
        -%}
    {%- set dimension_columns = versions.columns -%}
    {%- do healing_tables._check_moment_column(mistakes, 'at', at, facts, fact_columns) -%}
    {%- do healing_tables._check_choice(mistakes, 'versions_per_key', versions_per_key, ['many', 'few'])
        if versions_per_key is not none -%}
    {%- set null_keys = healing_tables._option('null_keys', null_keys, 'set_aside') -%}
    {%- do healing_tables._check_choice(mistakes, 'null_keys', null_keys, ['set_aside', 'keep']) -%}
    {%- set as_of_request = {
        'facts': facts | string, 'dimension': versions.rows, 'versions_per_key': versions_per_key,
        'key_columns': healing_tables._as_of_keys(mistakes, key_columns, facts, dimension, fact_columns,
            dimension_columns),
        'at': healing_tables._to_micros(healing_tables._quoted(at), healing_tables._type_of_column(fact_columns, at)),
        'period': healing_tables._period(mistakes, dimension, dimension_columns, valid_from, valid_to,
            valid_to_current),
        'columns': healing_tables._as_of_columns(
            mistakes, columns, unknown, dimension, {} if stored is not none else fact_columns, dimension_columns)} -%}
    {%- do as_of_request.update({'has_null_keys': healing_tables._has_null_keys(null_keys, as_of_request.key_columns),
        'order': healing_tables._as_of_order(as_of_request.columns)}) -%}
    {%- if stored is not none -%}
        {%- do healing_tables._stored_columns(mistakes, as_of_request, facts, fact_columns, at) -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(stored or 'as_of', mistakes) -%}
    {%- if versions_per_key is none -%}
        {%- do as_of_request.update({'versions_per_key': 'few' if dimension_columns is not none
            and healing_tables._has_few_versions(dimension, as_of_request.key_columns) else 'many'}) -%}
    {%- endif -%}
    {{- return(as_of_request) -}}
{%- endmacro %}

{#- Whether a version of a table shares its key with few others: the average over versions, so that a key with very many
    of them counts, over the keys of about 100,000 versions. The rows of a view could cost as much as the look-up. -#}
{% macro _has_few_versions(dimension, key_columns) -%}
    {%- set table = load_relation(dimension) -%}
    {%- if table is none or table.is_view -%} {{ return(false) }} {%- endif -%}
    {%- set keys = healing_tables._quoted_list(key_columns | map(attribute='version_column')) | join(', ') -%}
    {%- set row = run_query(
        'select sum(n * n) / sum(n) as versions from (select count(*) as n from ' ~ dimension ~ ' where pmod(xxhash64('
        ~ keys ~ '), (select 1 + count(*) div 100000 from ' ~ dimension ~ ')) = 0 group by ' ~ keys ~ ')').rows[0] -%}
    {{- return(row['versions'] is not none and row['versions'] <= 30) -}}
{%- endmacro %}

{#- The columns of the dimension that a look-up reads. -#}
{% macro _looked_up_columns(as_of_request) -%}
    {{- return(as_of_request.key_columns | map(attribute='version_column') | list
        + [as_of_request.period.valid_from, as_of_request.period.valid_to]
        + as_of_request.columns | map(attribute='column') | list) -}}
{%- endmacro %}

{#- Pairs of key columns, each in its common type: a list of names, or a map from the dimension's name to that of the
    facts. -#}
{% macro _as_of_keys(mistakes, key_columns, facts, dimension, fact_columns, dimension_columns) -%}
    {%- set pairs = {} -%}
    {%- if key_columns is mapping -%} {%- do pairs.update(key_columns) -%}
    {%- else -%}
        {%- for name in healing_tables._as_list(key_columns) -%} {%- do pairs.update({name: name}) -%} {%- endfor -%}
    {%- endif -%}
    {%- if not pairs -%}
        {%- do healing_tables._mistake(mistakes, 'key_columns', 'at least one column', 'none',
            'name the key columns') -%}
    {%- endif -%}
    {%- do healing_tables._check_columns(mistakes, 'key_columns', pairs.keys() | list, dimension | string,
        dimension_columns) -%}
    {%- do healing_tables._check_columns(mistakes, 'key_columns', pairs.values() | list, facts | string,
        fact_columns) -%}
    {%- set keys = [] -%}
    {%- for version_column, fact_column in pairs.items() -%}
        {%- set types = [healing_tables._type_of_column(fact_columns, fact_column),
            healing_tables._type_of_column(dimension_columns, version_column)] -%}
        {%- set type = healing_tables._common_type(types) -%}
        {%- if type == 'mixed' or (type is not none and healing_tables._has_no_equality(type)) -%}
            {%- do healing_tables._mistake(
                mistakes, 'key_columns.' ~ version_column, 'one type in facts and dimension', types | join(', '),
                'cast one of the two') -%}
        {%- endif -%}
        {%- do keys.append({
            'name': 'key_' ~ loop.index, 'fact_column': fact_column, 'version_column': version_column,
            'fact': healing_tables._as_of_key(fact_column, types[0], type),
            'version': healing_tables._as_of_key(version_column, types[1], type)}) -%}
    {%- endfor -%}
    {{- return(keys) -}}
{%- endmacro %}

{% macro _as_of_key(column, type, common_type) -%}
    {%- set value = healing_tables._normalized_value(healing_tables._quoted(column), type) -%}
    {{- return(value if common_type in [none, 'mixed'] else healing_tables._cast(value, type, common_type)) -}}
{%- endmacro %}

{#- The columns to bring: names, or a map from the new name to the dimension's column. -#}
{% macro _as_of_columns(mistakes, given, unknown, dimension, fact_columns, dimension_columns) -%}
    {%- set pairs = given.items() | list if given is mapping else [] -%}
    {%- if given is not mapping -%}
        {%- for name in healing_tables._as_list(given) -%} {%- do pairs.append([name, name]) -%} {%- endfor -%}
    {%- endif -%}
    {%- if not pairs -%}
        {%- do healing_tables._mistake(mistakes, 'columns', 'at least one column of the dimension', 'none',
            'name the columns that the facts get') -%}
    {%- endif -%}
    {%- set columns = [] -%}
    {%- set taken = (fact_columns or {}).keys() | map('lower') | list -%}
    {%- for name, column in pairs -%}
        {%- do healing_tables._check_columns(mistakes, 'columns', [column], dimension | string, dimension_columns) -%}
        {%- if name | string | lower in taken -%}
            {%- do healing_tables._mistake(
                mistakes, 'columns.' ~ name, 'a name that the result does not have yet', 'a name that is taken',
                "give it another name: columns={'" ~ name ~ "_then': '" ~ column ~ "'}") -%}
        {%- endif -%}
        {%- do taken.append(name | string | lower) -%}
        {%- set type = healing_tables._type_of_column(dimension_columns, column) -%}
        {%- set value = unknown.get(name) if unknown is mapping else unknown -%}
        {%- do columns.append({
            'name': name, 'column': column, 'type': type,
            'unknown': healing_tables._typed_literal(mistakes,
                'unknown' ~ ('.' ~ name if unknown is mapping else ' for ' ~ name), value, type)}) -%}
    {%- endfor -%}
    {%- if unknown is mapping -%}
        {%- do healing_tables._check_options(mistakes, 'unknown', unknown, columns | map(attribute='name') | list) -%}
    {%- endif -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- Versions before the facts of their moment; of these the end first, then what is brought, so that even equal periods
    have an order. The struct says just that, and a bare column is not carried through the shuffle twice. Maps have no
    order; where types are not known, the text of the row stands for all. -#}
{% macro _as_of_order(columns) -%}
    {%- set order = ['version is null', 'version.until'] -%}
    {%- if columns | selectattr('type', 'none') | list -%}
        {{- return(order + ["to_json(version.row, map('timeZone', 'UTC'))"]) -}}
    {%- endif -%}
    {%- set ordered = [] -%}
    {%- for column in columns if not healing_tables._has_no_equality(column.type) -%}
        {%- do ordered.append('version.row.' ~ healing_tables._quoted(column.name)) -%}
    {%- endfor -%}
    {{- return(['version nulls last'] if ordered | length == columns | length else order + ordered) -}}
{%- endmacro %}
