{#-
    How far a build has seen each source, read before the build reads the rows: what comes meanwhile is read twice
    rather than never. {source: mark}; the log keeps each mark as JSON. A `mark` has, as far as the source has it:

    loaded_until       the newest loaded_at, a text in UTC, or none
    overlap            number and hash of the rows in the time before it that is read twice
    version, table_id, has_change_feed   of a table with commits; if the source has loaded_at, of one with a change feed
    newest_commit      if the source has loaded_at, the commit that this build has seen, or none
    taken_until        the moment of the newest snapshot; empty_snapshots: number and hash of those without a row

    and, not kept in the log:

    last_overlap       as overlap, of the last mark's loaded_until, as the rows are now: another one if rows came late
    rows_without_time  how many rows have no loaded_at, or one that is still to come
    new_rows           see _marks_of_recent_rows(); missing where they are many
    stored             the source as it is stored, see _stored_source()
-#}
{% macro _high_water_marks(scans, last_marks) -%}
    {%- set readable = scans | rejectattr('parts', 'none') | list -%}
    {%- set timed = healing_tables._timed_marks(readable | rejectattr('loaded_at', 'none') | list, last_marks) -%}
    {%- set marks = {} -%}
    {%- for scan in readable -%}
        {%- set mark = healing_tables._version_mark(healing_tables._stored_source(scan)) if scan.loaded_at is none
            else timed[scan.name] -%}
        {%- if scan.kind == 'snapshots' -%}
            {%- set taken = run_query(healing_tables._snapshots_taken(scan)
                ~ ' select max(at) as newest, ' ~ healing_tables._empty_snapshots('true')
                ~ ' as empty from taken').rows[0] -%}
            {%- do mark.update({'taken_until': healing_tables._instant_text(taken['newest']),
                'empty_snapshots': taken['empty']}) -%}
        {%- endif -%}
        {%- do marks.update({scan.name: mark}) if mark -%}
    {%- endfor -%}
    {{- return(marks) -}}
{%- endmacro %}

{#- The marks of sources with loaded_at. A source that has had no commit since its last mark is not scanned: in a new
    process, the first scan of a table takes longer than the rest of a heal without news. -#}
{% macro _timed_marks(scans, last_marks) -%}
    {%- set marks, stored_of = {}, {} -%}
    {%- for scan in scans -%}
        {%- set stored, last_mark = healing_tables._stored_source(scan), last_marks.get(scan.name) or {} -%}
        {%- do stored_of.update({scan.name: stored}) -%}
        {%- if stored.newest_commit is not none and stored.newest_commit == last_mark.get('newest_commit') -%}
            {%- do marks.update({scan.name: dict(last_mark, last_overlap=last_mark.overlap, rows_without_time=0,
                new_rows=[])}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set scanned = scans | rejectattr('name', 'in', marks) | list -%}
    {%- for name, mark in healing_tables._loaded_marks(scanned, last_marks).items() -%}
        {%- set stored = stored_of[name] -%}
        {%- do mark.update(healing_tables._feed_mark(stored, mark, last_marks.get(name))) -%}
        {#- rows without a time are read by every heal -#}
        {%- do mark.update({'newest_commit': stored.newest_commit})
            if stored.newest_commit is not none and mark.rows_without_time == 0 -%}
        {%- do marks.update({name: mark}) -%}
    {%- endfor -%}
    {{- return(marks) -}}
{%- endmacro %}

{#- The version of a source with loaded_at, if the table has a change feed; {} for any other. A row that is committed
    late with an old loaded_at is only in the feed. A source that had no feed, and has no news, is not asked again. -#}
{% macro _feed_mark(stored, mark, last_mark) -%}
    {%- if stored.format is none or not stored.format.change_feed.is_on(stored.details)
        or (last_mark and 'version' not in last_mark and not healing_tables._has_loaded_news(mark, last_mark)) -%}
        {{- return({}) -}}
    {%- endif -%}
    {{- return(healing_tables._version_mark(stored)) -}}
{%- endmacro %}

{#- Whether rows may have been loaded since the last mark. -#}
{% macro _has_loaded_news(mark, last_mark) -%}
    {{- return(not healing_tables._is_overlap_known(mark, last_mark) or mark.rows_without_time > 0
        or mark.loaded_until != last_mark.loaded_until) -}}
{%- endmacro %}

{#- Whether no row came late into the time that is read twice. -#}
{% macro _is_overlap_known(mark, last_mark) -%}
    {{- return(last_mark.get('overlap') is not none and mark.last_overlap == last_mark.overlap) -}}
{%- endmacro %}

{#-
    A source as it is stored: relation, details, format (none if it is not a table with commits), and the newest commit
    (none if its versions have no order): version, and newest_commit, which includes the time of the commit,
    because the versions of a table that is dropped and created again start from 0.
-#}
{% macro _stored_source(scan) -%}
    {%- set relation = healing_tables._relation_of_parts(scan.parts) -%}
    {%- set details = healing_tables._table_details(relation) -%}
    {%- set format = healing_tables._stored_format(details) -%}
    {%- if format is none or not format.has_commits or details.get('type') == 'VIEW' -%}
        {{- return({'relation': relation, 'details': details, 'format': none, 'newest_commit': none}) -}}
    {%- endif -%}
    {%- set commits = format.commits.newest(relation) if format.commits.has_ordered_versions else [] -%}
    {{- return({
        'relation': relation, 'details': details, 'format': format, 'version': commits[0].version if commits else none,
        'newest_commit': commits[0].version ~ ' at ' ~ commits[0].at if commits else none}) -}}
{%- endmacro %}

{#- The mark of a source that is a table with commits; {} for any other. -#}
{% macro _version_mark(stored) -%}
    {%- set format = stored.format -%}
    {%- if format is none -%} {{ return({}) }} {%- endif -%}
    {{- return({
        'version': format.commits.newest_version(stored.relation) if stored.version is none else stored.version,
        'table_id': format.table_id(stored.relation, stored.details),
        'has_change_feed': format.change_feed.is_on(stored.details), 'stored': stored}) -}}
{%- endmacro %}

{#-
    The marks of sources with loaded_at, computed from their rows. The first query reads only the rows that were loaded
    since the last marks, so that files can be skipped: a few rows as they are, otherwise aggregates of them. If a
    source has no such rows, all of its rows are read.

    A second query reads the overlaps of a source that has newer rows. It reads both in one scan: a row that comes late
    between the two queries must not be in `overlap` and missing in `last_overlap`.
-#}
{% macro _loaded_marks(scans, last_marks) -%}
    {%- set marks = healing_tables._marks_of_recent_rows(scans, last_marks) -%}
    {%- for floors in [last_marks, {}] -%}
        {%- set selects = [] -%}
        {%- for scan in scans if scan.name not in marks
            or (marks[scan.name].loaded_until is none and scan.name in last_marks) -%}
            {%- set floor = (floors.get(scan.name) or {}).get('loaded_until') -%}
            {%- set is_past = healing_tables._is_past(scan) -%}
            {%- do selects.append(
                'select ' ~ healing_tables._string_literal(scan.name) ~ ' as name, max(if(' ~ is_past ~ ', '
                    ~ scan.loaded_at
                ~ ', null)) as newest, count_if(not coalesce(' ~ is_past ~ ', false)) as rows_without_time, '
                ~ healing_tables._overlap_hash(scan, floor) ~ ' as last_overlap from ' ~ scan.relation
                ~ healing_tables._where_loaded_since(scan, floor)) -%}
        {%- endfor -%}
        {%- for row in (run_query(selects | join(' union all ')).rows if selects else []) -%}
            {%- do marks.update({row['name']: {
                'loaded_until': healing_tables._instant_text(row['newest']), 'overlap': row['last_overlap'],
                'last_overlap': row['last_overlap'], 'rows_without_time': row['rows_without_time'] | int}}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set selects = [] -%}
    {%- for scan in scans -%}
        {%- set until = marks[scan.name].loaded_until -%}
        {%- set floor = (last_marks.get(scan.name) or {}).get('loaded_until') -%}
        {%- do selects.append('select ' ~ healing_tables._string_literal(scan.name) ~ ' as name, '
            ~ healing_tables._overlap_hash(scan, until) ~ ' as overlap, '
            ~ healing_tables._overlap_hash(scan, floor) ~ ' as last_overlap from ' ~ scan.relation
            ~ healing_tables._where_loaded_since(scan, floor or until))
            if until != floor and 'new_rows' not in marks[scan.name] -%}
    {%- endfor -%}
    {%- for row in (run_query(selects | join(' union all ')).rows if selects else []) -%}
        {%- do marks[row['name']].update({'overlap': row['overlap'], 'last_overlap': row['last_overlap']}) -%}
    {%- endfor -%}
    {{- return(marks) -}}
{%- endmacro %}

{#- The snapshots that were taken: `taken` with at and is_seen, whether the source has a row of it that counts. A
    condition that reads more than its row may name a CTE of the model; such a source is not healed. -#}
{% macro _snapshots_taken(scan) -%}
with taken as (
    select at, coalesce(bool_or(is_seen), false) as is_seen
    from (
        select {{ scan.at }} as at, {{ scan.where if scan.is_row_local
            else 'true' }} as is_seen from {{ scan.relation }}
        {%- if scan.is_row_local and scan.filter is not none %}
        where true and {{ scan.filter }}
        {%- endif %}
        {%- if scan.calendar is not none %}
        union all
        select at, false as is_seen from ({{ scan.calendar }})
        {%- endif %}
    )
    where at < {{ scan.limit }}
    group by at
)
{%- endmacro %}

{#- Number and hash of the snapshots in `range` that have no rows. -#}
{% macro _empty_snapshots(range) -%}
    {%- set empty = ' filter (where not is_seen and ' ~ range ~ ')' -%}
    {{- return('concat(count(*)' ~ empty ~ ", ', ', coalesce(bit_xor(xxhash64(at))" ~ empty ~ ', 0))') -}}
{%- endmacro %}
