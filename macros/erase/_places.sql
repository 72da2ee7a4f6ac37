{#-
    The `places` of keys: the tables that have rows of them, in the order in which they are erased. What others are
    computed from comes before what is computed from it; facts come first, since the dimension tells their keys.

    table, what     the relation; for people
    condition       on its rows, as SQL
    becomes         {column: SQL}: the rows stay with these values; none: they are removed
    before          statements that precede it
-#}
{% macro _places_of_subject(mistakes, subject, texts) -%}
    {%- set relation, places = subject.relation, [] -%}
    {%- set own = healing_tables._has_key(healing_tables._quoted_list(subject.key_columns), subject['keys']) -%}
    {%- set is_merged = subject.node is none or subject.node.config.materialized == 'healing_merge' -%}
    {%- set beside = {} -%}
    {%- for option, suffix in {'change_log': '_changes', 'history': '_history', 'audit': '_audit'}.items()
        if is_merged or option == 'audit' -%}
        {%- set named = healing_tables._option(option, none) -%}
        {%- do beside.update({option: healing_tables._table_named_or_beside(relation,
            named.get('table') if named is mapping else named, suffix)}) -%}
    {%- endfor -%}
    {%- set names = healing_tables._tables_beside(relation) -%}
    {%- set prefix = relation.identifier | lower ~ '__' -%}
    {%- for option in ['change_log', 'history'] if option in beside -%}
        {%- do places.append(healing_tables._place(beside[option], option | replace('_', ' '),
            subject.key_columns, own)) -%}
    {%- endfor -%}
    {%- if prefix ~ 'pending' in names -%}
        {%- do places.append(healing_tables._place_in_outbox(subject, healing_tables._beside(relation, '__pending'),
            texts)) -%}
    {%- endif -%}
    {%- if prefix ~ 'set_aside' in names -%}
        {%- do places.append(healing_tables._place(healing_tables._beside(relation, '__set_aside'), 'rows set aside',
            subject.key_columns, healing_tables._has_key_as_text(subject))) -%}
    {%- endif -%}
    {%- for name in healing_tables._tables_of_other_runs(relation, names, 'before') -%}
        {%- do places.append(healing_tables._place(relation.incorporate(path={'identifier': name}),
            'table that had the name before', subject.key_columns, own)) -%}
    {%- endfor -%}
    {%- do places.append(healing_tables._place(relation, subject.what, subject.key_columns, own)) -%}
    {%- do places.append(healing_tables._place(beside.audit, 'audit', ['key', 'old_values', 'new_values'],
        'key in (' ~ (texts.json | join(', ')) ~ ')')) -%}
    {%- do places.append(healing_tables._place_in_key_map(healing_tables._key_map_relation(relation), texts))
        if prefix ~ 'keys' in names -%}
    {%- do places.append(healing_tables._place_in_log(relation, texts)) -%}
    {{- return(places | reject('none') | list) -}}
{%- endmacro %}

{% macro _beside(relation, suffix) -%}
    {{- return(relation.incorporate(path={'identifier': relation.identifier ~ suffix}, type='table')) -}}
{%- endmacro %}

{#- none if there is no table of that name, or one without these columns. -#}
{% macro _place(table, what, columns, condition) -%}
    {%- set found = load_relation(table) -%}
    {%- if found is none or not found.is_table -%} {{ return(none) }} {%- endif -%}
    {%- set details = healing_tables._table_details(found) -%}
    {%- if healing_tables._missing_names(columns, details.columns) -%} {{ return(none) }} {%- endif -%}
    {{- return({'table': table, 'what': what, 'condition': condition, 'becomes': none, 'details': details,
        'before': []}) -}}
{%- endmacro %}

{#- A table of rows as they were given has other types. -#}
{% macro _has_key_as_text(subject) -%}
    {%- set expressions, keys = [], [] -%}
    {%- for name in subject.key_columns -%}
        {%- do expressions.append('cast(' ~ healing_tables._quoted(name) ~ ' as string)') -%}
    {%- endfor -%}
    {%- for key in subject['keys'] -%}
        {%- set literals = [] -%}
        {%- for literal in key -%} {%- do literals.append('cast(' ~ literal ~ ' as string)') -%} {%- endfor -%}
        {%- do keys.append(literals) -%}
    {%- endfor -%}
    {{- return(healing_tables._has_key(expressions, keys)) -}}
{%- endmacro %}

{#- The outbox of the library has a column for each destination. -#}
{% macro _place_in_outbox(subject, table, texts) -%}
    {%- set place = healing_tables._place(table, 'outbox', [], 'false') -%}
    {%- set conditions = [] -%}
    {%- for name, type in (place.details.columns if place is not none else {}).items() if type.startswith('struct<') -%}
        {%- set expressions = [] -%}
        {%- for key in subject.key_columns -%}
            {%- do expressions.append(healing_tables._quoted(name) ~ '.' ~ healing_tables._quoted(key)) -%}
        {%- endfor -%}
        {%- do conditions.append('coalesce(' ~ (healing_tables._quoted(name) ~ '.key in ('
            ~ (texts.json | join(', ')) ~ ')' if name == 'audit'
            else healing_tables._has_key(expressions, subject['keys'])) ~ ', false)') -%}
    {%- endfor -%}
    {{- return(dict(place, condition=conditions | join(' or ')) if conditions else none) -}}
{%- endmacro %}

{#- The greatest number stays reserved, by a row without a version. -#}
{% macro _place_in_key_map(table, texts) -%}
    {%- set condition = 'key in (' ~ (texts.map | join(', ')) ~ ')' -%}
    {%- set place = healing_tables._place(table, 'key map', ['key', 'valid_from', 'surrogate_key'], condition) -%}
    {%- if place is none -%} {{ return(none) }} {%- endif -%}
    {%- set largest = run_query('select max(surrogate_key) as number, max(if(' ~ condition
        ~ ', surrogate_key, null)) as erased from ' ~ table).rows[0] -%}
    {%- do place.before.append('insert into ' ~ table ~ ' (key, valid_from, surrogate_key) select null, null, '
        ~ largest['number'] ~ 'L') if largest['erased'] is not none and largest['erased'] == largest['number'] -%}
    {{- return(place) -}}
{%- endmacro %}

{#- Texts of the log name keys, as `id = 1002`; the hash stays, to look them up by. -#}
{% macro _place_in_log(relation, texts) -%}
    {%- set log, conditions = healing_tables._log_of(relation, healing_tables._option('log_schema', none)), [] -%}
    {%- set text = namespace(sql="concat(reason, ' ')") -%}
    {%- for key in texts.named -%}
        {%- set hash = texts['hashes'][loop.index0] -%}
        {%- for end in [' ', ',', ';', ':', ')', '.'] -%}
            {%- do conditions.append("contains(concat(reason, ' '), concat(" ~ key ~ ", '" ~ end ~ "'))") -%}
            {%- set text.sql = 'replace(' ~ text.sql ~ ', concat(' ~ key ~ ", '" ~ end ~ "'), concat('erased key ', "
                ~ hash ~ ", '" ~ end ~ "'))" -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set place = healing_tables._place(log, 'texts of the log', ['relation', 'reason'],
        healing_tables._log_condition(relation) ~ ' and (' ~ (conditions | join(' or ')) ~ ')') -%}
    {{- return(dict(place, becomes={'reason': 'rtrim(' ~ text.sql ~ ')'}) if place is not none else none) -}}
{%- endmacro %}

{#-
    How other tables write the keys, each a list of literals in the order of the keys: json (the audit), map (the key
    map), named (messages), hashes (the keyed hashes).
-#}
{% macro _texts_of_keys(subject, secret) -%}
    {%- set fields, numbered, texts = [], [], {'json': [], 'map': [], 'named': [], 'hashes': []} -%}
    {%- for name in subject.key_columns -%}
        {%- do numbered.append('key_' ~ loop.index) -%}
        {%- do fields.append('key_' ~ loop.index ~ ' as ' ~ healing_tables._quoted(name)) -%}
    {%- endfor -%}
    {%- set version = healing_tables._version_id('', {'key_columns': numbered, 'valid_from': none},
        healing_tables._numbered_types(subject)) -%}
    {%- for row in run_query('select to_json(struct(' ~ (fields | join(', ')) ~ '), ' ~ healing_tables._json_options()
        ~ ') as json, ' ~ version.key ~ ' as map, concat(' ~ healing_tables._key_text(subject.key_columns)
        ~ ') as named, ' ~ healing_tables._erased_hash(secret, healing_tables._typed_keys(subject, numbered))
        ~ ' as hashes from (' ~ healing_tables._select_keys(subject) ~ ')').rows -%}
        {%- for name in texts -%}
            {%- do texts[name].append(healing_tables._string_literal(row[name])) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(texts) -}}
{%- endmacro %}

{% macro _numbered_types(subject) -%}
    {%- set types = {} -%}
    {%- for name in subject.key_columns -%}
        {%- do types.update({'key_' ~ loop.index: healing_tables._type_of_column(subject.details.columns, name)}) -%}
    {%- endfor -%}
    {{- return(types) -}}
{%- endmacro %}

{#-
    The places in facts that the call lists. An entry is the name of a table, which has the key columns and loses the
    rows; or a map: table, key_columns (the dimension's names to those of the facts), or surrogate_key (the column with
    the surrogate key of the dimension), unknown ({column: value}: the rows stay, with these values).
-#}
{% macro _places_of_facts(mistakes, subject, facts) -%}
    {%- set places = [] -%}
    {%- for given in healing_tables._as_list(facts) -%}
        {%- set entry = given if given is mapping else {'table': given} -%}
        {%- do healing_tables._check_options(mistakes, 'facts', entry, ['table', 'key_columns', 'surrogate_key',
            'unknown']) -%}
        {%- set table = healing_tables._resolve_relation(mistakes, 'facts', entry.get('table')) -%}
        {%- set found = healing_tables._place_in_facts(mistakes, subject, entry, table) if table is not none
            else none -%}
        {%- do places.append(found) if found is not none -%}
    {%- endfor -%}
    {{- return(places) -}}
{%- endmacro %}

{% macro _place_in_facts(mistakes, subject, entry, table) -%}
    {%- set details, renamed = healing_tables._table_details(table), entry.get('key_columns') or {} -%}
    {%- set columns, values, names = details.get('columns', {}), {}, [] -%}
    {%- do healing_tables._check_options(mistakes, 'facts.key_columns', renamed, subject.key_columns)
        if renamed is mapping -%}
    {%- for key in subject.key_columns -%}
        {%- do names.append(renamed.get(key, key) if renamed is mapping
            else healing_tables._as_list(renamed)[loop.index0]) -%}
    {%- endfor -%}
    {%- set names = [entry.surrogate_key] if entry.get('surrogate_key') else names -%}
    {%- set unknown = entry.get('unknown') or {} -%}
    {%- do healing_tables._check_columns(mistakes, 'facts', names + (unknown | list), table | string, columns) -%}
    {%- for name, value in unknown.items() -%}
        {%- do values.update({name: healing_tables._typed_literal(mistakes, 'facts.unknown', value,
            healing_tables._type_of_column(columns, name))}) -%}
    {%- endfor -%}
    {%- if entry.get('surrogate_key') and subject.surrogate is none -%}
        {%- do healing_tables._mistake(mistakes, 'facts.surrogate_key', 'a dimension with a surrogate key',
            subject.relation ~ ', which has none', 'name the columns of its key: key_columns') -%}
    {%- endif -%}
    {%- if mistakes -%} {{ return(none) }} {%- endif -%}
    {%- set condition = healing_tables._has_surrogate(subject, names[0]) if entry.get('surrogate_key')
        else healing_tables._has_key_as_text(dict(subject, key_columns=names)) -%}
    {{- return({'table': table, 'what': 'facts', 'condition': condition, 'becomes': values or none, 'details': details,
        'before': []}) -}}
{%- endmacro %}

{#- Whether a column has the surrogate key of an erased row, as SQL. -#}
{% macro _has_surrogate(subject, column) -%}
    {%- set literals, name = [], healing_tables._quoted(subject.surrogate) -%}
    {%- for row in run_query('select distinct cast(' ~ name ~ ' as string) as number from ' ~ subject.relation
        ~ ' where ' ~ healing_tables._has_key(healing_tables._quoted_list(subject.key_columns),
            subject['keys'])).rows -%}
        {%- do literals.append(healing_tables._string_literal(row['number'])) -%}
    {%- endfor -%}
    {{- return('cast(' ~ healing_tables._quoted(column) ~ ' as string) in (' ~ (literals | join(', ') or 'null') ~ ')')
        -}}
{%- endmacro %}
