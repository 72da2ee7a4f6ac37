{#-
    The select of a reader: the rows of a feed, with what dimension() and merges need of them. `feed`:

    needed      the columns of the tool that it reads, and leaves out
    hidden      a pattern of further names that it leaves out, or none
    at, sequence, is_deleted, is_truncated   SQL over its rows; no is_truncated: the tool does not have it
    pieces      a `lateral view` that gives several rows for one, or none
    replaced    {column: SQL instead of it}
    where       a condition, or none
-#}
{% macro _read_feed(macro_name, mistakes, relation, found, columns, column_names, feed) -%}
{%- set own = {'_changed_at': feed.at, '_sequence': feed.sequence, '_is_deleted': feed.is_deleted} -%}
{%- do own.update({'_is_truncated': feed.is_truncated}) if feed.get('is_truncated') -%}
{%- do healing_tables._check_options(mistakes, 'column_names', column_names, own) -%}
{%- set listed, left_out, replaced = [], feed.needed | map('lower') | list, feed.get('replaced') or {} -%}
{%- for name in columns or found or [] -%}
    {%- if name | lower not in left_out
        and not (feed.get('hidden') and modules.re.fullmatch(feed.hidden, name | lower)) -%}
        {%- set quoted = healing_tables._quoted(name) -%}
        {%- do listed.append(replaced[name | lower] ~ ' as ' ~ quoted if name | lower in replaced else quoted) -%}
    {%- endif -%}
{%- endfor -%}
{%- for name, value in own.items() -%}
    {%- do listed.append(value ~ ' as ' ~ healing_tables._quoted(column_names.get(name, name))) -%}
{%- endfor -%}
{%- do healing_tables._raise_mistakes(macro_name, mistakes) -%}
select
    {{ listed | join(',\n    ') }}
from {{ relation }}
{%- if feed.get('pieces') %}
{{ feed.pieces }}
{%- endif %}
{%- if feed.get('where') %}
where {{ feed.where }}
{%- endif %}
{%- endmacro %}

{#- The columns of a feed {name: type}; none if they cannot be looked up, and `columns` lists those of the row. -#}
{% macro _columns_of_feed(mistakes, relation, columns, needed) -%}
    {%- set found = healing_tables._columns_of_existing(mistakes, 'relation', relation) -%}
    {%- do healing_tables._check_columns(mistakes, 'relation', needed, relation | string, found) -%}
    {%- do healing_tables._mistake(mistakes, 'columns', 'the columns of the row, since those of ' ~ relation
        ~ ' cannot be looked up', 'none', 'list them, or pass a ref or a source')
        if found is none and not columns and not mistakes -%}
    {{- return(found) -}}
{%- endmacro %}

{#- The columns of the row in a message {name: type}: of a DDL text, or of a struct type. -#}
{% macro _columns_of_row(mistakes, schema, type, payload) -%}
    {%- if (schema is none) != (payload is none) -%}
        {%- do healing_tables._mistake(mistakes, 'schema', 'payload and schema, or neither of them', 'one of them',
            "write schema='id int, city string'") -%}
        {{- return({}) -}}
    {%- endif -%}
    {%- if schema is not none -%}
        {{- return(healing_tables._query_columns("select row.* from (select from_json('{}', "
            ~ healing_tables._string_literal(schema) ~ ') as row)')) -}}
    {%- endif -%}
    {%- set columns, fields = {}, healing_tables._struct_fields(type[7:-1]) if type is not none
        and type.startswith('struct<') else none -%}
    {%- do healing_tables._mistake(mistakes, 'relation', 'a struct in the column after', type or 'unknown',
        'pass payload and schema') if fields is none and not mistakes -%}
    {%- for name, member in fields or [] -%} {%- do columns.update({name: member}) -%} {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}
