{#- The keys of one source that may have changed since the last build. -#}

{#-
    {select: of key_1, key_2, .., or none where nothing has changed; keys: rows of VALUES instead of it, or missing;
    obstacle: why that cannot be known, or none}.
    `mark` and `last_mark` are those of this build and of the last one, or none.
-#}
{% macro _changed_keys_of_source(scan, mark, last_mark) -%}
    {%- set needed = 'loaded_until' if scan.loaded_at is not none else 'version' -%}
    {%- if mark is none or needed not in mark -%}
        {{- return({'select': none, 'obstacle': 'source ' ~ scan.name
            ~ ' has no loaded_at, and is not a table in '
            ~ (healing_tables._formats_with('has_commits') | join(' or '))}) -}}
    {%- elif last_mark is none or needed not in last_mark
        or (scan.kind == 'snapshots' and 'empty_snapshots' not in last_mark) -%}
        {{- return({'select': none, 'obstacle': 'the last build has no high-water mark of source ' ~ scan.name
            ~ ' that fits'}) -}}
    {%- endif -%}
    {%- set obstacle = none -%}
    {%- if scan.loaded_at is not none -%}
        {%- set has_news = healing_tables._has_loaded_news(mark, last_mark) -%}
        {%- set is_known = healing_tables._is_overlap_known(mark, last_mark) -%}
        {%- set fed = healing_tables._rows_of_feed_beside_times(scan, mark, last_mark) -%}
        {%- if has_news and is_known and fed is none and scan.kind != 'snapshots' and 'new_rows' in mark
            and not scan.truncated -%}
            {%- set keys = [] -%}
            {%- for row in mark.new_rows -%}
                {%- do keys.append(healing_tables._key_literals(row, scan['keys'] | length)) -%}
            {%- endfor -%}
            {%- if none not in keys -%} {{ return({'select': none, 'keys': keys, 'obstacle': none}) }} {%- endif -%}
        {%- endif -%}
        {%- set loaded = healing_tables._rows_loaded_since(scan, last_mark.loaded_until, is_known) if has_news
            else none -%}
        {%- set rows = [loaded, fed] | reject('none') | join(' union all ') or none -%}
    {%- elif mark.version == last_mark.version and mark.table_id == last_mark.table_id
        and mark.has_change_feed == last_mark.has_change_feed -%}
        {%- set rows = none -%}
    {%- else -%}
        {%- set obstacle = healing_tables._change_feed_obstacle(scan, mark, last_mark) -%}
        {%- set rows = healing_tables._rows_changed_since(scan, mark, last_mark) if obstacle is none else none -%}
    {%- endif -%}
    {%- if obstacle is none and rows is not none and scan.truncated
        and healing_tables._has_rows('(select 1 from (' ~ rows ~ ') where is_truncation)') -%}
        {%- set obstacle = 'source ' ~ scan.name ~ ' was truncated, which ends all keys' -%}
    {%- endif -%}
    {%- if obstacle is not none -%} {{ return({'select': none, 'obstacle': obstacle}) }} {%- endif -%}
    {%- if scan.kind == 'snapshots' -%}
        {{- return(healing_tables._changed_keys_of_snapshots(scan, rows, last_mark)) -}}
    {%- endif -%}
    {{- return({
        'select': none if rows is none else 'select ' ~ healing_tables._key_names(scan['keys']) ~ ' from (' ~ rows
        ~ ')', 'obstacle': none}) -}}
{%- endmacro %}

{#- Rows of a source as key_1.., at, state (of snapshots), until (of periods), is_truncation (where there can be one),
    within (of snapshots that are complete for some values), is_removed. -#}
{% macro _read_rows(scan, relation, condition, removed='false') -%}
    {{- return(
        'select ' ~ healing_tables._keys_of_scan(scan) ~ ', ' ~ scan.at ~ ' as at, '
        ~ (scan.state or 'true') ~ ' as state, '
        ~ (scan.until ~ ' as until, ' if scan.until is not none else '')
        ~ (scan.truncated ~ ' as is_truncation, ' if scan.truncated else '')
        ~ ('struct(' ~ (scan.within | join(', ')) ~ ') as within, ' if scan.within else '')
        ~ removed ~ ' as is_removed from '
        ~ relation
        ~ ' where ' ~ scan.where ~ ' and ' ~ condition) -}}
{%- endmacro %}

{#-
    The rows loaded since a mark. Some time before it is read again, since a row may be committed after another one that
    was loaded later; `is_known`: there was none. Rows without a time may always be new.
-#}
{% macro _rows_loaded_since(scan, loaded_until, is_known) -%}
    {%- set until = healing_tables._instant_micros(loaded_until) -%}
    {%- if until is none -%} {{ return(healing_tables._read_rows(scan, scan.relation, 'true')) }} {%- endif -%}
    {%- set is_new = healing_tables._compare_loaded_at(scan, '>', until) if is_known
        else healing_tables._compare_loaded_at(scan, '>=', healing_tables._overlap_start(until)) -%}
    {{- return(healing_tables._read_rows(scan, scan.relation, '(' ~ is_new ~ ' or ' ~ scan.loaded_column
        ~ ' is null)')) -}}
{%- endmacro %}

{#- Whether a row was loaded after the last build, as SQL; true if that is not known. -#}
{% macro _is_loaded_since(scan, last_marks) -%}
    {%- set until = healing_tables._instant_micros((last_marks.get(scan.name) or {}).get('loaded_until'))
        if scan.loaded_at is not none else none -%}
    {{- return(healing_tables._compare_loaded_at(scan, '>', until) if until is not none else 'true') -}}
{%- endmacro %}

{% macro _rows_changed_since(scan, mark, last_mark) -%}
    {%- set stored = mark.stored -%}
    {{- return(healing_tables._read_rows(
        scan, stored.format.change_feed.source(stored.relation, stored.details, last_mark.version, none), 'true',
        "_change_type in ('delete', 'update_preimage')")) -}}
{%- endmacro %}

{#- The rows in the change feed of a source that has loaded_at as well; none without news in it, and if it is not
    complete: then there are only the times. -#}
{% macro _rows_of_feed_beside_times(scan, mark, last_mark) -%}
    {%- if 'version' not in mark or 'version' not in last_mark
        or (mark.version == last_mark.version and mark.table_id == last_mark.table_id) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set obstacle = healing_tables._change_feed_obstacle(scan, mark, last_mark) -%}
    {%- if obstacle is not none -%}
        {%- if mark.table_id == last_mark.table_id and mark.has_change_feed and last_mark.has_change_feed -%}
            {%- do log(healing_tables._plain_names('healing_table ' ~ this ~ ': ' ~ obstacle
                ~ '; only its loaded_at is used'), info=true) -%}
        {%- endif -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return(healing_tables._rows_changed_since(scan, mark, last_mark)) -}}
{%- endmacro %}

{#- Why the change feed of a source does not tell all that has happened since the last build; none if it does. -#}
{% macro _change_feed_obstacle(scan, mark, last_mark) -%}
    {%- set name = scan.name -%}
    {%- if mark.table_id != last_mark.table_id -%}
        {{- return('source ' ~ name ~ ' was recreated since the last build: a table that dbt rebuilds needs '
            'loaded_at') -}}
    {%- elif not mark.has_change_feed or not last_mark.has_change_feed -%}
        {{- return('source ' ~ name
            ~ ' has changed, and has neither loaded_at nor a change feed (delta.enableChangeDataFeed)') -}}
    {%- endif -%}
    {%- set stored = mark.stored -%}
    {%- set gap = stored.format.change_feed.gap(stored.relation, stored.details, last_mark.version) -%}
    {{- return('source ' ~ name ~ ' has changed since the last build, and ' ~ gap if gap is not none else none) -}}
{%- endmacro %}

{#- With `within`, a new snapshot says something of all keys that ever had one of its values. -#}
{% macro _changed_keys_within(scan, rows) -%}
    {%- if scan.calendar is not none -%}
        {{- return({'select': none, 'obstacle': 'source ' ~ scan.name
            ~ ' has within and a calendar, which can tell that a value had no rows'}) -}}
    {%- endif -%}
    {%- set keys = healing_tables._key_names(scan['keys']) -%}
    {{- return({'select': none if rows is none else 'with news as (' ~ rows ~ ') select ' ~ keys
        ~ ' from news union all select ' ~ keys ~ ' from (' ~ healing_tables._read_rows(scan, scan.relation, 'true')
        ~ ') where within in (select within from news)', 'obstacle': none}) -}}
{%- endmacro %}

{#-
    A snapshot has a row of every key, so that a new row is no change by itself. Between the snapshots around the new
    ones, a key has changed unless it is in all of them with one state, or in none. Rows that were taken away, and rows
    that came to a snapshot known before, are changes in any case: what was there instead is not known.
-#}
{% macro _changed_keys_of_snapshots(scan, rows, last_mark) -%}
    {%- if scan.within -%} {{ return(healing_tables._changed_keys_within(scan, rows)) }} {%- endif -%}
    {%- set until = healing_tables._instant_micros(last_mark.taken_until) -%}
    {%- set until = 'cast(null as bigint)' if until is none else until -%}
    {%- set around = run_query(healing_tables._snapshots_taken(scan)
        ~ ', changed as (select at from taken where not is_seen and coalesce(at > ' ~ until ~ ', true)'
        ~ (' union all select at from (' ~ rows ~ ')' if rows is not none)
        ~ '), bounds as (select min(at) as first, max(at) as last from changed)'
        ~ ' select min(first) as first, coalesce(max(at) filter (where at < first), min(first)) as since,'
        ~ ' coalesce(min(at) filter (where at > last), max(last)) as until, '
        ~ healing_tables._empty_snapshots('at <= ' ~ until) ~ ' as empty'
        ~ (', (select count(*) from (' ~ rows ~ ') where is_removed and at not in (select at from taken))'
            ~ ' as removed_rows' if rows is not none)
        ~ ' from taken cross join bounds').rows[0] -%}
    {%- if around['empty'] != last_mark.empty_snapshots
        or (healing_tables._row_map(around).get('removed_rows') or 0) > 0 -%}
        {#- a snapshot without rows that count has no row that shows which keys it ended -#}
        {{- return({'select': none, 'obstacle': 'snapshots of source ' ~ scan.name
            ~ ' from before the last build were added or removed'}) -}}
    {%- endif -%}
    {%- if around['first'] is none -%} {{ return({'select': none, 'obstacle': none}) }} {%- endif -%}
    {%- set bounds = ' between ' ~ (around['since'] | int) ~ ' and ' ~ (around['until'] | int) -%}
    {%- if scan.moment_type in ['date', 'timestamp'] -%}
        {#- on the column as it is, so that files and partitions can be skipped -#}
        {%- set range = scan.moment ~ ' between ' ~ healing_tables._from_micros(around['since'] | int,
            scan.moment_type) ~ ' and '
            ~ healing_tables._from_micros(around['until'] | int, scan.moment_type) -%}
    {%- else -%} {%- set range = scan.at ~ bounds -%}
    {%- endif -%}
    {%- set keys = healing_tables._key_names(scan['keys']) -%}
    {%- set is_constant = 'count(distinct at) = (select count(*) from taken where at' ~ bounds
        ~ ') and count(distinct struct(state)) = 1' -%}
    {%- set compared = 'select ' ~ keys ~ ' from (' ~ healing_tables._read_rows(scan, scan.relation, range)
        ~ ') group by ' ~ keys
        ~ ' having not (' ~ is_constant ~ ')' -%}
    {%- if rows is not none -%}
        {%- set compared = compared ~ ' union all select ' ~ keys ~ ' from (' ~ rows ~ ') where is_removed or at <= '
            ~ until -%}
    {%- endif -%}
    {{- return({'select': healing_tables._snapshots_taken(scan) ~ ' ' ~ compared, 'obstacle': none}) -}}
{%- endmacro %}
