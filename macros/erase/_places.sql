{#-
    The `places` of keys: the tables that have rows of them, in the order in which they are erased. What others are
    computed from comes before what is computed from it; facts come first, since the dimension tells their keys.

    table, what     the relation; for people
    details, format   of the table
    condition       on its rows, as SQL
    becomes         {column: SQL}: the rows stay with these values; none: they are removed
    before          statements that precede it
-#}
{% macro _places_of_subject(subject) -%}
    {%- set relation, texts, places = subject.relation, subject.texts, [] -%}
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
        {%- do places.append(healing_tables._place_in_outbox(subject, healing_tables._beside(relation, '__pending')))
            -%}
    {%- endif -%}
    {%- if prefix ~ 'set_aside' in names -%}
        {%- do places.append(healing_tables._place(healing_tables._beside(relation, '__set_aside'), 'rows set aside',
            subject.key_columns, healing_tables._has_key_as_text(subject))) -%}
    {%- endif -%}
    {%- if prefix ~ 'withdrawn' in names -%}
        {%- do places.append(healing_tables._place(healing_tables._beside(relation, '__withdrawn'),
            'withdrawn batches', subject.key_columns, own)) -%}
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

{#- none if there is no table of that name, or one without these columns. -#}
{% macro _place(table, what, columns, condition) -%}
    {%- set found = load_relation(table) -%}
    {%- if found is none or not found.is_table -%} {{ return(none) }} {%- endif -%}
    {%- set details = healing_tables._table_details(found) -%}
    {%- if healing_tables._missing_names(columns, details.columns) -%} {{ return(none) }} {%- endif -%}
    {{- return(healing_tables._new_place(table, what, condition, details)) -}}
{%- endmacro %}

{% macro _new_place(table, what, condition, details, becomes=none) -%}
    {{- return({'table': table, 'what': what, 'condition': condition, 'becomes': becomes, 'details': details,
        'format': healing_tables._stored_format(details) or healing_tables._no_format(), 'before': []}) -}}
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
{% macro _place_in_outbox(subject, table) -%}
    {%- set place = healing_tables._place(table, 'outbox', [], 'false') -%}
    {%- set conditions = [] -%}
    {%- for name, type in (place.details.columns if place is not none else {}).items() if type.startswith('struct<') -%}
        {%- set expressions = [] -%}
        {%- for key in subject.key_columns -%}
            {%- do expressions.append(healing_tables._quoted(name) ~ '.' ~ healing_tables._quoted(key)) -%}
        {%- endfor -%}
        {%- do conditions.append('coalesce(' ~ (healing_tables._quoted(name) ~ '.key in ('
            ~ (subject.texts.json | join(', ')) ~ ')' if name == 'audit'
            else healing_tables._has_key(expressions, subject['keys'])) ~ ', false)') -%}
    {%- endfor -%}
    {{- return(dict(place, condition=conditions | join(' or ')) if conditions else none) -}}
{%- endmacro %}

{#- The greatest number stays reserved, by a row without a version. -#}
{% macro _place_in_key_map(table, texts) -%}
    {%- set condition = 'key in (' ~ (texts.map | join(', ')) ~ ')' -%}
    {%- set place = healing_tables._place(table, 'key map', ['key', 'valid_from', 'surrogate_key'], condition) -%}
    {%- if place is none or not texts.map -%} {{ return(place) }} {%- endif -%}
    {%- set largest = run_query('select max(surrogate_key) as number, max(if(' ~ condition
        ~ ', surrogate_key, null)) as erased from ' ~ table).rows[0] -%}
    {%- do place.before.append('insert into ' ~ table ~ ' (key, valid_from, surrogate_key) select null, null, '
        ~ largest['number'] ~ 'L') if largest['erased'] is not none and largest['erased'] == largest['number'] -%}
    {{- return(place) -}}
{%- endmacro %}

{#- Texts of the log name keys, by their hash, those of earlier versions as `id = 1002`; the keyed hash stays, to look
    them up by. -#}
{% macro _place_in_log(relation, texts) -%}
    {%- set log, conditions = healing_tables._log_of(relation, healing_tables._option('log_schema', none)), [] -%}
    {%- set text = namespace(sql="concat(reason, ' ')") -%}
    {%- for key in texts.named -%}
        {%- set hash = texts['hashes'][loop.index0] -%}
        {%- set logged = "concat('key ', md5(" ~ key ~ '))' -%}
        {%- do conditions.append('contains(reason, ' ~ logged ~ ')') -%}
        {%- set text.sql = 'replace(' ~ text.sql ~ ', ' ~ logged ~ ", concat('erased key ', " ~ hash ~ '))' -%}
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
