{#-
    Messages of Oracle GoldenGate as a change log: JSON in the column `payload`, as text or bytes, with rows of the
    `schema` (DDL); or, without both, columns of that name in the relation. A truncation has no row. `key_columns`: a
    changed key is a deletion and an insertion.

    payload                                                       id | city | _changed_at | _sequence | _is_deleted
    {"op_type": "D", "op_ts": "2024-01-01 00:00:00.000000",  ->   1  | Oslo | 2024-01-01  | {0042, 1} | true
     "pos": "0042", "before": {"id": 1, "city": "Oslo"}}
-#}
{% macro read_goldengate(relation, payload=none, schema=none, key_columns=[], column_names={}) -%}
{%- set instead = healing_tables._placeholder_select('read_goldengate', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes, keys = [], healing_tables._as_list(key_columns) -%}
{%- set needed = ['op_type', 'op_ts', 'pos', 'before', 'after'] -%}
{%- set found = healing_tables._columns_of_feed(mistakes, relation, ['*'], needed if payload is none else [payload]) -%}
{%- set columns = healing_tables._columns_of_row(mistakes, schema, (found or {}).get('after'), payload) -%}
{%- set message = '*' if payload is none else 'inline(array(from_json(cast(' ~ healing_tables._quoted(payload)
    ~ ' as string), ' ~ healing_tables._string_literal('op_type string, op_ts string, pos string, before struct<'
        ~ schema ~ '>, after struct<' ~ schema ~ '>') ~ ')))' -%}
{%- set changed, row = [], "if(op_type = 'D' or not is_after, before, after)" -%}
{%- for key in keys -%}
    {%- do changed.append('before.' ~ healing_tables._quoted(key) ~ ' <> after.' ~ healing_tables._quoted(key)) -%}
{%- endfor -%}
{%- set replaced = {} -%}
{%- for name in columns -%} {%- do replaced.update({name | lower: row ~ '.' ~ healing_tables._quoted(name)}) -%}
{%- endfor -%}
{%- set messages = '(select ' ~ message ~ ' from ' ~ relation ~ ')' -%}
{{ healing_tables._read_feed('read_goldengate', mistakes, messages, none, columns, column_names, {
    'needed': [], 'at': 'cast(op_ts as timestamp_ntz)', 'replaced': replaced,
    'is_deleted': "op_type = 'D' or not is_after", 'is_truncated': "op_type = 'T'",
    'sequence': 'struct(pos, if(is_after, 1, 0) as part)',
    'pieces': "lateral view explode(if(op_type = 'U' and (" ~ (changed | join(' or ') or 'false')
        ~ '), array(true, false), array(true))) pieces as is_after'}) }}
{%- endmacro %}
