{#- A column of both tables, converted so that values can be compared: {stored, candidate, type ('micros' for two types
    of moments)}. `made`: the candidate's expression for it, if not its name. -#}
{% macro _comparable_column(column, stored_columns, columns, made=none) -%}
    {%- set name = healing_tables._quoted(column) -%}
    {%- set names = {'stored': name, 'candidate': made or name} -%}
    {%- set types = {
        'stored': healing_tables._type_of_column(stored_columns, column),
        'candidate': healing_tables._type_of_column(columns, column)} -%}
    {%- for side, type in types.items() if healing_tables._plain_type(type) != type -%}
        {%- do names.update({side: healing_tables._normalized_value(names[side], type)}) -%}
    {%- endfor -%}
    {%- set types = {'stored': healing_tables._plain_type(types.stored),
        'candidate': healing_tables._plain_type(types.candidate)} -%}
    {%- set is_moment = types.values() | reject('in', ['date', 'timestamp', 'timestamp_ntz']) | list | length == 0 -%}
    {%- set common = healing_tables._common_type(types.values() | list) -%}
    {%- set found = {
        'type': types.stored if types.stored == types.candidate else 'micros' if is_moment else 'string'
        if common == 'mixed' else common} -%}
    {%- for side, type in types.items() -%}
        {%- do found.update({side: names[side] if type == found.type
            else healing_tables._to_micros(names[side], type) if is_moment
            else 'cast(' ~ names[side] ~ ' as string)' if common == 'mixed'
            else healing_tables._cast(names[side], type, common)}) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
