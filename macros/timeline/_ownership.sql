{#- Ownership: the value of an attribute in a slice, and the source that it comes from. -#}

{#- The value of an attribute in a slice, by its rule. -#}
{% macro _owned_value(attribute) -%}
    {%- set values = healing_tables._source_values(attribute) -%}
    {{- return(healing_tables._choose_by_rule(attribute, values, values)) -}}
{%- endmacro %}

{#- The source of that value; NULL if there is none. -#}
{% macro _owner(attribute) -%}
    {%- set values = healing_tables._source_values(attribute) -%}
    {%- set owners = [] -%}
    {%- for entry in attribute.from -%}
        {#- if one source alone decides, its NULL counts as a value #}
        {%- set speaks = healing_tables._state_column(entry.source) if values | length == 1
            or attribute.rule == 'first_present' else values[loop.index0] -%}
        {%- do owners.append('if(' ~ speaks ~ ' is not null, '
            ~ healing_tables._string_literal(healing_tables._owner_name(attribute, entry)) ~ ', null)') -%}
    {%- endfor -%}
    {{- return(healing_tables._choose_by_rule(attribute, values, owners)) -}}
{%- endmacro %}

{#- An entry of `from` as users write it. -#}
{% macro _owner_name(attribute, entry) -%}
    {{- return(entry.source ~ ('.' ~ entry.column if entry.column != attribute.name)) -}}
{%- endmacro %}

{#- The value of an attribute in each of its sources, in the attribute's type. -#}
{% macro _source_values(attribute) -%}
    {%- set values = [] -%}
    {%- for entry in attribute.from -%}
        {%- do values.append(healing_tables._cast(
            healing_tables._state_column(entry.source) ~ '.' ~ entry.quoted, entry.type, attribute.type)) -%}
    {%- endfor -%}
    {{- return(values) -}}
{%- endmacro %}

{#- Apply the rule of an attribute: choose one of `results` by the sources' values (`values`). -#}
{% macro _choose_by_rule(attribute, values, results) -%}
    {%- if values | length == 1 -%} {{ return(results[0]) }} {%- endif -%}
    {%- if attribute.rule == 'first_non_null' -%} {{ return('coalesce(' ~ results | join(', ') ~ ')') }} {%- endif -%}
    {%- set cases = [] -%}
    {%- if attribute.rule == 'first_present' -%}
        {%- for result in results -%}
            {%- do cases.append('when ' ~ healing_tables._state_column(attribute.from[loop.index0].source)
                ~ ' is not null then ' ~ result) -%}
        {%- endfor -%}
        {{- return('case ' ~ cases | join(' ') ~ ' end') -}}
    {%- endif -%}
    {{- return(healing_tables._most_recent(attribute, values, results)) -}}
{%- endmacro %}

{#- For each source of an attribute with a rule most_recent_*, the column with the moment that its value is from. -#}
{% macro _began_columns(attribute) -%}
    {%- set began = [] -%}
    {%- for entry in attribute.from -%} {%- do began.append('began_' ~ entry.change) -%} {%- endfor -%}
    {{- return(began) -}}
{%- endmacro %}

{#- The first value in the list that is not NULL and not followed by one that started later. -#}
{% macro _most_recent(attribute, values, results) -%}
    {%- set began = healing_tables._began_columns(attribute) -%}
    {%- set cases = [] -%}
    {%- for value in values[:-1] -%}
        {%- set position = loop.index0 -%}
        {%- set conditions = [value ~ ' is not null'] -%}
        {%- for other in range(position + 1, values | length) -%}
            {%- do conditions.append('(' ~ values[other] ~ ' is null or ' ~ began[position] ~ ' >= ' ~ began[other]
                ~ ')') -%}
        {%- endfor -%}
        {%- do cases.append('when ' ~ conditions | join(' and ') ~ ' then ' ~ results[position]) -%}
    {%- endfor -%}
    {{- return('case ' ~ cases | join(' ') ~ ' else ' ~ results[-1] ~ ' end') -}}
{%- endmacro %}
