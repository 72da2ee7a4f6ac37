{#-
    What inferred_members() was asked, checked: key_columns [see _as_of_keys], at and known_from (microseconds), first
    (where a placeholder begins), type (of its period; none if it cannot be looked up: then moment_type carries it),
    end.
-#}
{% macro _inferred_request(facts, known, key_columns, at, valid_from, valid_from_first) -%}
    {%- set mistakes = [] -%}
    {%- set fact_columns = healing_tables._columns_of_existing(mistakes, 'facts', facts) -%}
    {%- set known_columns = healing_tables._columns_of_existing(mistakes, 'known', known) -%}
    {%- do healing_tables._check_moment_column(mistakes, 'at', at, facts, fact_columns) -%}
    {%- do healing_tables._check_moment_column(mistakes, 'valid_from', valid_from, known, known_columns) -%}
    {%- if valid_from_first is not none and healing_tables._parse_instant(valid_from_first) is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'valid_from_first', "a moment in UTC such as '1900-01-01', or none", valid_from_first | string,
            'correct the text') -%}
    {%- endif -%}
    {%- set keys = healing_tables._as_of_keys(mistakes, key_columns, facts, known, fact_columns, known_columns) -%}
    {%- do healing_tables._raise_mistakes('inferred_members', mistakes) -%}
    {%- set type = healing_tables._type_of_column(known_columns, valid_from) -%}
    {%- set first = 'min(first_fact)' if valid_from_first is none
        else 'least(min(first_fact), ' ~ healing_tables._micros_constant(valid_from_first) ~ ')' -%}
    {{- return({
        'key_columns': keys, 'first': first,
        'at': healing_tables._to_micros(healing_tables._quoted(at), healing_tables._type_of_column(fact_columns, at)),
        'known_from': healing_tables._to_micros(healing_tables._quoted(valid_from), type),
        'type': type if type in [none, 'date'] else 'timestamp',
        'no_type': ', null as moment_type' if type is none else '',
        'moment_type': ', ' ~ healing_tables._quoted(valid_from) ~ ' as moment_type' if type is none else '',
        'any_type': ', max(moment_type) as moment_type' if type is none else '',
        'end': healing_tables._end_of_time(healing_tables._valid_to_current())}) -}}
{%- endmacro %}
