{#-
    Hashes are for readers and for comparing tables; change detection never uses them.

    A backslash is char(92) and a quote in a pattern char(39): an adapter that puts SQL into a Python string
    (dbt-glue) would drop the backslash, and the hash would differ.
-#}

{#- A value as text, the same in every session: none of these forms depends on time zone or ANSI mode. -#}
{% macro _as_text(expression, type) -%}
    {%- set family = healing_tables._type_family(type) -%}
    {%- if family == 'text' -%} {{ return(healing_tables._normalized_value(expression, type)) }}
    {%- elif family == 'floating' -%}
        {{- return('cast(' ~ healing_tables._normalized_value(expression, type) ~ ' as string)') -}}
    {%- elif family == 'binary' -%} {{ return('lower(hex(' ~ expression ~ '))') }}
    {%- elif family in ['timestamp', 'timestamp_ntz'] -%}
        {{- return(healing_tables._utc_text(healing_tables._to_micros(expression, type))) -}}
    {%- elif family == 'decimal' and healing_tables._precision_and_scale(type)[1] > 6 -%}
        {#- the only decimals that Spark may write with an exponent are those below 0.000001 -#}
        {%- set text = 'cast(' ~ expression ~ ' as string)' -%}
        {{- return(
            'case when contains(' ~ text ~ ", 'E') then concat(if(" ~ expression ~ " < 0, '-0.', '0.'), lpad(translate("
            ~ 'substring_index(' ~ text ~ ", 'E', 1), '-.', ''), " ~ healing_tables._precision_and_scale(type)[1]
            ~ ", '0')) else " ~ text ~ ' end'
        ) -}}
    {%- elif '<' in type -%}
        {{- return('to_json(' ~ healing_tables._normalized_value(expression, type)
            ~ ", map('timeZone', 'UTC', 'timestampFormat', " ~ healing_tables._iso_pattern('XXX')
            ~ ", 'timestampNTZFormat', " ~ healing_tables._iso_pattern() ~ '))') -}}
    {%- else -%} {{ return('cast(' ~ expression ~ ' as string)') }}
    {%- endif -%}
{%- endmacro %}

{#- ISO 8601 to the microsecond, as an expression. -#}
{% macro _iso_pattern(zone='') -%}
    {{- return("concat('yyyy-MM-dd', char(39), 'T', char(39), 'HH:mm:ss.SSSSSS" ~ zone ~ "')") -}}
{%- endmacro %}

{#- Text that can contain the separator or the NULL mark is escaped, so that different rows never give equal text. -#}
{% macro _hash_text(expression, type) -%}
    {%- set text = healing_tables._as_text(expression, type) -%}
    {%- if healing_tables._type_family(type) == 'text' or '<' in type -%}
        {%- set text = 'replace(replace(replace(' ~ text
            ~ ", char(92), repeat(char(92), 2)), '|', concat(char(92), '|')), '^', concat(char(92), '^'))" -%}
    {%- endif -%}
    {{- return("coalesce(" ~ text ~ ", '^^NULL^^')") -}}
{%- endmacro %}

{#-
    The surrogate key of a version, from its key columns [SQL] and its start [SQL], and from the hash of the key and the
    start as text that is the same in every session. `strategy` hash: the first 32 hex digits of the SHA-256 of both,
    joined by |; dbt_utils: as generate_surrogate_key of dbt_utils, whose casts to text depend on the session.
-#}
{% macro _version_key(strategy, keys, start, key_hash, start_text, has_null_keys) -%}
    {%- if strategy == 'hash' -%}
        {{- return('substr(sha2(concat(' ~ key_hash ~ ", '|', " ~ start_text ~ '), 256), 1, 32)') -}}
    {%- endif -%}
    {%- set texts = [] -%}
    {%- for expression in keys + [start] -%}
        {%- set text = 'cast(' ~ expression ~ ' as string)' -%}
        {%- do texts.append('coalesce(' ~ text ~ ", '_dbt_utils_surrogate_key_null_')" if has_null_keys else text) -%}
    {%- endfor -%}
    {{- return("md5(concat_ws('-', " ~ texts | join(', ') ~ '))') -}}
{%- endmacro %}

{#- Lower-case hex SHA-256 of columns [{expression, type}], joined by |. -#}
{% macro _hash(columns) -%}
    {%- set texts, of_type, mark = [], {}, healing_tables._column_mark() -%}
    {%- for column in columns -%}
        {%- do of_type.update({column.type: healing_tables._hash_text(mark, column.type)})
            if column.type not in of_type -%}
        {%- do texts.append(of_type[column.type] | replace(mark, column.expression)) -%}
    {%- endfor -%}
    {%- if texts | length == 0 -%} {{ return("sha2('', 256)") }}
    {%- elif texts | length == 1 -%} {{ return('sha2(' ~ texts[0] ~ ', 256)') }}
    {%- else -%} {{ return("sha2(concat_ws('|', " ~ texts | join(', ') ~ '), 256)') }}
    {%- endif -%}
{%- endmacro %}
