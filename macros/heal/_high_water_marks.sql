{#-
    How far a build has seen each source, read before the build reads the rows: what comes meanwhile is read twice
    rather than never. {source: mark}; the log keeps each mark as JSON. A `mark` has, as far as the source has it:

    loaded_until       the newest loaded_at, a text in UTC, or none
    overlap            number and hash of the rows in the time before it that is read twice (snapshots only)
    version, table_id, has_change_feed   of a table with commits, where the source has no loaded_at
    taken_until        the moment of the newest snapshot; empty_snapshots: number and hash of those without a row
-#}
{% macro _high_water_marks(sources, last_marks) -%}
    {%- set readable = sources | rejectattr('parts', 'none') | list -%}
    {%- set loaded_until = healing_tables._newest_loaded_at(readable | rejectattr('loaded_at', 'none') | list,
        last_marks) -%}
    {%- set marks = {} -%}
    {%- for source in readable -%}
        {%- set mark = healing_tables._version_mark(source) if source.loaded_at is none
            else {'loaded_until': loaded_until[source.name]} -%}
        {%- if source.kind == 'snapshots' -%}
            {%- set taken = run_query(healing_tables._snapshots_taken(source)
                ~ ' select max(at) as newest, ' ~ healing_tables._empty_snapshots('true')
                ~ ' as empty from taken').rows[0] -%}
            {%- do mark.update({'taken_until': healing_tables._instant_text(taken['newest']),
                'empty_snapshots': taken['empty']}) -%}
            {%- do mark.update({'overlap': healing_tables._overlap_fingerprint(source, mark.loaded_until)})
                if source.loaded_at is not none -%}
        {%- endif -%}
        {%- do marks.update({source.name: mark}) if mark -%}
    {%- endfor -%}
    {{- return(marks) -}}
{%- endmacro %}

{#- The mark of a source that is a table with commits; {} for any other. -#}
{% macro _version_mark(source) -%}
    {%- set relation = healing_tables._relation_of_parts(source.parts) -%}
    {%- set details = healing_tables._table_details(relation) -%}
    {%- set format = healing_tables._stored_format(details) -%}
    {%- if format is none or not format.has_commits or details.get('type') == 'VIEW' -%} {{ return({}) }} {%- endif -%}
    {{- return({
        'version': format.version(relation), 'table_id': format.table_id(relation),
        'has_change_feed': format.has_change_feed(details)}) -}}
{%- endmacro %}

{#-
    {source: text or none}. First only what was loaded since the last marks is looked at, so that files can be skipped;
    where nothing is left of that, all of it.
-#}
{% macro _newest_loaded_at(sources, last_marks) -%}
    {%- set newest = {} -%}
    {%- for floors in [last_marks, {}] -%}
        {%- set selects = [] -%}
        {%- for source in sources if source.name not in newest
            or (newest[source.name] is none and source.name in last_marks) -%}
            {%- set floor = healing_tables._instant_micros((floors.get(source.name) or {}).get('loaded_until')) -%}
            {#- a time that is still to come would hide all that is loaded until then -#}
            {%- do selects.append(
                'select ' ~ healing_tables._text(source.name) ~ ' as name, max(' ~ source.loaded_at
                ~ ') as newest from '
                ~ source.relation ~ ' where ' ~ healing_tables._compare_loaded_at(source, '<=', 'unix_micros(now())')
                ~ (' and ' ~ healing_tables._compare_loaded_at(source, '>=', floor) if floor is not none)) -%}
        {%- endfor -%}
        {%- for row in (run_query(selects | join(' union all ')).rows if selects else []) -%}
            {%- do newest.update({row['name']: healing_tables._instant_text(row['newest'])}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(newest) -}}
{%- endmacro %}

{#- The snapshots that were taken: `taken` with at and is_seen, whether the source has a row of it that counts. -#}
{% macro _snapshots_taken(source) -%}
with taken as (
    select at, coalesce(bool_or(is_seen), false) as is_seen
    from (
        select {{ source.at }} as at, {{ source.where if source.is_row_local
            else 'true' }} as is_seen from {{ source.relation }}
        {%- if source.calendar is not none %}
        union all
        select at, false as is_seen from ({{ source.calendar }})
        {%- endif %}
    )
    where at < {{ source.limit }}
    group by at
)
{%- endmacro %}

{#- Number and hash of the snapshots in `range` that have no rows. -#}
{% macro _empty_snapshots(range) -%}
    {%- set empty = ' filter (where not is_seen and ' ~ range ~ ')' -%}
    {{- return('concat(count(*)' ~ empty ~ ", ', ', coalesce(bit_xor(xxhash64(at))" ~ empty ~ ', 0))') -}}
{%- endmacro %}

{#- Microseconds as text in UTC, and back; none where there is none. -#}
{% macro _instant_text(micros) -%}
    {%- if micros is none -%} {{ return(none) }} {%- endif -%}
    {%- set days = (micros | int) // 86400000000 -%}
    {%- set rest = (micros | int) % 86400000000 -%}
    {%- set day = modules.datetime.date(1970, 1, 1) + modules.datetime.timedelta(days=days) -%}
    {%- set seconds = rest // 1000000 -%}
    {{- return(day.isoformat() ~ ' %02d:%02d:%02d.%06dZ' | format(seconds // 3600, seconds % 3600 // 60, seconds % 60,
        rest % 1000000)) -}}
{%- endmacro %}

{% macro _instant_micros(text) -%}
    {{- return(none if text is none else healing_tables._micros_constant(text)) -}}
{%- endmacro %}
