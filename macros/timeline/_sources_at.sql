{#- Columns of the timeline: the events and the state of each source, and which changes of them are tracked. -#}

{#- Names of columns about a source: `crm event`, `crm now`, ... The blank avoids clashes with other names. -#}
{% macro _source_column(source, what) -%}
    {{- return(healing_tables._quoted(source.name ~ ' ' ~ what)) -}}
{%- endmacro %}

{#- The column with the state of a source, NULL if it does not have the key: named like the source, unless the timeline
    uses that name. -#}
{% macro _state_column(name) -%}
    {%- set is_taken = modules.re.match('^(at|next_at|moment_type|(key|change|began|first)_[0-9]+)$',
        name | lower) is not none -%}
    {{- return(healing_tables._quoted(name ~ (' state' if is_taken else ''))) -}}
{%- endmacro %}

{#- The changes that the rules most_recent_row and most_recent_value track: [{name, source, column or none}]. -#}
{% macro _watched_changes(spec) -%}
    {%- set watched = {} -%}
    {%- for attribute in spec.attributes if attribute.rule.startswith('most_recent') and attribute.from | length > 1 -%}
        {%- for entry in attribute.from -%}
            {%- set column = entry.column if attribute.rule == 'most_recent_value' else none -%}
            {%- set id = [entry.source, column] | string -%}
            {%- if id not in watched -%}
                {%- set source = spec.sources | selectattr('name', 'equalto', entry.source) | first -%}
                {%- do watched.update({id: {
                    'name': 'change_' ~ (watched | length + 1), 'began': 'began_' ~ (watched | length + 1),
                    'source': source, 'column': column}}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- if spec.names.change_source is not none -%}
        {%- for source in spec.sources -%}
            {%- if [source.name, none] | string not in watched -%}
                {%- do watched.update({[source.name, none] | string: {
                    'name': 'change_' ~ (watched | length + 1), 'began': none, 'source': source, 'column': none}}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{- return(watched.values() | list) -}}
{%- endmacro %}

{#- Whether a source's row, or one of its values, changes here; after an absence, an equal value counts as a change. -#}
{% macro _change_condition(source, column) -%}
    {%- set field = '.' ~ healing_tables._quoted(column) if column is not none else '' -%}
    {{- return(
        'not (' ~ healing_tables._state_column(source.name) ~ field ~ ' <=> ' ~ healing_tables._source_column(source,
            'before') ~ field ~ ')') -}}
{%- endmacro %}
