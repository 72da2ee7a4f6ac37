{#- Ownership: which source's value an attribute has in a slice, and which source that is. -#}

{#- The value of an attribute in a slice, by its rule. -#}
{% macro _owned_value(spec, attribute) -%}
    {%- set values = healing_tables._source_values(attribute) -%}
    {{- return(healing_tables._choose_by_rule(spec, attribute, values, values)) -}}
{%- endmacro %}

{#- Which source gave that value; NULL where none did. -#}
{% macro _owner(spec, attribute) -%}
    {%- set values = healing_tables._source_values(attribute) -%}
    {%- set owners = [] -%}
    {%- for entry in attribute.from -%}
        {#- where a source alone decides, its NULL is a statement #}
        {%- set speaks = healing_tables._state_column(entry.source) if values | length == 1
            or attribute.rule == 'first_present' else values[loop.index0] -%}
        {%- do owners.append('if(' ~ speaks ~ ' is not null, '
            ~ healing_tables._text(healing_tables._owner_name(attribute, entry)) ~ ', null)') -%}
    {%- endfor -%}
    {{- return(healing_tables._choose_by_rule(spec, attribute, values, owners)) -}}
{%- endmacro %}

{#- An entry of `from` as people write it. -#}
{% macro _owner_name(attribute, entry) -%}
    {{- return(entry.source ~ ('.' ~ entry.column if entry.column != attribute.name)) -}}
{%- endmacro %}

{#- What each source of an attribute says, in its type. -#}
{% macro _source_values(attribute) -%}
    {%- set values = [] -%}
    {%- for entry in attribute.from -%}
        {%- do values.append(healing_tables._cast(
            healing_tables._state_column(entry.source) ~ '.' ~ healing_tables._id(entry.column), entry.type,
            attribute.type)) -%}
    {%- endfor -%}
    {{- return(values) -}}
{%- endmacro %}

{#- The rules: which of `results` counts, by what the sources say (`values`). -#}
{% macro _choose_by_rule(spec, attribute, values, results) -%}
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
    {{- return(healing_tables._most_recent(spec, attribute, values, results)) -}}
{%- endmacro %}

{#- Each value in turn wins if it is not NULL and none after it in the list began later. -#}
{% macro _most_recent(spec, attribute, values, results) -%}
    {%- set began = [] -%}
    {%- for entry in attribute.from -%}
        {%- set column = entry.column if attribute.rule == 'most_recent_value' else none -%}
        {%- for change in healing_tables._watched_changes(spec) if change.source.name == entry.source
            and change.column == column -%}
            {%- do began.append(change.began) -%}
        {%- endfor -%}
    {%- endfor -%}
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
