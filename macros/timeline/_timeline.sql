{#-
    The sources of a key on one timeline. Returns the CTEs up to `points`: one row per key and moment at which a
    source changes, with the state of every source from then on.

    crm rows     key | at | state          points     key | at | crm     | web
                 1   | 3  | {Ann}     ->              1   | 3  | {Ann}   | NULL
    web rows     1   | 5  | {a@b.no}                  1   | 5  | {Ann}   | {a@b.no}

    Every window is partitioned by the key and ordered by the moment first, so the data is shuffled once and sorted
    once. A state of NULL means that the source does not have the key. `first`: CTEs to start with, which read the
    sources and none of the CTEs here; `has_inputs`: they also read the sources for the timeline, see _inputs.
-#}
{% macro _timeline(spec, first='', has_inputs=false) -%}
{%- set keys = healing_tables._key_names(spec.key_columns) -%}
with
{{- first }}
{%- for source in spec.sources %}
{{ healing_tables._quoted(source.name ~ ' rows') }} as (
    {{- healing_tables._cdc_rows(spec, source, has_inputs) if source.has_cdc_rules
        else healing_tables._source_rows(spec, source, has_inputs) }}
),
{%- if healing_tables._has_absence_deletes(source) %}
{{ healing_tables._quoted(source.name ~ ' calendar') }} as (
    {{- healing_tables._calendar(spec, source) }}
),
{%- endif %}
{%- endfor %}
events as (
    {%- for source in spec.sources %}
    {%- if not loop.first %}
    union all
    {%- endif %}
    {{- healing_tables._events(spec, source, loop.index) }}
    {%- endfor %}
),
{%- if spec.sources | selectattr('has_tie') | list %}
ranked as (
    {{- healing_tables._ranked(spec, keys) }}
),
{%- endif %}
moments as (
    {{- healing_tables._moments(spec, keys) }}
),
states as (
    {{- healing_tables._states(spec, keys) }}
),
points as (
    {{- healing_tables._change_points(spec, keys) }}
)
{%- endmacro %}

{#- The events of one source in the common shape; an end is a moment of its own, even without another event. -#}
{% macro _events(spec, source, source_no) -%}
{%- set event = 'struct(state, until)' if source.has_end else 'struct(state)' %}
{%- set by_absence = healing_tables._has_absence_deletes(source) %}
{%- set start = 'taken.since' if by_absence and source.cut_from is not none else 'source_rows.at' %}
    select {% if by_absence %}/*+ broadcast(taken) */ {% endif -%}
        {{ healing_tables._key_names(spec.key_columns) }},
        {{ 'if(starts, ' ~ start ~ ', until)' if source.has_end else 'at' }} as at,
        {{ 'if(starts, ' ~ source_no ~ ', 0)' if source.has_end else source_no }} as source_no
        {%- for other in spec.sources %},
        {{ ('if(starts, ' ~ event ~ ', null)' if source.has_end else event) if other.name == source.name else 'null'
        }} as {{ healing_tables._source_column(other, 'event') }}
        {%- endfor %}
        {%- for other in spec.sources if other.has_tie %},
        {{ ('if(starts, tie, null)' if source.has_end else 'tie') if other.name == source.name else 'null'
        }} as {{ healing_tables._source_column(other, 'tie') }}
        {%- endfor %}
        {%- for column in healing_tables._further_columns(spec, spec.sources[0]) %},
        {{ column }}
        {%- endfor %}
    from {{ healing_tables._quoted(source.name ~ ' rows') }}{{ ' as source_rows' if source.has_end }}
    {%- if source.has_end %}
    {%- if by_absence %}
    join {{ healing_tables._quoted(source.name ~ ' calendar') }} as taken on taken.at = source_rows.at
        {%- for _ in source.within %} and taken.within_{{ loop.index }} <=> source_rows.within_{{ loop.index }}
        {%- endfor %}
    {%- endif %}
    lateral view explode(array(true, false)) ends as starts
    where starts or until is not null
    {%- endif %}
{%- endmacro %}

{#-
    Rows of one moment and source, the winner first; different rows that tie with it are an error. The data is
    distributed by the key here; otherwise Spark would shuffle it by key and moment, and then again by key.
-#}
{% macro _ranked(spec, keys) %}
    select *,
        row_number() over ranking as nth
        {%- if spec.opened_by %},
        min(opened) over (partition by {{ keys }}) as first_opened
        {%- endif %}
        {%- for source in spec.sources if source.on_tie != 'greatest' %},
        first_value({{ healing_tables._source_column(source, 'event') }}) over ranking
            as {{ healing_tables._source_column(source, 'winner') }}
        {%- if source.has_tie %},
        first_value({{ healing_tables._source_column(source, 'tie') }}) over ranking
            as {{ healing_tables._source_column(source, 'best') }}
        {%- endif %}
        {%- endfor %}
    from (select * from events distribute by {{ keys }})
    window ranking as (
        partition by {{ keys }}, at, source_no
        order by
            {%- for source in spec.sources if source.has_tie %}
            {{ healing_tables._source_column(source, 'tie') }} desc{{ ',' if not loop.last }}
            {%- endfor %}
        rows between unbounded preceding and current row
    )
{%- endmacro %}

{#-
    The state of each source at every row; it is the same for all rows of a moment. The previous state is computed
    later, from one row per moment, except if overlapping periods must be found.
-#}
{% macro _moments(spec, keys) -%}
{%- set ranked = spec.sources | selectattr('has_tie') | list | length > 0 -%}
{%- set periods = spec.sources | selectattr('kind', 'equalto', 'periods') | list %}
    select
        {{ keys }},
        at,
        {%- if spec.moment_type is none %}
        moment_type,
        {%- endif %}
        {%- if spec.opened_by %}
        {{ 'first_opened' if ranked else 'min(opened) over (partition by ' ~ keys ~ ')' }} as opened,
        {%- endif %}
        {%- for source in spec.sources %}
        {%- if not ranked or source.kind == 'periods' %}
        {{ healing_tables._source_column(source, 'event') }},
        {%- endif %}
        last_value({{ healing_tables._source_column(source, 'event') }}) ignore nulls over now
            as {{ healing_tables._source_column(source, 'now') }},
        {%- if source.kind == 'periods' %}
        last_value({{ healing_tables._source_column(source, 'event') }}) ignore nulls over before
            as {{ healing_tables._source_column(source, 'before') }},
        {%- endif %}
        {%- endfor %}
        lead(at) over (partition by {{ keys }} order by at) as next_at
    from {{ 'ranked' if ranked else 'events' }}
    {%- if ranked %}
    where {{ healing_tables._unless_tie(spec, spec.sources | rejectattr('on_tie', 'equalto', 'greatest') | list,
        'winner', 'nth = 1') }}
    {%- endif %}
    window
        now as (partition by {{ keys }} order by at range between unbounded preceding and current row)
        {%- if periods %},
        before as (partition by {{ keys }} order by at range between unbounded preceding and 1 preceding)
        {%- endif %}
{%- endmacro %}

{#- One row per moment, with each source's state: NULL if the key is deleted, ended or not yet seen in the source. -#}
{% macro _states(spec, keys) -%}
{%- set ranked = spec.sources | selectattr('has_tie') | list | length > 0 %}
    select
        {{ keys }},
        at
        {%- for column in healing_tables._further_columns(spec, spec.sources[0]) %},
        {{ column }}
        {%- endfor %}
        {%- for source in spec.sources %},
        {%- set now = healing_tables._source_column(source, 'now') %}
        {{ 'if(' ~ now ~ '.until <= at, null, ' ~ now ~ '.state)' if source.has_end
            else now ~ '.state' }} as {{ healing_tables._state_column(source.name) }}
        {%- endfor %}
    from moments
    where {{ healing_tables._unless_tie(spec, [] if ranked else spec.sources, 'now', 'at is distinct from next_at') }}
{%- endmacro %}

{#- The moments at which at least one source changes. -#}
{% macro _change_points(spec, keys) %}
    select
        {{ keys }},
        at
        {%- for column in healing_tables._further_columns(spec, spec.sources[0]) %},
        {{ column }}
        {%- endfor %}
        {%- for source in spec.sources %},
        {{ healing_tables._state_column(source.name) }}
        {%- endfor %}
        {%- for change in healing_tables._watched_changes(spec) %},
        {{ healing_tables._change_condition(change.source, change.column) }} as {{ change.name }}
        {%- endfor %}
    from (
        select *
            {%- for source in spec.sources %},
            lag({{ healing_tables._state_column(source.name) }}) over (partition by {{ keys }} order by at)
                as {{ healing_tables._source_column(source, 'before') }}
            {%- endfor %}
        from states
    )
    where {% for source in spec.sources -%}
        {{ '\n        or ' if not loop.first }}{{ healing_tables._change_condition(source, none) }}
        {%- endfor %}
{%- endmacro %}
