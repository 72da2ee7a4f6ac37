{#- What the macros that read dimensions share: a relation, its columns, and the period of a row. -#}

{#-
    The period of a row, as SQL: valid_from, valid_to (the columns) with from_type and to_type, at (its start in
    microseconds), until (its end; behind every moment where the row is open), is_open and is_proper (it holds a
    moment).

    Only the end says what is open. The flag does not: a merge with current_while_deleted leaves it on rows that ended.
-#}
{% macro _period(mistakes, relation, columns, valid_from, valid_to, valid_to_current) -%}
    {%- do healing_tables._check_moment_column(mistakes, 'valid_from', valid_from, relation, columns) -%}
    {%- do healing_tables._check_moment_column(mistakes, 'valid_to', valid_to, relation, columns) -%}
    {%- set end = healing_tables._checked_open_end(mistakes, valid_to_current) -%}
    {%- set period = {
        'valid_from': valid_from, 'from_type': healing_tables._type_of_column(columns, valid_from),
        'valid_to': valid_to, 'to_type': healing_tables._type_of_column(columns, valid_to)} -%}
    {%- set at = healing_tables._to_micros(healing_tables._quoted(valid_from), period.from_type) -%}
    {%- set to = healing_tables._to_micros(healing_tables._quoted(valid_to), period.to_type) -%}
    {%- set is_open = '(' ~ healing_tables._quoted(valid_to) ~ ' is null or '
        ~ healing_tables._compare_instant(valid_to, period.to_type, '>=', healing_tables._open_from_text(end))
        ~ ')' -%}
    {%- do period.update({
        'at': at, 'is_open': is_open, 'until': 'if(' ~ is_open ~ ', 9223372036854775807, ' ~ to ~ ')',
        'is_proper': healing_tables._quoted(valid_from) ~ ' is not null and (' ~ is_open ~ ' or ' ~ at ~ ' < ' ~ to
        ~ ')'}) -%}
    {{- return(period) -}}
{%- endmacro %}

{#- The configured open end, none for NULL. -#}
{% macro _checked_open_end(mistakes, given) -%}
    {%- set end = healing_tables._valid_to_current(given) -%}
    {%- if end is none or healing_tables._parse_instant(end) is not none -%} {{ return(end) }} {%- endif -%}
    {%- do healing_tables._mistake(
        mistakes, 'valid_to_current', "a moment in UTC such as '9999-12-31 00:00:00', or none", end,
        'correct the text') -%}
    {{- return(none) -}}
{%- endmacro %}
