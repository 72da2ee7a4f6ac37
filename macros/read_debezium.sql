{#-
    Messages of Debezium as a change log: JSON in the column `payload`, as text or bytes, with or without its schema,
    with rows of the `schema` (DDL); or, without both, columns of an envelope, or of rows that were flattened by
    ExtractNewRecordState. Heartbeats, tombstones and messages without a row are left out.

    payload                                                 id | city | _changed_at | _sequence    | _is_deleted
    {"op": "d", "source": {"ts_ms": 1704067200000,     ->   1  | Oslo | 2024-01-01  | {42, .., 1}  | true
     "lsn": 42}, "before": {"id": 1, "city": "Oslo"}}
-#}
{% macro read_debezium(relation, payload=none, schema=none, timestamps='us', decimals='base64', columns=none,
    column_names={}) -%}
{%- set instead = healing_tables._placeholder_select('read_debezium', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes = [] -%}
{%- do healing_tables._check_choice(mistakes, 'decimals', decimals, ['base64', 'text']) -%}
{%- set found = healing_tables._columns_of_feed(mistakes, relation, ['*'], [payload] if payload is not none else []) -%}
{%- if payload is none and schema is none and healing_tables._find_column('op', found or {}) is none -%}
    {{- return(healing_tables._read_flattened_debezium(mistakes, relation, found, columns, column_names)) -}}
{%- endif -%}
{%- set row = healing_tables._columns_of_row(mistakes, schema, (found or {}).get('after'), payload) -%}
{%- set replaced, texts = {}, [] -%}
{%- for name, type in row.items() -%}
    {%- set value = "if(op = 'd', before, after)." ~ healing_tables._quoted(name) -%}
    {%- do texts.append(healing_tables._quoted(name) ~ ' string') -%}
    {%- do replaced.update({name | lower: value if payload is none else healing_tables._debezium_value(mistakes, name,
        value, type, timestamps, decimals)}) -%}
{%- endfor -%}
{%- set members = 'op string, source struct<' ~ healing_tables._debezium_source() ~ '>, before struct<'
    ~ (texts | join(', ')) ~ '>, after struct<' ~ (texts | join(', ')) ~ '>' -%}
{%- set given = 'cast(' ~ healing_tables._quoted(payload or '') ~ ' as string)' -%}
{%- set messages = relation if payload is none else "(select inline(array(coalesce(message.payload, struct(message.op, "
    ~ 'message.source, message.before, message.after)))) from (select from_json(' ~ given ~ ', '
    ~ healing_tables._string_literal('payload struct<' ~ members ~ '>, ' ~ members) ~ ') as message from ' ~ relation
    ~ '))' -%}
{%- set at = 'coalesce(timestamp_micros(source.ts_us), timestamp_millis(source.ts_ms))' if payload is not none
    else healing_tables._debezium_moment(found) -%}
{%- set order = healing_tables._debezium_order(none if payload is not none else found) -%}
{{ healing_tables._read_feed('read_debezium', mistakes, messages, none, row, column_names, {
    'needed': [], 'replaced': replaced, 'at': at, 'is_deleted': "op = 'd'", 'is_truncated': "op = 't'",
    'sequence': healing_tables._debezium_place(order, at, "if(op = 'r', 0, 1)"),
    'where': "op in ('c', 'u', 'd', 'r', 't')"}) }}
{%- endmacro %}
