{#-
    A key has no gap between its first and its last moment, except allowed ones: not longer than the tolerance, or
    inside a listed one. If the sources of a dimension end keys, gaps are valid, and the check is off by default.
-#}
{% macro _check_no_gaps(arguments, check_request, dimension) -%}
    {{- return({
        'condition': 'is_proper and not is_covered_for_ever and coalesce(furthest < valid_from, false)'
            ~ healing_tables._allowed_gap_conditions(arguments, check_request.get('key_columns', [])),
        'default': none if dimension.has_gaps else {}, 'arguments': ['allowed_gaps', 'tolerance'],
        'figures': {'gap_start': ['furthest', 'valid_to'], 'gap_end': ['valid_from'] * 2}}) -}}
{%- endmacro %}

{#- More conditions for a row that starts after a gap, as text; empty while dbt parses, when a mistake would stop every
    command. -#}
{% macro _allowed_gap_conditions(arguments, key_columns) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set tolerance = healing_tables._interval_seconds(mistakes, 'tolerance', arguments.tolerance)
        if arguments.get('tolerance') -%}
    {%- set gaps = healing_tables._as_list(arguments.get('allowed_gaps')) -%}
    {%- do healing_tables._check_gaps(mistakes, gaps, key_columns) -%}
    {%- do healing_tables._raise_mistakes('no_gaps', mistakes) -%}
    {%- set conditions = [''] -%}
    {%- if tolerance -%}
        {%- do conditions.append(
            '(' ~ healing_tables._to_micros('furthest', none) ~ ") * interval '0.000001' second + interval '"
            ~ tolerance ~ "' second < (" ~ healing_tables._to_micros('valid_from', none)
            ~ ") * interval '0.000001' second") -%}
    {%- endif -%}
    {%- for gap in gaps -%}
        {%- set parts = [
            healing_tables._to_micros('furthest', none) ~ ' >= ' ~ healing_tables._micros_constant(gap.gap_start),
            healing_tables._to_micros('valid_from', none) ~ ' <= ' ~ healing_tables._micros_constant(gap.gap_end)]
            + healing_tables._key_conditions(key_columns, gap) -%}
        {%- do conditions.append('not (' ~ parts | join(' and ') ~ ')') -%}
    {%- endfor -%}
    {{- return(conditions | join(' and ')) -}}
{%- endmacro %}

{#- Each listed gap is a map of key columns, gap_start and gap_end. -#}
{% macro _check_gaps(mistakes, gaps, key_columns) -%}
    {%- set fields = key_columns + ['gap_start', 'gap_end'] -%}
    {%- for gap in gaps -%}
        {%- if gap is not mapping or gap.get('gap_start') is none or gap.get('gap_end') is none -%}
            {%- do healing_tables._mistake(
                mistakes, 'allowed_gaps', 'a map with gap_start and gap_end', healing_tables._display_value(gap),
                "write {customer_id: 1002, gap_start: '2024-01-01', gap_end: '2024-02-01'}") -%}
        {%- else -%}
            {#- case-insensitive, like column names -#}
            {%- do healing_tables._check_options(mistakes, 'allowed_gaps', healing_tables._missing_names(gap, fields),
                fields) -%}
            {%- for bound in [gap.gap_start, gap.gap_end] if healing_tables._parse_instant(bound) is none -%}
                {%- do healing_tables._mistake(
                    mistakes, 'allowed_gaps', "a moment in UTC such as '2024-01-01'", bound, 'correct the text') -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
