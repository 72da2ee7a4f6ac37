{#-
    How a build goes: `mode` rebuild (all keys), heal (those with news since the last build) or sample (--empty and
    --sample). Where it is not certain that a heal would give what a rebuild gives, it is a rebuild, and the log says
    why. The map that is returned becomes the row of the log; `touched` is the table of the keys to heal, or none.
-#}
{% macro _begin_build(target, candidate, about, sql, existing, stored) -%}
    {%- set log = healing_tables._ready_log(target, healing_tables._log_of(target, healing_tables._option('log_schema', none))) -%}
    {%- set build = {
        'dimension': target.identifier, 'relation': target | string, 'mode': 'rebuild', 'reason': none,
        'spec': healing_tables._definition(sql, about), 'table_id': healing_tables._table_id(existing, stored) if healing_tables._can_heal() else none,
        'version_before': healing_tables._table_version(existing, stored), 'high_water_marks': {}, 'checks': {},
        'started_at': healing_tables._now(), 'invocation_id': invocation_id, 'touched': none, 'side_tables': [], 'log': log, 'created': target, 'keeps_other': false} -%}
    {%- set last = healing_tables._last_build(target, log) -%}
    {%- do build.update({'is_own': healing_tables._is_own(build, last)}) -%}
    {%- do healing_tables._tell_leftovers(target, log, existing) -%}
    {%- if healing_tables._is_partial_run() -%}
        {%- do build.update({'mode': 'sample'}) -%}
        {%- do healing_tables._check_sample(existing, last) -%}
        {{- return(build) -}}
    {%- endif -%}
    {%- if not healing_tables._can_heal() -%} {{ return(build) }} {%- endif -%}
    {%- do build.update({'high_water_marks': healing_tables._marks(about, last.high_water_marks if last is not none else {})}) -%}
    {%- if healing_tables._names_keys() or about.mode == 'heal' -%}
        {%- set obstacle = healing_tables._heal_obstacle(existing, stored, build, last) -%}
        {%- set news = healing_tables._all_news(about, sql, existing, build, last) if obstacle is none else {'obstacle': obstacle} -%}
        {%- if news.obstacle is not none -%}
            {%- do healing_tables._rebuild_instead(target, build, news.obstacle) -%}
        {%- else -%}
            {%- do build.update({'mode': 'heal'}) -%}
            {%- do healing_tables._keep_touched(target, candidate, build, news.selects) -%}
        {%- endif -%}
    {%- endif -%}
    {{- return(build) -}}
{%- endmacro %}

{% macro _rebuild_instead(target, build, reason) -%}
    {%- do healing_tables._drop_side_tables(build) -%}
    {%- do build.update({'mode': 'rebuild', 'reason': reason, 'touched': none}) -%}
    {%- do healing_tables._progress(target, 'a rebuild, not a heal: ' ~ reason) -%}
{%- endmacro %}

{#- Why what is stored cannot be healed, whatever the news; none if it can. -#}
{% macro _heal_obstacle(existing, stored, build, last) -%}
    {%- if flags.FULL_REFRESH -%} {{ return('--full-refresh') }} {%- endif -%}
    {%- if stored.get('provider') != 'delta' or healing_tables._file_format() != 'delta' -%}
        {{- return('nothing is stored yet' if not stored else 'only a Delta table can take a part of its rows') -}}
    {%- endif -%}
    {%- if last is none -%} {{ return('the log has no build of this table') }} {%- endif -%}
    {%- if last.mode == 'sample' -%} {{ return('the last build was one with --empty or --sample') }} {%- endif -%}
    {%- if last.spec != build.spec -%} {{ return('the definition has changed since the last build') }} {%- endif -%}
    {%- if last.table_id != build.table_id -%} {{ return('the stored table is another one than the last build made') }} {%- endif -%}
    {%- set commits = healing_tables._commits_since(existing, last.version_after | int) -%}
    {%- if commits is none -%} {{ return('the history of the stored table does not reach back to the last build') }} {%- endif -%}
    {%- set others = commits | map(attribute='operation') | reject('in', healing_tables._upkeep()) | list -%}
    {%- if others -%}
        {{- return('the stored table has commits that the log does not know (' ~ (others | unique | join(', '))
            ~ '): a killed build, or another writer') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}

{#- Selects of the keys with news, over all sources: {'selects': list, 'obstacle': text or none}. -#}
{% macro _all_news(about, sql, existing, build, last) -%}
    {%- set unreadable = about.sources | selectattr('reading.place', 'none') | map(attribute='name') | list -%}
    {%- if not about.sources -%} {{ return({'obstacle': 'the model does not call dimension()'}) }} {%- endif -%}
    {%- if healing_tables._says_more(sql) -%} {{ return({'obstacle': 'the model does more than call dimension()'}) }} {%- endif -%}
    {%- set wider = about.sources | selectattr('reading.looks_elsewhere') | map(attribute='name') | list -%}
    {%- if wider -%}
        {{- return({'obstacle': 'where or deleted_when of source ' ~ (wider | join(', ')) ~ ' asks for more than its own row'}) -}}
    {%- endif -%}
    {%- if unreadable -%}
        {{- return({'obstacle': 'source ' ~ (unreadable | join(', ')) ~ ' is a CTE or an ephemeral model, or has such a calendar, which nobody else can read'}) -}}
    {%- endif -%}
    {%- if healing_tables._names_keys() -%}
        {#- other keys may have news too: they keep theirs for the next heal -#}
        {%- do build.update({'high_water_marks': last.high_water_marks, 'reason': 'keys named by the run'}) -%}
        {{- return({'selects': healing_tables._named_keys(about, existing), 'obstacle': none}) -}}
    {%- endif -%}
    {%- set selects = [] -%}
    {%- set obstacles = [] -%}
    {%- for source in about.sources -%}
        {%- set news = healing_tables._news(source, build.high_water_marks, last.high_water_marks) -%}
        {%- if news.obstacle is not none -%} {%- do obstacles.append(news.obstacle) -%} {%- endif -%}
        {%- if news['keys'] is not none -%} {%- do selects.append(news['keys']) -%} {%- endif -%}
    {%- endfor -%}
    {{- return({'selects': selects, 'obstacle': obstacles | join('; ') if obstacles else none}) -}}
{%- endmacro %}

{#- Rows as a table next to the candidate: several statements read it, and all see the same. -#}
{% macro _side_table(candidate, build, suffix, query) -%}
    {%- set table = candidate.incorporate(path={'identifier': candidate.identifier ~ suffix}) -%}
    {%- do build.side_tables.append(table) -%}
    {%- do run_query('create or replace table ' ~ table ~ " using delta tblproperties ('delta.columnMapping.mode' = 'name') as " ~ query) -%}
    {{- return(table) -}}
{%- endmacro %}

{% macro _drop_side_tables(build) -%}
    {%- for table in build.side_tables -%} {%- do run_query('drop table if exists ' ~ table) -%} {%- endfor -%}
    {%- do build.side_tables.clear() -%}
{%- endmacro %}

{% macro _keep_touched(target, candidate, build, selects) -%}
    {%- do build.update({'touched_keys': 0, 'keys_affected': 0}) -%}
    {%- if selects -%}
        {%- set parts = [] -%}
        {%- for select in selects -%} {%- do parts.append('select * from (' ~ select ~ ')') -%} {%- endfor -%}
        {%- set touched = healing_tables._side_table(candidate, build, '_keys', 'select distinct * from (' ~ (parts | join(' union all ')) ~ ')') -%}
        {%- do build.update({'touched': touched, 'touched_keys': run_query('select count(*) as n from ' ~ touched).rows[0]['n'] | int}) -%}
    {%- endif -%}
    {%- do healing_tables._progress(target, 'heals ' ~ build.touched_keys ~ ' keys with news') -%}
{%- endmacro %}

{#- The newest build of this table that did what it should: mode, spec, table_id, version_after, high_water_marks; or none. -#}
{% macro _last_build(target, log) -%}
    {%- set found = run_query(
        'select mode, spec, table_id, version_after, to_json(high_water_marks) as marks from ' ~ log ~ ' where ' ~ healing_tables._is_log_of(target)
        ~ " and status in ('published', 'unchanged') and mode in ('rebuild', 'heal', 'sample')"
        ~ ' order by finished_at desc limit 1').rows -%}
    {%- if not found -%} {{ return(none) }} {%- endif -%}
    {%- set row = found[0] -%}
    {{- return({
        'mode': row['mode'], 'spec': row['spec'], 'table_id': row['table_id'], 'version_after': row['version_after'],
        'high_water_marks': fromjson(row['marks']) if row['marks'] is not none else {}}) -}}
{%- endmacro %}

{#- A table that was built from all rows is not replaced by a few of them by mistake. -#}
{% macro _check_sample(existing, last) -%}
    {%- if existing is none or var('allow_sample', false) is sameas true or (last is not none and last.mode == 'sample') -%} {{ return(none) }} {%- endif -%}
    {#- without a row in the log it is someone else's: a table that is to become a dimension -#}
    {%- if last is not none or run_query('select 1 as one from ' ~ existing ~ ' limit 1').rows | length > 0 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, '--empty or --sample', 'a target that was not built in full', existing | string ~ ', which was',
            "build into another schema; or allow it once: --vars '{allow_sample: true}'") -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
{%- endmacro %}

{#- Candidates of builds that did not end: the log knows those that were refused. -#}
{% macro _tell_leftovers(target, log, existing) -%}
    {%- do healing_tables._warn_of_kept(target) if existing is none -%}
    {%- set left = healing_tables._of_other_runs(target) -%}
    {%- if not left -%} {{ return(none) }} {%- endif -%}
    {%- set known = [] -%}
    {%- for row in run_query('select invocation_id from ' ~ log ~ " where status = 'refused' and " ~ healing_tables._is_log_of(target)).rows -%}
        {%- do known.append(row[0] | replace('-', '')) -%}
    {%- endfor -%}
    {%- for name in left | sort -%}
        {#- a side table of a candidate has more behind the id; it may be all that is left -#}
        {%- set id = name.split('__candidate_')[-1].split('_')[0] -%}
        {%- if id not in known -%}
            {%- do known.append(id) -%}
            {%- do healing_tables._progress(
                target, 'another build of it was killed or is running: its table ' ~ name ~ ' is there, and the log has no row of it') -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
