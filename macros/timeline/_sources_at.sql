{#- Columns of the timeline: the events and the state of each source, and which changes of them are tracked. -#}

{#- Names of columns about a source: `crm event`, `crm now`, ... The blank avoids clashes with other names. -#}
{% macro _source_column(source, what) -%}
    {{- return(healing_tables._quoted(source.name ~ ' ' ~ what)) -}}
{%- endmacro %}

{#- The column with the state of a source, NULL if it does not have the key: named like the source, unless the timeline
    uses that name. -#}
{% macro _state_column(name) -%}
    {%- set is_taken = modules.re.match('^(at|next_at|moment_type|opened|(key|change|began|first)_[0-9]+)$',
        name | lower) is not none -%}
    {{- return(healing_tables._quoted(name ~ (' state' if is_taken else ''))) -}}
{%- endmacro %}

{#- The changes that `points` marks: those that rules most_recent_* watch, and with change_source those of every source:
    [{name, began (column of `recent`, none if no rule watches it), source, column or none}]. -#}
{% macro _watched_changes(spec) -%}
    {%- set watched = {} -%}
    {%- for attribute in spec.attributes -%}
        {%- for entry in attribute.from if entry.change is defined -%}
            {%- do watched.update({entry.change: {
                'name': 'change_' ~ entry.change, 'began': 'began_' ~ entry.change,
                'source': spec.sources | selectattr('name', 'equalto', entry.source) | first,
                'column': entry.column if attribute.rule == 'most_recent_value' else none}}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set changes = watched.values() | list -%}
    {%- set of_rows = changes | selectattr('column', 'none') | map(attribute='source.name') | list -%}
    {%- for source in spec.sources if healing_tables._tracks_sources(spec) and source.name not in of_rows -%}
        {%- do changes.append({
            'name': 'change_' ~ (changes | length + 1), 'began': none, 'source': source, 'column': none}) -%}
    {%- endfor -%}
    {{- return(changes) -}}
{%- endmacro %}

{#- Whether the column change_source names the sources that change; in a merge, the rows of the batch give it. -#}
{% macro _tracks_sources(spec) -%}
    {{- return(spec.names.change_source is not none and 'change_source' not in spec.causes) -}}
{%- endmacro %}

{#- Whether a source's row, or one of its values, changes here; after an absence, an equal value counts as a change. -#}
{% macro _change_condition(source, column) -%}
    {%- set field = '.' ~ healing_tables._quoted(column) if column is not none else '' -%}
    {{- return(
        'not (' ~ healing_tables._state_column(source.name) ~ field ~ ' <=> ' ~ healing_tables._source_column(source,
            'before') ~ field ~ ')') -}}
{%- endmacro %}
