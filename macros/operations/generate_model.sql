{#-
    Print a model of a dimension with the given tables as sources, and its yml, from their columns. A comment lists the
    guesses:

    stg_crm  customer_id | updated_at | name | is_deleted

    {{ healing_tables.dimension(
        sources={
            'crm': {'relation': ref('stg_crm'), 'changed_at': 'updated_at', 'deleted_when': "is_deleted"}
        }
    ) }}
-#}
{% macro generate_model(sources, key=none, file=none) -%}
    {%- set mistakes, tables = [], {} -%}
    {%- if not healing_tables._as_list(sources) -%}
        {%- do healing_tables._mistake(mistakes, 'sources', 'names of models, or schema.table', sources | string,
            'write [stg_crm, stg_erp]') -%}
    {%- endif -%}
    {%- for given in healing_tables._as_list(sources) -%}
        {%- set relation = healing_tables._resolve_relation(mistakes, 'sources', given) -%}
        {%- do tables.update({given: healing_tables._columns_of(relation)}) if relation is not none -%}
    {%- endfor -%}
    {%- set keys = healing_tables._as_list(key) -%}
    {%- if not keys and not mistakes -%}
        {%- do healing_tables._mistake(mistakes, 'key', 'the column of the business key, or a list of columns', 'none',
            'candidates: ' ~ (healing_tables._key_candidates(tables) | join(', ') or 'none found')) -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('generate_model', mistakes) -%}
    {%- set name = 'dim_' ~ modules.re.sub('_' ~ healing_tables._key_ending(), '', keys[-1] | lower) -%}
    {%- do healing_tables._print_code('generate_model', '-- models/' ~ name ~ '.sql\n'
        ~ healing_tables._generated_model(tables, keys) ~ '\n\n# models/' ~ name ~ '.yml\n'
        ~ healing_tables._generated_yml(name, keys, attributes=healing_tables._guessed_attributes(tables, keys)),
        file) -%}
{%- endmacro %}

{#- {attribute: where it comes from} of the generated model. -#}
{% macro _guessed_attributes(tables, keys) -%}
    {%- set attributes = {} -%}
    {%- for name, sources in healing_tables._owners_of(healing_tables._guesses(tables, keys)).items() -%}
        {%- do attributes.update({name: 'From ' ~ (sources | join(' or '))
            ~ (': the first value that is not NULL' if sources | length > 1) ~ '.'}) -%}
    {%- endfor -%}
    {{- return(attributes) -}}
{%- endmacro %}

{#- The guess of each table, see _guess_source(). -#}
{% macro _guesses(tables, keys) -%}
    {%- set guesses = [] -%}
    {%- for given, columns in tables.items() -%}
        {%- do guesses.append(healing_tables._guess_source(given, healing_tables._reference_to(given), columns, keys))
            -%}
    {%- endfor -%}
    {{- return(guesses) -}}
{%- endmacro %}

{#- {attribute: the sources that have it}. -#}
{% macro _owners_of(guesses) -%}
    {%- set owners = {} -%}
    {%- for guess in guesses -%}
        {%- for name in guess.attributes -%} {%- do owners.setdefault(name | lower, []).append(guess.name) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(owners) -}}
{%- endmacro %}

{#- Columns that all tables have and that are named like a key. -#}
{% macro _key_candidates(tables) -%}
    {%- set found = [] -%}
    {%- for name in tables.values() | first if healing_tables._is_named_like_a_key(name) -%}
        {%- set missing = [] -%}
        {%- for columns in tables.values() if name | lower not in columns | map('lower') | list -%}
            {%- do missing.append(true) -%}
        {%- endfor -%}
        {%- do found.append(name) if not missing -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- `tables`: name of each to its {column: type}. -#}
{% macro _generated_model(tables, keys) -%}
    {%- set guesses, notes, entries = healing_tables._guesses(tables, keys), [], [] -%}
    {%- for guess in guesses -%}
        {%- for note in guess.notes -%} {%- do notes.append(guess.name ~ ': ' ~ note) -%} {%- endfor -%}
        {%- do entries.append("        '" ~ guess.name ~ "': {'relation': " ~ guess.relation ~ ', '
            ~ (guess.options | join(', ')) ~ '}') -%}
    {%- endfor -%}
    {%- set shared = [] -%}
    {%- for attribute, names in healing_tables._owners_of(guesses).items() if names | length > 1 -%}
        {%- do shared.append("        '" ~ attribute ~ "': {'from': " ~ (names | string) ~ '}') -%}
        {%- do notes.append(attribute ~ ' is in ' ~ (names | join(' and '))
            ~ ': the first of them that is not NULL is used; change their order or the rule') -%}
    {%- endfor -%}
    {%- set unique_key = "'" ~ keys[0] ~ "'" if keys | length == 1 else keys | string -%}
    {%- set lines = ["{{ config(materialized='healing_table', unique_key=" ~ unique_key ~ ') }}', '{#-',
        '    Guessed:'] -%}
    {%- for note in notes -%} {%- do lines.append('    - ' ~ note) -%} {%- endfor -%}
    {%- do lines.extend(['-#}', '{{ healing_tables.dimension(', '    sources={', entries | join(',\n'), '    }'
        ~ (',' if shared)]) -%}
    {%- do lines.extend(['    attributes={', shared | join(',\n') ~ ',', "        '*': 2", '    }']) if shared -%}
    {{- return(lines | join('\n') ~ '\n) }}') -}}
{%- endmacro %}

{#- `names`: generated column to its name, if it is different; none for one that is left out. `attributes`: {name:
    description}. `types`: {name: type} of keys, attributes and generated columns, where they are known. -#}
{% macro _generated_yml(name, keys, names={}, attributes={}, types={}) -%}
    {%- set lines = ['version: 2', 'models:', '  - name: ' ~ name,
        '    description: One row for each version of a ' ~ name | replace('dim_', '', 1) | replace('_', ' ') ~ '.',
        '    columns:'] -%}
    {%- for key in healing_tables._as_list(keys) -%}
        {%- do lines.extend(['      - name: ' ~ key | tojson, '        description: The business key.']) -%}
        {%- do lines.append('        data_type: ' ~ types[key] | tojson) if types.get(key) is not none -%}
        {%- do lines.append('        data_tests: [not_null]') -%}
    {%- endfor -%}
    {%- for attribute, description in attributes.items() -%}
        {%- do lines.extend(['      - name: ' ~ attribute | tojson, '        description: ' ~ description | tojson]) -%}
        {%- do lines.append('        data_type: ' ~ types[attribute] | tojson) if types.get(attribute) is not none -%}
    {%- endfor -%}
    {%- for column in ['valid_from', 'valid_to', 'is_current', 'version', 'compressed_row_count', 'key_hash',
        'row_hash'] if names.get(column, column) is not none -%}
        {%- set shown = names.get(column, column) -%}
        {%- do lines.extend(['      - name: ' ~ shown,
            '        description: "{{ doc(' ~ "'healing_tables', 'healing_tables_" ~ column ~ "'" ~ ') }}"']) -%}
        {%- do lines.append('        data_type: ' ~ types[shown] | tojson) if types.get(shown) is not none -%}
        {%- do lines.append('        data_tests: [not_null]') if column in ['valid_from', 'is_current'] -%}
    {%- endfor -%}
    {%- do lines.extend(['    data_tests:', '      - healing_tables.temporal_integrity']) -%}
    {{- return(lines | join('\n')) -}}
{%- endmacro %}

{#- How a model refers to a table: as a model, as a source of the project, or by its name. -#}
{% macro _reference_to(given) -%}
    {%- if healing_tables._find_node(given) is not none -%} {{ return("ref('" ~ given ~ "')") }} {%- endif -%}
    {%- set relation = healing_tables._parse_relation_name(given) -%}
    {%- for source in (graph.get('sources') or {}).values()
        if source.schema == relation.schema and source.identifier == relation.identifier -%}
        {{- return("source('" ~ source.source_name ~ "', '" ~ source.name ~ "')") -}}
    {%- endfor -%}
    {{- return("api.Relation.create(schema='" ~ relation.schema ~ "', identifier='" ~ relation.identifier ~ "')") -}}
{%- endmacro %}
