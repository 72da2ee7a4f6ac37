{#- The snapshots that were taken of a source. -#}

{#- The columns for whose values a snapshot is complete, as SQL. -#}
{% macro _within_columns(source) -%}
    {%- set columns = [] -%}
    {%- for column in source.within -%}
        {%- do columns.append(healing_tables._normalized_value(healing_tables._quoted(column),
            healing_tables._source_column_type(source, column))) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#-
    The moments of all snapshots, each with the next one: those of the calendar and those in the data, also in rows
    that are set aside, but not in rows that `where` excludes. They are one small array, so that finding the next one
    needs no sort. With `within`, there is one array for each of its values.
-#}
{% macro _calendar(spec, source) -%}
{%- set is_cut = source.cut_from is not none or source.cut_to is not none -%}
{#- explain reads the rows of one key, but the moments of all; in `where (a)`, Spark takes `where` for an alias -#}
{%- set where = source.get('where_without_key', source.where) -%}
{%- set limit = healing_tables._end_of_time(spec.valid_to_current) %}
{%- set within, names, of_calendar = healing_tables._within_columns(source), [], [] -%}
{%- for column in within -%}
    {%- do names.append('within_' ~ loop.index ~ ', ') -%}
    {%- do of_calendar.append(healing_tables._quoted(source.within[loop.index0]) ~ ', ') -%}
{%- endfor -%}
{%- set names = names | join('') %}
    select {{ names ~ 'at, ' ~ healing_tables._windowed_end(source, 'until') ~ ' as until'
        ~ (', greatest(at, ' ~ healing_tables._micros_constant(source.cut_from) ~ ') as since'
            if source.cut_from is not none)
        ~ '\n    from (\n    select ' if is_cut }}{{ names
        }}inline(transform(moments, (moment, i) -> struct(moment as at,
        get(moments, i + 1) as until)))
    from (
        select {{ names }}sort_array(collect_set(at)) as moments
        from (
            select {% for column in within %}{{ column }} as within_{{ loop.index }}, {% endfor
            %}{{ healing_tables._source_moment(source) }} as at
            from {{ source.get('all_rows', source.relation) }}
            {%- if where %}
            where true and ({{ where }})
            {%- endif %}
            {%- if source.calendar %}
            union all
            select {{ of_calendar | join('') }}{{ healing_tables._to_micros(healing_tables._quoted(source.moment),
                source.calendar_type) }} as at
            from {{ source.calendar }}
            {%- endif %}
        )
        where at < {{ limit }}
        {%- if within %}
        group by {{ names[:-2] }}
        {%- endif %}
    )
    {%- if is_cut %}
    )
    {%- if source.cut_from is not none %}
    where coalesce(until > {{ healing_tables._micros_constant(source.cut_from) }}, true)
    {%- endif %}
    {%- endif %}
{%- endmacro %}
