{#- Which of several rows of a key counts: in a batch, in the change log, and in both together. -#}

{#- The order of rows with one key and moment, and what a row says: of the batch and of the log. -#}
{% macro _tie_of_batch(layout, prefix='') -%}
    {%- set names = [] -%}
    {%- for tie in layout.ties -%} {%- do names.append(prefix ~ tie.quoted) -%} {%- endfor -%}
    {{- return('struct(' ~ (names | join(', ') or 'true') ~ ')') -}}
{%- endmacro %}

{#- A deletion counts before other rows; values in the order of their names, as the library compares them. -#}
{% macro _state_of_batch(layout) -%}
    {%- set names = layout.attributes | sort(attribute='name', case_sensitive=true) | map(attribute='quoted') -%}
    {{- return('struct(is_deleted, if(is_deleted, null, struct(' ~ (names | join(', ') or 'true') ~ ')))') -}}
{%- endmacro %}

{#- Which of several rows of one key and moment counts, the first: as SQL after `order by`. Of equal rows, the greatest
    cause does, as in the library. -#}
{% macro _rank_of_row(layout, is_logged='') -%}
    {{- return(([healing_tables._tie_of_batch(layout) ~ ' desc', healing_tables._state_of_batch(layout) ~ ' desc']
        + ([is_logged ~ ' desc'] if is_logged else []) + (['struct(' ~ (layout.causes | map(attribute='quoted')
            | join(', ')) ~ ') desc'] if layout.causes else [])) | join(', ')) -}}
{%- endmacro %}

{#- Which rows compete, so that one of them counts: those of one key and moment, as SQL after `partition by`. With
    rules of change data capture, different rows do not: each may have values that the others lack. -#}
{% macro _competing_rows(layout) -%}
    {%- set place = layout['keys'] | map(attribute='quoted') | list + ['changed_at', 'is_full']
        + healing_tables._part_of_mark(layout) -%}
    {%- do place.extend([healing_tables._tie_of_batch(layout), healing_tables._state_of_batch(layout)])
        if layout.rules.has_rules -%}
    {{- return(place | join(', ')) -}}
{%- endmacro %}

{#- The columns of rows for the log, where `valid_from_first` is the least one in a window: the earliest start counts,
    whichever row does. -#}
{% macro _with_first_start(layout, partition) -%}
    {%- if not layout.has_first_starts -%} {{ return('*') }} {%- endif -%}
    {%- set columns = (layout['keys'] + layout.carried) | map(attribute='quoted')
        | reject('equalto', 'valid_from_first') | list -%}
    {{- return((columns + ['changed_at', 'is_deleted', 'is_full', 'min(valid_from_first) over (partition by '
        ~ partition ~ ') as valid_from_first']) | join(', ')) -}}
{%- endmacro %}

{#- Full batches of one moment are as many as their parts; of rows, this is NULL. -#}
{% macro _part_of_mark(layout) -%}
    {{- return(['if(is_full, within_values, null)'] if layout.part is not none else []) -}}
{%- endmacro %}
