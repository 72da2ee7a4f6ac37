{#- The table of the parts of a build in shards [see _shards.sql], and those that killed runs have left. -#}

{#-
    Returns {parts (those in the table of this run), create (the start of the statement that creates it, if it has
    none), sources (their state)}. Parts of another run are reused if nothing that they depend on has changed: `state`,
    and the sources. They are copied, because that run may still be active: neither writes to the table of the other.
-#}
{% macro _begin_parts(run, candidate, table, kind, state) -%}
    {%- set sources = healing_tables._state_of_sources(run) -%}
    {%- set state = dict(state, sources=sources.state) -%}
    {%- set properties = dict(run.format.properties.for_columns(candidate.columns, false),
        **{'healing_tables.parts': state.values() | join(' ')}) -%}
    {%- set create = 'create table ' ~ table ~ ' using ' ~ run.format.name ~ ' '
        ~ healing_tables._properties_clause(properties) ~ ' as' -%}
    {%- set best = {'parts': []} -%}
    {%- for left in healing_tables._parts_of_other_runs(run.target, kind) -%}
        {%- set parts = healing_tables._complete_parts(left) -%}
        {%- set changed = healing_tables._changed_state(left, state) -%}
        {%- set reason = 'it is not known whether source ' ~ (sources.unknown | join(', '))
            ~ ' has changed' if sources.unknown else (changed | join(' and ')) ~ ' changed since' -%}
        {%- if sources.unknown or changed -%}
            {%- do healing_tables._log_progress(run.target, 'the ' ~ (parts | length) ~ ' parts in ' ~ left
                ~ ', which another run has left, are computed anew: ' ~ reason) -%}
        {%- elif parts | length > best.parts | length -%} {%- do best.update({'parts': parts, 'table': left}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if best.parts -%}
        {%- do healing_tables._run(create ~ ' select * from ' ~ best.table ~ ' where part in ('
            ~ (best.parts | join(', ')) ~ ')') -%}
        {%- do healing_tables._log_progress(run.target, 'continues with the ' ~ (best.parts | length) ~ ' of '
            ~ run.settings.shards ~ ' parts in ' ~ best.table ~ ', which another run has left') -%}
    {%- endif -%}
    {{- return({'parts': best.parts, 'create': create, 'sources': sources.state}) -}}
{%- endmacro %}

{#- The tables of parts that other runs have left or are still writing. -#}
{% macro _parts_of_other_runs(target, kind='(changes|rows)') -%}
    {%- set found = [] -%}
    {%- for name in healing_tables._tables_of_other_runs(target, healing_tables._tables_beside(target)) | sort
        if modules.re.search('_[0-9a-f]{32}_' ~ kind ~ '_parts$', name) -%}
        {%- do found.append(healing_tables._candidate_relation(target).incorporate(path={'identifier': name})) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- What has changed since a table of parts was created, as strings. -#}
{% macro _changed_state(table, state) -%}
    {%- set changed, then = [], [] -%}
    {%- for row in run_query('show tblproperties ' ~ table).rows if row[0] == 'healing_tables.parts' -%}
        {%- do then.extend(row[1].split(' ')) -%}
    {%- endfor -%}
    {%- for name, value in state.items() -%}
        {#- `loop` is not available in the condition of a for -#}
        {%- do changed.append('the ' ~ name) if then | length != state | length or then[loop.index0] != value -%}
    {%- endfor -%}
    {{- return(changed) -}}
{%- endmacro %}

{#-
    Returns {state: a string that changes if rows of a source change; unknown: sources whose changes cannot be
    detected}. It is read before the first part.
-#}
{% macro _state_of_sources(run) -%}
    {%- set marks, unknown = {}, [] -%}
    {%- for scan in run.settings.metadata.scans -%}
        {%- set mark = {} -%}
        {%- if scan.parts is not none and scan.is_row_local -%}
            {#- every change creates a new version of a table; most changes move the newest loaded_at -#}
            {%- do mark.update(healing_tables._version_mark(healing_tables._stored_source(scan))) -%}
            {%- do mark.update(healing_tables._high_water_marks([scan], {}).get(scan.name, {}))
                if not mark or scan.calendar is not none -%}
        {%- endif -%}
        {%- do marks.update({scan.name: mark}) -%}
        {%- do unknown.append(scan.name) if 'version' not in mark and mark.get('rows_without_time') != 0 -%}
    {%- endfor -%}
    {{- return({'state': local_md5(tojson(healing_tables._kept_marks(marks))), 'unknown': unknown}) -}}
{%- endmacro %}

{#- After a sharded build, older parts are no longer needed. Parts that were written since this build began belong to a
    running build. -#}
{% macro _drop_parts_of_others(run) -%}
    {%- for left in healing_tables._parts_of_other_runs(run.target) -%}
        {%- if run_query('select ' ~ run.format.files.written_at(left) ~ " < unix_micros(timestamp_ltz '"
            ~ run.started_at ~ "') as is_old").rows[0]['is_old'] -%}
            {%- do healing_tables._run('drop table if exists ' ~ left) -%}
            {%- do healing_tables._log_progress(run.target, 'dropped ' ~ left ~ ', which another run has left') -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- The parts in a table that are complete and occur once. -#}
{% macro _complete_parts(table) -%}
    {%- set parts = [] -%}
    {%- for row in run_query('select part from ' ~ table ~ ' where is_end group by part having count(*) = 1').rows -%}
        {%- do parts.append(row['part'] | int) -%}
    {%- endfor -%}
    {{- return(parts) -}}
{%- endmacro %}

{#- An adapter may run a statement again if it did not see the first one finish. -#}
{% macro _check_parts(table, shards) -%}
    {%- set complete, mistakes = healing_tables._complete_parts(table) | length, [] -%}
    {%- if complete != shards -%}
        {%- do healing_tables._mistake(mistakes, 'shards', shards ~ ' parts in ' ~ table ~ ', each of them once',
            complete, 'run it again: it computes the others anew') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
{%- endmacro %}
