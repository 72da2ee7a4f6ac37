{#- Rows as JSON. -#}

{#- Options of to_json: moments in UTC and to the microsecond, NULLs as well. As sql/values.py of the library. -#}
{% macro _json_options() -%}
    {%- set moment = "concat('yyyy-MM-dd', char(39), 'T', char(39), 'HH:mm:ss.SSSSSS" -%}
    {{- return("map('timeZone', 'UTC', 'timestampFormat', " ~ moment ~ "XXX'), 'timestampNTZFormat', " ~ moment
        ~ "'), 'ignoreNullFields', 'false')") -}}
{%- endmacro %}

{#-
    A row as text that gives every value back: a JSON object, with the types of its columns as its last member, @types.
    NULL for a row that is NULL. `row`: a struct; `columns`: those of its columns that the text has, {name: type}. As
    sql/row_text.py of the library.
-#}
{% macro _row_text(row, columns) -%}
    {%- set fields, types = [], [] -%}
    {%- for name, type in columns.items() -%}
        {%- set type = healing_tables._type_in_any_session(type) -%}
        {%- do fields.append(healing_tables._string_literal(name) ~ ', '
            ~ healing_tables._as_json(row ~ '.' ~ healing_tables._quoted(name), type)) -%}
        {%- do types.append(healing_tables._quoted(name) ~ ' ' ~ type) -%}
    {%- endfor -%}
    {{- return('if(' ~ row ~ ' is null, null, to_json(named_struct(' ~ (fields | join(', ')) ~ ", '@types', "
        ~ healing_tables._string_literal(types | join(', ')) ~ '), ' ~ healing_tables._json_options() ~ '))') -}}
{%- endmacro %}

{#- A plain timestamp depends on the session. -#}
{% macro _type_in_any_session(type) -%}
    {{- return(modules.re.sub('(?:^|(?<=[<:,]))timestamp(?=$|[,>])', 'timestamp_ltz', type)) -}}
{%- endmacro %}

{#- Columns of such a text, as a struct; NULL where the text has none of that name. A value is _as_json(field, type,
    back=true). `columns`: with the types of the text. -#}
{% macro _parsed_row(text, columns) -%}
    {%- set types = [] -%}
    {%- for name, type in columns.items() -%}
        {%- do types.append(healing_tables._quoted(name) ~ ' '
            ~ healing_tables._json_type(healing_tables._type_in_any_session(type))) -%}
    {%- endfor -%}
    {{- return('from_json(' ~ text ~ ', ' ~ healing_tables._string_literal(types | join(', ')) ~ ', '
        ~ healing_tables._json_options() ~ ')') -}}
{%- endmacro %}

{#- The type of an expression of _as_json(). -#}
{% macro _json_type(type) -%}
    {%- if 'map<' not in type -%} {{ return(type) }} {%- endif -%}
    {%- if type.startswith('array<') -%}
        {{- return('array<' ~ healing_tables._json_type(type[6:-1]) ~ '>') -}}
    {%- elif type.startswith('map<') -%}
        {%- set types = healing_tables._type_members(type[4:-1]) -%}
        {{- return('array<struct<key:' ~ healing_tables._json_type(types[0]) ~ ',value:'
            ~ healing_tables._json_type(types[1]) ~ '>>') -}}
    {%- endif -%}
    {%- set fields = [] -%}
    {%- for name, member in healing_tables._struct_fields(type[7:-1]) or [] -%}
        {%- do fields.append(healing_tables._quoted(name) ~ ':' ~ healing_tables._json_type(member)) -%}
    {%- endfor -%}
    {{- return('struct<' ~ (fields | join(',')) ~ '>' if fields else type) -}}
{%- endmacro %}

{#- A value of a type that to_json and from_json keep: a map as an array of its entries, also in other types. `back`:
    the value of such an expression again. -#}
{% macro _as_json(expression, type, depth=1, back=false) -%}
    {%- if 'map<' not in type -%} {{ return(expression) }} {%- endif -%}
    {%- set item = 'item_' ~ depth -%}
    {%- if type.startswith('array<') -%}
        {{- return('transform(' ~ expression ~ ', ' ~ item ~ ' -> '
            ~ healing_tables._as_json(item, type[6:-1], depth + 1, back) ~ ')') -}}
    {%- elif type.startswith('map<') -%}
        {%- set types = healing_tables._type_members(type[4:-1]) -%}
        {%- set entries = 'transform(' ~ (expression if back else 'map_entries(' ~ expression ~ ')') ~ ', ' ~ item
            ~ ' -> struct(' ~ healing_tables._as_json(item ~ '.key', types[0], depth + 1, back) ~ ' as key, '
            ~ healing_tables._as_json(item ~ '.value', types[1], depth + 1, back) ~ ' as value))' -%}
        {{- return('map_from_entries(' ~ entries ~ ')' if back else entries) -}}
    {%- endif -%}
    {%- set found = healing_tables._struct_fields(type[7:-1]) if type.startswith('struct<') else none -%}
    {%- if not found -%} {{ return(expression) }} {%- endif -%}
    {%- set fields = [] -%}
    {%- for name, member in found -%}
        {%- do fields.append(healing_tables._string_literal(name) ~ ', '
            ~ healing_tables._as_json(expression ~ '.' ~ healing_tables._quoted(name), member, depth, back)) -%}
    {%- endfor -%}
    {{- return('if(' ~ expression ~ ' is null, null, named_struct(' ~ (fields | join(', ')) ~ '))') -}}
{%- endmacro %}
