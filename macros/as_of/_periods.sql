{#- What the macros that read dimensions share: a relation, its columns, and the period of a row. -#}

{#- The columns of a relation as _columns_of gives them; one that does not exist is a mistake. -#}
{% macro _columns_to_read(mistakes, argument, relation) -%}
    {%- set columns = healing_tables._columns_of(relation) if relation else {} -%}
    {%- if columns is not none and not columns -%}
        {%- do healing_tables._mistake(
            mistakes, argument, 'a table or view that exists, or the name of a CTE', relation | string,
            'build it first, or correct the name') -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The type of a column, none if it cannot be looked up. -#}
{% macro _type_in(columns, name) -%}
    {%- set found = healing_tables._find(name, columns or {}) -%}
    {{- return(columns[found] if found is not none else none) -}}
{%- endmacro %}

{% macro _check_moment_column(mistakes, argument, name, relation, columns) -%}
    {%- do healing_tables._check_columns(mistakes, argument, [name], relation | string, columns) -%}
    {%- set type = healing_tables._type_in(columns, name) -%}
    {%- if type is not none and type not in ['date', 'timestamp', 'timestamp_ntz'] -%}
        {%- do healing_tables._mistake(
            mistakes, argument ~ ': moment column ' ~ name, 'a date or a timestamp', type, 'cast it in the relation') -%}
    {%- endif -%}
{%- endmacro %}

{#-
    The period of a row, as SQL: valid_from, valid_to (the columns) with from_type and to_type, at (its start in
    microseconds), until (its end; behind every moment where the row is open), is_open and is_proper (it holds a moment).

    Only the end says what is open. The flag does not: a merge with current_while_deleted leaves it on rows that ended.
-#}
{% macro _period(mistakes, relation, columns, valid_from, valid_to, valid_to_current) -%}
    {%- do healing_tables._check_moment_column(mistakes, 'valid_from', valid_from, relation, columns) -%}
    {%- do healing_tables._check_moment_column(mistakes, 'valid_to', valid_to, relation, columns) -%}
    {%- set end = healing_tables._valid_to_current(valid_to_current) -%}
    {%- if end is not none and healing_tables._parse_moment(end) is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'valid_to_current', "a moment in UTC such as '9999-12-31 00:00:00', or none", end, 'correct the text') -%}
        {%- set end = none -%}
    {%- endif -%}
    {%- set period = {
        'valid_from': valid_from, 'from_type': healing_tables._type_in(columns, valid_from),
        'valid_to': valid_to, 'to_type': healing_tables._type_in(columns, valid_to)} -%}
    {%- set at = healing_tables._micros(healing_tables._id(valid_from), period.from_type) -%}
    {%- set to = healing_tables._micros(healing_tables._id(valid_to), period.to_type) -%}
    {%- set is_open = '(' ~ healing_tables._id(valid_to) ~ ' is null or '
        ~ healing_tables._compare_moment(valid_to, period.to_type, '>=', healing_tables._end_text(end)) ~ ')' -%}
    {%- do period.update({
        'at': at, 'is_open': is_open, 'until': 'if(' ~ is_open ~ ', 9223372036854775807, ' ~ to ~ ')',
        'is_proper': healing_tables._id(valid_from) ~ ' is not null and (' ~ is_open ~ ' or ' ~ at ~ ' < ' ~ to ~ ')'}) -%}
    {{- return(period) -}}
{%- endmacro %}

{#- A constant for a column of that type, as SQL; a type that is not known takes the constant as it is. -#}
{% macro _constant(mistakes, argument, value, type) -%}
    {%- if value is none -%} {{ return('null') }} {%- endif -%}
    {%- if type is none -%} {{ return(healing_tables._literal(value)) }} {%- endif -%}
    {%- set family = healing_tables._family(type) -%}
    {%- set is_number = value is number and value is not boolean -%}
    {%- if family == 'text' and (value is string or is_number) -%} {{ return(healing_tables._text(value)) }}
    {%- elif family == 'boolean' and value is boolean -%} {{ return(healing_tables._literal(value)) }}
    {%- elif family == 'integer' and value is integer -%}
        {%- set limit = {'tinyint': 127, 'smallint': 32767, 'int': 2147483647, 'bigint': 9223372036854775807}[type] -%}
        {%- if -limit - 1 <= value <= limit -%} {{ return('cast(' ~ value ~ ' as ' ~ type ~ ')') }} {%- endif -%}
    {%- elif family == 'decimal' and is_number -%}
        {%- set size = healing_tables._precision(type) -%}
        {%- if value | abs < 10 ** (size[0] - size[1]) and value | round(size[1]) == value -%}
            {{- return("cast('" ~ value ~ "' as " ~ type ~ ')') -}}
        {%- endif -%}
    {%- elif family == 'floating' and is_number -%} {{ return("cast('" ~ value ~ "' as " ~ type ~ ')') }}
    {%- elif family in ['date', 'timestamp', 'timestamp_ntz'] and healing_tables._parse_moment(value) is not none -%}
        {%- if family == 'timestamp_ntz' -%}
            {{- return("timestamp_ntz '" ~ (healing_tables._parse_moment(value) | join(' ')) ~ "'") -}}
        {%- endif -%}
        {{- return(healing_tables._open_end(value, type)) -}}
    {%- endif -%}
    {%- do healing_tables._mistake(
        mistakes, argument, 'a value of type ' ~ type ~ ', or none for NULL', value | string, 'correct the value') -%}
    {{- return('null') -}}
{%- endmacro %}
