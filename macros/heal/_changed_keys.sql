{#- Which keys have news: the part of a heal that looks at the sources. -#}

{#-
    A select of the keys with news in one source, or why that cannot be known: {'keys': text or none, 'obstacle':
    text or none}. `now` and `before` are the marks of this build and of the last one.
-#}
{% macro _news(source, now, before) -%}
    {%- set reading = source.reading -%}
    {%- set name = source.name -%}
    {%- set wanted = ['loaded until '] if reading.loaded_at is not none else ['version '] -%}
    {%- if name not in now -%}
        {{- return({'keys': none, 'obstacle': 'source ' ~ name ~ ' has neither loaded_at nor is it a Delta table'}) -}}
    {%- elif name not in before or not before[name].startswith(wanted[0])
        or (reading.kind == 'snapshots' and name ~ ': empty' not in before) -%}
        {{- return({'keys': none, 'obstacle': 'the last build left no mark of source ' ~ name ~ ' that fits'}) -}}
    {%- endif -%}
    {%- if reading.loaded_at is not none -%}
        {%- set lately = before.get(name ~ ': lately') -%}
        {#- what the mark of now says, unless it is another one -#}
        {%- set is_known = lately is not none and lately == (
            now[name ~ ': lately'] if now[name] == before[name] else healing_tables._loaded_lately(reading, before[name])) -%}
        {%- set rows = healing_tables._loaded_since(reading, before[name], is_known) -%}
    {%- elif now[name] == before[name] -%}
        {%- set rows = none -%}
    {%- else -%}
        {%- set obstacle = healing_tables._feed_obstacle(name, reading, now[name], before[name]) -%}
        {%- if obstacle is not none -%} {{ return({'keys': none, 'obstacle': obstacle}) }} {%- endif -%}
        {%- set rows = healing_tables._changed_since(reading, before[name]) -%}
    {%- endif -%}
    {%- if reading.kind == 'snapshots' -%} {{ return(healing_tables._snapshot_news(name, reading, rows, before)) }} {%- endif -%}
    {{- return({'keys': none if rows is none else 'select ' ~ healing_tables._key_list({'key_columns': reading['keys']}) ~ ' from (' ~ rows ~ ')', 'obstacle': none}) -}}
{%- endmacro %}

{#- Rows of a source as key_1.., at, state (of snapshots), until (of periods), is_removed. -#}
{% macro _read_rows(reading, relation, condition, removed='false') -%}
    {%- set columns = [] -%}
    {%- for key in reading['keys'] -%} {%- do columns.append(key ~ ' as key_' ~ loop.index) -%} {%- endfor -%}
    {{- return(
        'select ' ~ (columns | join(', ')) ~ ', ' ~ reading.at ~ ' as at, ' ~ (reading.state or 'true') ~ ' as state, '
        ~ (reading.until ~ ' as until, ' if reading.until is not none else '') ~ removed ~ ' as is_removed from ' ~ relation ~ ' where ' ~ reading.where ~ ' and ' ~ condition) -}}
{%- endmacro %}

{#-
    Some time is read twice: a row may be committed after another one that was loaded later. `is_known`: it was not. Rows
    without a time are always news.
-#}
{% macro _loaded_since(reading, mark, is_known) -%}
    {%- set until = healing_tables._instant(mark[13:]) -%}
    {%- if until is none -%} {{ return(healing_tables._read_rows(reading, reading.relation, 'true')) }} {%- endif -%}
    {%- set is_new = healing_tables._loaded(reading, '>', until) if is_known else healing_tables._loaded(reading, '>=', healing_tables._before_overlap(until)) -%}
    {{- return(healing_tables._read_rows(reading, reading.relation, '(' ~ is_new ~ ' or ' ~ reading.loaded_column ~ ' is null)')) -}}
{%- endmacro %}

{#- The rows of the time that is read twice, as a text: of snapshots, where each heal would else touch all keys of the last. -#}
{% macro _loaded_lately(reading, mark) -%}
    {%- set until = healing_tables._instant(mark[13:]) -%}
    {%- if until is none -%} {{ return('nothing') }} {%- endif -%}
    {%- set lately = healing_tables._loaded(reading, '>=', healing_tables._before_overlap(until)) ~ ' and ' ~ healing_tables._loaded(reading, '<=', until) -%}
    {{- return(run_query("select concat(count(*), ', ', coalesce(sum(cast(xxhash64(struct(*)) as decimal(20,0))), 0)) from ("
        ~ healing_tables._read_rows(reading, reading.relation, lately) ~ ')').rows[0][0]) -}}
{%- endmacro %}

{% macro _before_overlap(until) -%}
    {{- return(until ~ ' - ' ~ '%d' | format((healing_tables._overlap([]) | float) * 1000000)) -}}
{%- endmacro %}

{#- The column stands alone where its type allows it, so that files can be skipped. -#}
{% macro _loaded(reading, operator, moment) -%}
    {{- return(reading.loaded_column ~ ' ' ~ operator ~ ' ' ~ healing_tables._moment(moment, 'timestamp') if reading.loaded_type == 'timestamp'
        else reading.loaded_at ~ ' ' ~ operator ~ ' ' ~ moment) -}}
{%- endmacro %}

{#- In seconds. -#}
{% macro _overlap(mistakes) -%}
    {{- return(healing_tables._fixed_seconds(mistakes, 'overlap', healing_tables._option('overlap', none, '1 hour'))) -}}
{%- endmacro %}

{% macro _changed_since(reading, mark) -%}
    {%- set relation = healing_tables._relation_at(reading.place) -%}
    {{- return(healing_tables._read_rows(
        reading, 'table_changes_by_path(' ~ healing_tables._text(healing_tables._details(relation).location) ~ ', ' ~ (healing_tables._mark_version(mark) + 1) ~ ')', 'true',
        "_change_type in ('delete', 'update_preimage')")) -}}
{%- endmacro %}

{% macro _mark_version(mark) -%}
    {{- return(mark.split(' ')[1] | int) -}}
{%- endmacro %}

{#- Why the change feed of a source does not tell all that has happened since the last build; none if it does. -#}
{% macro _feed_obstacle(name, reading, now, before) -%}
    {%- if now.split(' ')[3].rstrip(',') != before.split(' ')[3].rstrip(',') -%} {{ return('source ' ~ name ~ ' was made anew since the last build: a table that dbt rebuilds needs loaded_at') }} {%- endif -%}
    {%- if not before.endswith('feed') or not now.endswith('feed') -%}
        {{- return('source ' ~ name ~ ' has changed, and has neither loaded_at nor a change feed (delta.enableChangeDataFeed)') -}}
    {%- endif -%}
    {%- set relation = healing_tables._relation_at(reading.place) -%}
    {%- set gap = healing_tables._feed_gap(relation, healing_tables._details(relation), healing_tables._mark_version(before)) -%}
    {{- return('source ' ~ name ~ ' has changed since the last build, and ' ~ gap if gap is not none else none) -}}
{%- endmacro %}

{#-
    A snapshot has a row of every key, so that new rows are no news by themselves. Between the snapshots around the new
    ones, a key has news unless it is in all of them with one state, or in none. Rows that were taken away, and rows
    that came to a snapshot known before, are news in any case: what was there instead is not known.
-#}
{% macro _snapshot_news(name, reading, rows, before) -%}
    {%- set until = healing_tables._instant(before[name ~ ': taken until']) -%}
    {%- set until = 'cast(null as bigint)' if until is none else until -%}
    {%- set around = run_query(healing_tables._taken(reading) ~ ', news as (select at from taken where not is_seen and coalesce(at > ' ~ until ~ ', true)'
        ~ (' union all select at from (' ~ rows ~ ')' if rows is not none)
        ~ '), bounds as (select min(at) as first, max(at) as last from news)'
        ~ ' select min(first) as first, coalesce(max(at) filter (where at < first), min(first)) as since,'
        ~ ' coalesce(min(at) filter (where at > last), max(last)) as until, ' ~ healing_tables._empty_ones('at <= ' ~ until) ~ ' as empty'
        ~ (', (select count(*) from (' ~ rows ~ ') where is_removed and at not in (select at from taken)) as gone' if rows is not none)
        ~ ' from taken cross join bounds').rows[0] -%}
    {%- if around['empty'] != before[name ~ ': empty'] or (around.dict().get('gone') or 0) > 0 -%}
        {#- of a snapshot without rows that count, no row tells which keys it ended -#}
        {{- return({'keys': none, 'obstacle': 'snapshots of source ' ~ name ~ ' from before the last build have come or gone'}) -}}
    {%- endif -%}
    {%- if around['first'] is none -%} {{ return({'keys': none, 'obstacle': none}) }} {%- endif -%}
    {%- set bounds = ' between ' ~ (around['since'] | int) ~ ' and ' ~ (around['until'] | int) -%}
    {%- if reading.moment_type in ['date', 'timestamp'] -%}
        {#- on the column as it is, so that files and partitions can be skipped -#}
        {%- set range = reading.moment ~ ' between ' ~ healing_tables._moment(around['since'] | int, reading.moment_type) ~ ' and '
            ~ healing_tables._moment(around['until'] | int, reading.moment_type) -%}
    {%- else -%} {%- set range = reading.at ~ bounds -%}
    {%- endif -%}
    {%- set keys = healing_tables._key_list({'key_columns': reading['keys']}) -%}
    {%- set is_constant = 'count(distinct at) = (select count(*) from taken where at' ~ bounds ~ ') and count(distinct struct(state)) = 1' -%}
    {%- set compared = 'select ' ~ keys ~ ' from (' ~ healing_tables._read_rows(reading, reading.relation, range) ~ ') group by ' ~ keys
        ~ ' having not (' ~ is_constant ~ ')' -%}
    {%- if rows is not none -%}
        {%- set compared = compared ~ ' union all select ' ~ keys ~ ' from (' ~ rows ~ ') where is_removed or at <= ' ~ until -%}
    {%- endif -%}
    {{- return({'keys': healing_tables._taken(reading) ~ ' ' ~ compared, 'obstacle': none}) -}}
{%- endmacro %}

