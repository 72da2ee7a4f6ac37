{#- What the envelopes of Debezium have: the connectors' positions, and its encodings of values in JSON. -#}

{#- The members of `source` that tell moment and position, as DDL. -#}
{% macro _debezium_source() -%}
    {%- set members = ['ts_ms bigint', 'ts_us bigint'] -%}
    {%- for name, type in healing_tables._debezium_positions().items() -%} {%- do members.append(name ~ ' ' ~ type) -%}
    {%- endfor -%}
    {{- return(members | join(', ')) -}}
{%- endmacro %}

{#- The positions, of PostgreSQL, SQL Server, MySQL and Oracle; a connector has those of its own database. -#}
{% macro _debezium_positions() -%}
    {{- return({'lsn': 'bigint', 'commit_lsn': 'string', 'change_lsn': 'string', 'event_serial_no': 'bigint',
        'file': 'string', 'pos': 'bigint', 'row': 'int', 'scn': 'string'}) -}}
{%- endmacro %}

{#- The positions of an envelope in a message; of one in columns, those that its struct `source` has. -#}
{% macro _debezium_order(found) -%}
    {%- set fields = healing_tables._debezium_fields(found) -%}
    {%- set order = [] -%}
    {%- for name in healing_tables._debezium_positions() if fields is none or name in fields -%}
        {#- a number as text -#}
        {%- do order.append('cast(source.scn as decimal(38,0)) as scn' if name == 'scn' else 'source.' ~ name) -%}
    {%- endfor -%}
    {{- return(order) -}}
{%- endmacro %}

{% macro _debezium_moment(found) -%}
    {%- set fields = healing_tables._debezium_fields(found) or [] -%}
    {%- set moments = (['timestamp_micros(source.ts_us)'] if 'ts_us' in fields else [])
        + ['timestamp_millis(source.ts_ms)'] -%}
    {{- return('coalesce(' ~ (moments | join(', ')) ~ ')') -}}
{%- endmacro %}

{#- The names in the struct `source`; none if they are not known. -#}
{% macro _debezium_fields(found) -%}
    {%- set type = (found or {}).get('source') or '' -%}
    {%- set fields = healing_tables._struct_fields(type[7:-1]) if type.startswith('struct<') else none -%}
    {{- return(fields | map('first') | list if fields is not none else none) -}}
{%- endmacro %}

{#- A value that Debezium has written as JSON, in its type. `value`: its text. -#}
{% macro _debezium_value(mistakes, name, value, type, timestamps, decimals) -%}
    {%- set unit = timestamps.get(name, 'us') if timestamps is mapping else timestamps -%}
    {%- do healing_tables._check_choice(mistakes, 'timestamps', unit, ['ms', 'us', 'ns']) -%}
    {%- set whole = 'try_cast(' ~ value ~ ' as bigint)' -%}
    {%- set micros = whole ~ {'ms': ' * 1000', 'us': '', 'ns': ' div 1000'}.get(unit, '') -%}
    {%- if type == 'string' -%} {{ return(value) }}
    {%- elif type == 'date' -%}
        {{- return('coalesce(date_from_unix_date(try_cast(' ~ value ~ ' as int)), try_cast(' ~ value ~ ' as date))') -}}
    {%- elif type == 'timestamp' -%}
        {{- return('coalesce(timestamp_micros(' ~ micros ~ '), try_cast(' ~ value ~ ' as timestamp))') -}}
    {%- elif type == 'timestamp_ntz' -%}
        {{- return("coalesce(timestamp_ntz '1970-01-01 00:00:00' + (" ~ micros
            ~ ") * interval '0.000001' second, try_cast(" ~ value ~ ' as timestamp_ntz))') -}}
    {%- elif type == 'binary' -%} {{ return('unbase64(' ~ value ~ ')') }}
    {%- elif type.startswith('decimal(') and decimals == 'base64' -%}
        {{- return(healing_tables._decimal_of_bytes(value, type)) -}}
    {%- elif modules.re.match('(array|struct|map)<', type) -%}
        {{- return('from_json(' ~ value ~ ', ' ~ healing_tables._string_literal(type) ~ ')') -}}
    {%- endif -%}
    {{- return('cast(' ~ value ~ ' as ' ~ type ~ ')') -}}
{%- endmacro %}

{#- A decimal that is written as the base64 of its unscaled value, two's complement, the highest byte first. -#}
{% macro _decimal_of_bytes(value, type) -%}
    {%- set digits = 'hex(unbase64(' ~ value ~ '))' -%}
    {%- set byte = "cast(conv(substr(" ~ digits ~ ", 2 * i - 1, 2), 16, 10) as int)" -%}
    {%- set scale = healing_tables._precision_and_scale(type)[1] -%}
    {{- return('if(' ~ value ~ ' is null, null, cast(concat(cast(aggregate(sequence(1, length(' ~ digits
        ~ ') div 2), cast(0 as decimal(38,0)), (total, i) -> cast(total * 256 + ' ~ byte ~ ' - if(i = 1 and ' ~ byte
        ~ " >= 128, 256, 0) as decimal(38,0))) as string), 'E-" ~ scale ~ "') as " ~ type ~ '))') -}}
{%- endmacro %}

{#- Rows flattened by ExtractNewRecordState. Its setting add.fields adds columns with moment, position and
    operation. -#}
{% macro _read_flattened_debezium(mistakes, relation, found, columns, column_names) -%}
    {%- set names = {} -%}
    {%- for name in found or {} -%} {%- do names.update({name | lower: name}) -%} {%- endfor -%}
    {%- set moments = [] -%}
    {%- for name, function in {'__source_ts_us': 'timestamp_micros', '__source_ts_ms': 'timestamp_millis'}.items()
        if name in names -%}
        {%- do moments.append(function ~ '(' ~ name ~ ')') -%}
    {%- endfor -%}
    {%- do healing_tables._mistake(mistakes, 'relation',
        'a column op (an envelope), or __source_ts_ms (flattened rows with add.fields=op,lsn,source.ts_ms)',
        (found or {}) | join(', ') or 'unknown columns',
        'pass payload and schema, or add the fields') if not moments -%}
    {%- set at, order = 'coalesce(' ~ (moments | join(', ')) ~ ')', [] -%}
    {%- for name in healing_tables._debezium_positions() -%}
        {%- for spelling in ['__' ~ name, '__source_' ~ name] if spelling in names -%}
            {%- do order.append(spelling) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set flags = (["coalesce(cast(__deleted as string) = 'true', false)"] if '__deleted' in names else [])
        + (["coalesce(__op = 'd', false)"] if '__op' in names else []) -%}
    {{- return(healing_tables._read_feed('read_debezium', mistakes, relation, found, columns, column_names, {
        'needed': [], 'hidden': '__.*', 'at': at, 'is_deleted': flags | join(' or ') or 'false',
        'is_truncated': "coalesce(__op = 't', false)" if '__op' in names else 'false',
        'sequence': healing_tables._debezium_place(order, at, "if(__op = 'r', 0, 1)" if '__op' in names else '1')}))
        -}}
{%- endmacro %}

{#- The place of a row among those of its key: its position in the log of the database, or its moment where it has none.
    A row of a snapshot comes before others of its place, also if it was read later. -#}
{% macro _debezium_place(order, at, part) -%}
    {%- set has_none = [] -%}
    {%- for column in order -%} {%- do has_none.append((column | replace(' as scn', '')) ~ ' is null') -%}
    {%- endfor -%}
    {%- set unplaced = at if not order else 'if(' ~ (has_none | join(' and ')) ~ ', ' ~ at ~ ', null)' -%}
    {{- return('struct(' ~ (order + [unplaced ~ ' as at', part ~ ' as part'] + ([at ~ ' as read_at'] if order else []))
        | join(', ') ~ ')') -}}
{%- endmacro %}
