{#- The two values of the flag of current rows, from the rows: see _end_groups.sql. -#}

{#- As current_values; none if no row shows them and none are given. `end`: of _end_of_groups(). With `repairs`, other
    values beside those that are given are damage. -#}
{% macro _flags_of_groups(mistakes, groups, given, end, repairs=false) -%}
    {%- set least = none if end in [none, '(not given)'] else healing_tables._shown_end(end, given.to_type) -%}
    {%- set opened = [] -%}
    {%- set closed = [] -%}
    {%- for group in groups -%}
        {%- set is_open = group.kind in ['open', 'none']
            or (least is not none and group.low is not none and group.low >= least) -%}
        {%- do (opened if is_open else closed).append(group) -%}
    {%- endfor -%}
    {%- set opened = healing_tables._value_counts(opened, 'flag') -%}
    {%- set closed = healing_tables._value_counts(closed, 'flag') -%}
    {%- if given.flags is not none or given.flag_type == 'boolean' -%}
        {{- return(healing_tables._checked_flags(mistakes, opened, closed, given, repairs)) -}}
    {%- endif -%}
    {%- set pairs = {'Y': 'N', 'y': 'n', 'T': 'F', 't': 'f', '1': '0', 'true': 'false', 'yes': 'no', 1: 0} -%}
    {%- set ended = closed | map(attribute='value') | list -%}
    {%- set all = opened | map(attribute='value') | reject('none') | list -%}
    {%- set values = (all | reject('in', ended) | list) or all -%}
    {%- if not values -%} {{ return(none) }} {%- endif -%}
    {%- set fitting = [] -%}
    {%- for value in values -%}
        {%- if values | reject('in', [value, pairs.get(value, value)]) | list | length == 0 -%}
            {%- do fitting.append(value) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set current = fitting[0] if fitting else none -%}
    {%- set others = ended | reject('in', [current, none]) | list -%}
    {%- if not others -%}
        {%- set others = [none] if none in ended else [pairs[current]] if current in pairs else [] -%}
    {%- endif -%}
    {%- if not fitting or others | length != 1 or current in pairs.values() -%}
        {%- do healing_tables._mistake(
            mistakes, 'current_values', 'two values: one in open rows, and one in rows that have ended',
            healing_tables._counted_values(opened) ~ '; ' ~ healing_tables._counted_values(closed) ~ ' that have ended',
            "name both, such as ['Y', 'N']") -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return([current, others[0]]) -}}
{%- endmacro %}

{#- The given values, or true and false, if the rows have no others. -#}
{% macro _checked_flags(mistakes, opened, closed, given, repairs) -%}
    {%- set pair = given.flags if given.flags is not none else [true, false] -%}
    {%- set open_values = opened | map(attribute='value') | list -%}
    {%- set closed_values = closed | map(attribute='value') | list -%}
    {%- set is_reversed = open_values == [pair[1]] and closed_values == [pair[0]] -%}
    {%- if is_reversed and given.flags is none -%} {{ return([false, true]) }} {%- endif -%}
    {%- set pair_or_null = pair + [none] -%}
    {%- set has_other_open = open_values | reject('in', pair_or_null) | list | length > 0
        and not (repairs and pair[0] in open_values) -%}
    {%- set has_other_closed = pair[1] not in closed_values
        and closed_values | reject('in', pair_or_null) | list | length > 0 -%}
    {%- if is_reversed or has_other_open or has_other_closed -%}
        {%- do healing_tables._mistake(
            mistakes, 'current_values', 'the values that the stored rows have: '
            ~ healing_tables._counted_values(opened) ~ '; ' ~ healing_tables._counted_values(closed)
            ~ ' that have ended',
            pair | join(', '),
            'leave it out, or name these; or update the table') -%}
    {%- endif -%}
    {{- return(pair) -}}
{%- endmacro %}
