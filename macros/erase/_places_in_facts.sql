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
    {{- return(healing_tables._new_place(table, 'facts', condition, details, values or none)) -}}
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
