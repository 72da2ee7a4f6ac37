{#-
    How far a build has seen each source, read before the build reads the rows: what comes meanwhile is seen twice
    rather than never. {source: text}, as the log keeps it:

    crm               loaded until 2024-03-01 02:00:00.000000Z
    erp               version 12 of 5c1f..., with change feed
    web               loaded until 2024-03-01 02:00:00.000000Z
    web: taken until  2024-03-01 00:00:00.000000Z
    web: empty        0, 0
    web: lately       417, 2718281828459045235
-#}
{% macro _marks(about, before) -%}
    {%- set marks = healing_tables._newest_loaded(about, before) -%}
    {%- for source in about.sources if source.get('reading') and source.reading.place is not none -%}
        {%- set reading = source.reading -%}
        {%- if reading.loaded_at is none -%}
            {%- set relation = healing_tables._relation_at(reading.place) -%}
            {%- set details = healing_tables._details(relation) -%}
            {%- if details.get('provider') == 'delta' and details.get('type') != 'VIEW' -%}
                {%- do marks.update({source.name: 'version ' ~ healing_tables._table_version(relation, details) ~ ' of '
                    ~ healing_tables._table_id(relation, details) ~ (', with change feed' if details.has_change_feed)}) -%}
            {%- endif -%}
        {%- endif -%}
        {%- if reading.kind == 'snapshots' -%}
            {%- set taken = run_query(healing_tables._taken(reading)
                ~ ' select max(at) as newest, ' ~ healing_tables._empty_ones('true') ~ ' as empty from taken').rows[0] -%}
            {%- do marks.update({
                source.name ~ ': taken until': healing_tables._instant_text(taken['newest']),
                source.name ~ ': empty': taken['empty']}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for source in about.sources if source.name ~ ': empty' in marks and source.reading.loaded_at is not none -%}
        {%- do marks.update({source.name ~ ': lately': healing_tables._loaded_lately(source.reading, marks[source.name])}) -%}
    {%- endfor -%}
    {{- return(marks) -}}
{%- endmacro %}

{#-
    {source: text} of the sources with `loaded_at`. First only what was loaded since the marks `before` is looked at, so
    that files can be skipped; where nothing is left of that, all of it.
-#}
{% macro _newest_loaded(about, before) -%}
    {%- set marks = {} -%}
    {%- for floors in [before, {}] -%}
        {%- set selects = [] -%}
        {%- for source in about.sources
            if source.get('reading') and source.reading.place is not none and source.reading.loaded_at is not none
            and (source.name not in marks or (marks[source.name] == 'loaded until nothing' and source.name in before)) -%}
            {%- set mark = floors.get(source.name, '') -%}
            {%- set floor = healing_tables._instant(mark[13:]) if mark.startswith('loaded until ') else none -%}
            {#- a time that is still to come would hide all that is loaded until then -#}
            {%- do selects.append(
                'select ' ~ healing_tables._text(source.name) ~ ' as name, max(' ~ source.reading.loaded_at ~ ') as newest from '
                ~ source.reading.relation ~ ' where ' ~ healing_tables._loaded(source.reading, '<=', 'unix_micros(now())')
                ~ (' and ' ~ healing_tables._loaded(source.reading, '>=', floor) if floor is not none)) -%}
        {%- endfor -%}
        {%- if selects -%}
            {%- for row in run_query(selects | join(' union all ')).rows -%}
                {%- do marks.update({row['name']: 'loaded until ' ~ healing_tables._instant_text(row['newest'])}) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(marks) -}}
{%- endmacro %}

{#- The snapshots that were taken: `taken` with at and is_seen, whether the source has a row of it that counts. -#}
{% macro _taken(reading) -%}
with taken as (
    select at, coalesce(bool_or(is_seen), false) as is_seen
    from (
        select {{ reading.at }} as at, {{ 'true' if reading.looks_elsewhere else reading.where }} as is_seen from {{ reading.relation }}
        {%- if reading.calendar is not none %}
        union all
        select at, false as is_seen from ({{ reading.calendar }})
        {%- endif %}
    )
    where at < {{ reading.limit }}
    group by at
)
{%- endmacro %}

{#- The snapshots without a row, as far as they lie in `range`: how many, and which. -#}
{% macro _empty_ones(range) -%}
    {%- set empty = ' filter (where not is_seen and ' ~ range ~ ')' -%}
    {{- return('concat(count(*)' ~ empty ~ ", ', ', coalesce(bit_xor(xxhash64(at))" ~ empty ~ ', 0))') -}}
{%- endmacro %}

{% macro _relation_at(place) -%}
    {{- return(api.Relation.create(database=place[0], schema=place[1], identifier=place[2], type='table')) -}}
{%- endmacro %}

{% macro _table_id(relation, details) -%}
    {%- if details.get('provider') != 'delta' -%} {{ return(none) }} {%- endif -%}
    {{- return(run_query('describe detail ' ~ relation).rows[0]['id']) -}}
{%- endmacro %}

{#- Microseconds as text in UTC, and back; 'nothing' where there is none. -#}
{% macro _instant_text(micros) -%}
    {%- if micros is none -%} {{ return('nothing') }} {%- endif -%}
    {%- set days = (micros | int) // 86400000000 -%}
    {%- set rest = (micros | int) % 86400000000 -%}
    {%- set day = modules.datetime.date(1970, 1, 1) + modules.datetime.timedelta(days=days) -%}
    {%- set seconds = rest // 1000000 -%}
    {{- return(day.isoformat() ~ ' %02d:%02d:%02d.%06dZ' | format(seconds // 3600, seconds % 3600 // 60, seconds % 60, rest % 1000000)) -}}
{%- endmacro %}

{% macro _instant(text) -%}
    {{- return(none if text == 'nothing' else healing_tables._constant_micros(text)) -}}
{%- endmacro %}
