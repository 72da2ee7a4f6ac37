{#-
    The first rows of a change log: the changes that a stored dimension shows. Of type 1 only the newest value is known,
    of type 3 the last two. As plan/seed_events.py of the library, which says more.
-#}

{#- These rows, as SQL for a `from`, see _events_of_batch(). `shown`: {end, flags}. -#}
{% macro _seeds(spec, layout, existing, stored_columns, shown) -%}
{%- set names, type = layout.names, layout.moment_type -%}
{%- set keys = layout['keys'] | map(attribute='quoted') | list -%}
{%- set renamed = [] -%}
{%- for key in keys -%} {%- do renamed.append('key_' ~ loop.index ~ ' as ' ~ key) -%} {%- endfor -%}
{%- set period = healing_tables._stored_period(layout, stored_columns, shown) -%}
{%- set gone = healing_tables._find_column(layout.names.get('is_deleted') or '', stored_columns) -%}
{%- set values, at_moment, turns, inside, selected = [], [], [], [], [] -%}
{%- for attribute in layout.attributes -%}
    {%- set place, value = loop.index, 'state.' ~ attribute.quoted -%}
    {%- set moment = healing_tables._companion(spec, attribute, attribute.name ~ '_changed_at', stored_columns) -%}
    {%- set previous = healing_tables._companion(spec, attribute, 'previous_' ~ attribute.name, stored_columns) -%}
    {%- if attribute.options.scd_type in [1, 3] -%}
        {%- set changed = healing_tables._to_micros(healing_tables._quoted(moment), type) if moment is not none
            else 'cast(null as bigint)' -%}
        {%- do selected.append(changed ~ ' as changed_' ~ place) -%}
        {%- do selected.append((healing_tables._quoted(previous) if previous is not none
            else 'cast(null as ' ~ attribute.type ~ ')') ~ ' as previous_' ~ place) -%}
        {%- set turn = 'if(changed_' ~ place ~ ' > at, changed_' ~ place ~ ', null)' -%}
        {%- set old = 'previous_' ~ place -%}
        {%- if attribute.options.scd_type == 3 -%}
            {#- the version before had this value, or had replaced it by another one -#}
            {%- set turn = 'coalesce(' ~ turn ~ ', if(previous_' ~ place ~ ' <=> if(' ~ value ~ ' <=> before.' ~ value
                ~ ', before.previous_' ~ place ~ ', before.' ~ value ~ '), null, at + 1))' -%}
        {%- else -%}
            {#- any value that differs: otherwise the moment of the change would be lost -#}
            {%- set old = 'if(' ~ value ~ ' is null, ' ~ healing_tables._some_value(attribute.type)
                ~ ', cast(null as ' ~ attribute.type ~ '))' -%}
        {%- endif -%}
        {%- do turns.append('cast(' ~ turn ~ ' as bigint) as turn_' ~ place) -%}
        {%- do inside.append('if(turn_' ~ place ~ ' < coalesce(until, turn_' ~ place ~ ' + 1), turn_' ~ place
            ~ ', null)') -%}
        {%- do values.append('if(moment < turn_' ~ place ~ ', ' ~ old ~ ', ' ~ value ~ ') as ' ~ attribute.quoted) -%}
    {%- else -%}
        {%- do values.append(value ~ ' as ' ~ attribute.quoted) -%}
    {%- endif -%}
    {%- do at_moment.append(attribute.quoted) -%}
{%- endfor -%}
{%- set moments = 'array_distinct(array_compact(array(' ~ (['at'] + inside) | join(', ') ~ ')))' -%}
{%- if gone is not none -%}
    {#- of deleted_rows: the values of such a row are those of the version before it -#}
    {%- do selected.append(healing_tables._quoted(gone) ~ ' as is_deleted') -%}
    {%- set moments = 'if(is_deleted, array(at), ' ~ moments ~ ')' -%}
{%- endif -%}
{%- set before = ['state'] -%}
{%- for name in selected if name.split(' as ')[-1].startswith('previous_') -%}
    {%- do before.append(name.split(' as ')[-1]) -%}
{%- endfor -%}
{%- set no_values = healing_tables._typed_nulls(layout.carried) -%}
{%- set no_ties, causes = healing_tables._typed_nulls(layout.extra_ties), [] -%}
{%- set no_flags = healing_tables._typed_nulls(layout.flags) -%}
{%- for name, value in healing_tables._stored_causes(layout, stored_columns).items() -%}
    {%- do selected.append(value ~ ' as cause_' ~ loop.index) -%}
    {%- do causes.append('if(moment = at, cause_' ~ loop.index ~ ', null) as ' ~ name) -%}
{%- endfor -%}
(
    with stored as (
        select {{ (healing_tables._numbered_keys(layout) + selected) | join(', ') }},
            {{ period.start }} as at,
            if({{ period.alive }}, null, coalesce({{ period.until }}, {{ period.updated }}, {{ period.start
                }})) as until,
            struct({{ at_moment | join(', ') or 'true as present' }}) as state
        from {{ existing }}
    ),
    neighbours as (
        select *, lag(struct({{ before | join(', ') }})) over (partition by {{
                healing_tables._key_names(keys) }} order by at) as before,
            lead(at) over (partition by {{ healing_tables._key_names(keys) }} order by at) as next_at
        from stored
    ),
    turned as (
        select *{{ ', ' ~ turns | join(', ') if turns }}
        from neighbours
    ),
    moments as (
        select *, explode({{ moments }}) as moment
        from turned
    )
    select {{ (renamed + values + no_ties + causes + no_flags) | join(', ') }}, timestamp_micros(moment) as changed_at,
        {{ 'false as ' if gone is none }}is_deleted, false as is_full
    from moments
    union all
    select {{ (renamed + no_values) | join(', ') }}, timestamp_micros(until), true, false
    from turned
    where until is not null{{ ' and not is_deleted' if gone is not none }} and (next_at is null or next_at > until)
)
{%- endmacro %}

{#- {cause: SQL over a stored row, NULL where it has none that a batch has given}. -#}
{% macro _stored_causes(layout, stored_columns) -%}
    {%- set values = {} -%}
    {%- for cause in layout.causes -%}
        {%- set column = healing_tables._find_column(layout.names.get(cause.name) or '', stored_columns) -%}
        {%- set value = 'cast(' ~ (healing_tables._quoted(column) if column is not none else 'null') ~ ' as string)' -%}
        {%- do values.update({cause.name: 'if(' ~ value ~ " in ('new', 'returned', 'changed'), null, " ~ value ~ ')'
            if cause.name == 'change_reason' else value}) -%}
    {%- endfor -%}
    {{- return(values) -}}
{%- endmacro %}

{#- Give rows of a log that had no causes those that the stored versions show. -#}
{% macro _add_causes_to_log(run, spec, layout, change_log, shown) -%}
{%- set stored = healing_tables._stored_versions(run, spec, layout, shown) -%}
{%- set period = healing_tables._stored_period(stored.layout, stored.columns, stored.shown) -%}
{%- set causes, given, assignments = [], [], [] -%}
{%- for name, value in healing_tables._stored_causes(stored.layout, stored.columns).items() -%}
    {%- do causes.append(value ~ ' as cause_' ~ loop.index) -%}
    {%- do given.append('cause_' ~ loop.index ~ ' is not null') -%}
    {%- do assignments.append('t.' ~ name ~ ' = s.cause_' ~ loop.index) -%}
{%- endfor -%}
{%- set statement -%}
merge into {{ change_log }} as t
using (
    select *
    from (
        select {{ (healing_tables._numbered_keys(layout) + causes) | join(', ') }}, {{ period.start }} as at
        from {{ stored.rows }}
    )
    where {{ given | join(' or ') }}
) as s
on {{ healing_tables._is_same_key(layout, 't.', 's.') }} and unix_micros(t.changed_at) = s.at and not t.is_full
    and not t.is_deleted
when matched then update set {{ assignments | join(', ') }}
{%- endset -%}
{%- do healing_tables._run(statement) -%}
{%- endmacro %}

{#- Begin the log of a stored dimension with them, unless it has rows. From then on, the dimension names its log. -#}
{% macro _seed_change_log(run, spec, layout, change_log, shown) -%}
    {%- if run.commit is none and healing_tables._property(run.stored, 'healing_tables.change_log') is none -%}
        {%- do healing_tables._run('alter table ' ~ run.target ~ ' set '
            ~ healing_tables._properties_clause(run.notes)) -%}
    {%- endif -%}
    {%- if healing_tables._has_rows(change_log) -%} {{ return(none) }} {%- endif -%}
    {%- set stored = healing_tables._stored_versions(run, spec, layout, shown) -%}
    {%- set found = run_query(healing_tables._damaged_keys(
        stored.layout, stored.rows, stored.columns, stored.shown)).rows[0] -%}
    {%- if found['damaged'] > 0 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(mistakes,
            'a stored key with two current versions, or with versions that overlap',
            'one current version per key, and versions that do not overlap',
            healing_tables._examples_of_keys(found['damaged'], found['examples']),
            'repair the stored dimension (dbt run-operation healing_tables.repair), then merge again',
            keys=found['examples']) -%}
        {%- do healing_tables._refuse(run, mistakes) -%}
    {%- endif -%}
    {%- set seeds = healing_tables._seeds(spec, stored.layout, stored.rows, stored.columns, stored.shown) -%}
    {%- if run.commit is not none -%} {%- do healing_tables._seed_in_folder(run, layout, seeds, change_log) -%}
    {%- else -%} {%- do healing_tables._run(healing_tables._append_to_change_log(
        spec, layout, seeds, change_log, 'seed-' ~ invocation_id, is_seed=true)) -%}
    {%- endif -%}
{%- endmacro %}

{#- The column that an attribute adds, in the spelling of the table; none if the table has none. -#}
{% macro _companion(spec, attribute, added, stored_columns) -%}
    {%- if added not in healing_tables._companion_columns(dict(attribute.options, name=attribute.name)) -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return(healing_tables._find_column((spec.get('column_names') or {}).get(added) or added, stored_columns)) -}}
{%- endmacro %}

{#- {start, until, alive, updated} of a stored row, as SQL; moments in microseconds, NULL where there is no column. -#}
{% macro _stored_period(layout, stored_columns, shown) -%}
    {%- set moments = {} -%}
    {%- for name in ['valid_from', 'valid_to', 'last_updated'] -%}
        {%- set column = healing_tables._find_column(layout.names[name] or '', stored_columns) -%}
        {%- do moments.update({name: healing_tables._to_micros(healing_tables._quoted(column), layout.moment_type)
            if column is not none else none}) -%}
    {%- endfor -%}
    {%- set flag = healing_tables._find_column(layout.names.is_current or '', stored_columns) -%}
    {%- set no_moment = 'cast(null as bigint)' -%}
    {%- set alive = 'coalesce(' ~ moments.valid_to ~ ' >= ' ~ healing_tables._micros_constant(
            healing_tables._open_from_text(shown.end)) ~ ', true)' if moments.valid_to is not none
        else healing_tables._quoted(flag) ~ ' <=> ' ~ healing_tables._literal((shown.flags or [true])[0])
            if flag is not none else 'true' -%}
    {{- return({
        'start': 'coalesce(' ~ (moments.valid_from or moments.last_updated or no_moment) ~ ', '
            ~ healing_tables._micros_constant('0001-01-01') ~ ')',
        'until': moments.valid_to or no_moment, 'alive': alive, 'updated': moments.last_updated or no_moment}) -}}
{%- endmacro %}

{#- Some value of a type that is not NULL, as SQL. -#}
{% macro _some_value(type) -%}
    {%- if type in ['date', 'timestamp'] -%} {{ return(healing_tables._from_micros('0L', type)) }} {%- endif -%}
    {%- if type == 'timestamp_ntz' -%} {{ return("timestamp_ntz '1970-01-01 00:00:00'") }} {%- endif -%}
    {%- if '<' in type -%}
        {{- return("from_json('" ~ ('[]' if type.startswith('array') else '{}') ~ "', "
            ~ healing_tables._string_literal(type) ~ ')') -}}
    {%- endif -%}
    {{- return('cast(' ~ ("''" if type == 'binary' or healing_tables._type_family(type) == 'text'
        else 'false' if type == 'boolean' else '0') ~ ' as ' ~ type ~ ')') -}}
{%- endmacro %}

{#- The keys whose stored versions contradict each other, as texts: nothing can be taken over from them. -#}
{% macro _damaged_keys(layout, existing, stored_columns, shown) -%}
{%- set period = healing_tables._stored_period(layout, stored_columns, shown) -%}
{%- set keys = layout['keys'] | map(attribute='quoted') | list -%}
{%- set is_versioned = layout.attributes | selectattr('options.scd_type', 'in', [2, 6]) | list | length > 0
    or layout.names.get('is_deleted') is not none -%}
select count(*) as damaged, array_join(slice(array_sort(collect_list(key_text)), 1, 5), '; ') as examples
from (
    select distinct concat({{ healing_tables._key_text(layout['keys'] | map(attribute='name') | list) }}) as key_text
    from (
        select *, lag(at) over (partition by {{ healing_tables._key_names(keys) }} order by at, until) as before,
            max(until) over (partition by {{ healing_tables._key_names(keys) }} order by at, until
                rows between unbounded preceding and 1 preceding) as until_before
        from (select {{ healing_tables._numbered_keys(layout) | join(', ') }}, {{ period.start }} as at,
            if({{ period.alive }}, 9223372036854775807, {{ period.until }}) as until from {{ existing }})
    )
    where {{ 'at <= before or at < until_before' if is_versioned else 'before is not null' }}
)
{%- endmacro %}
