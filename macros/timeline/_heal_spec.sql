{#- What dimension() leaves in its select for a materialization that heals: how to read each source, and where to name keys. -#}

{#- A heal needs more in the select than a rebuild: only where `mode` is set, or a run names what to heal. -#}
{% macro _can_heal() -%}
    {{- return(healing_tables._option('mode', none) is not none or healing_tables._names_keys()) -}}
{%- endmacro %}

{#- A condition that is true, until a heal writes its own in this place. -#}
{% macro _touched_keys_only(source_name) -%}
    {{- return('true /* healing_tables touched keys: ' ~ (tojson(source_name) | replace('/', '\\/')) ~ ' */') -}}
{%- endmacro %}

{#- The select with the sources cut to the keys of `touched`; none: all keys. Either way nothing is left of the places. -#}
{% macro _with_touched_keys(sql, about, touched) -%}
    {%- set text = [sql] -%}
    {%- for source in about.sources if source.get('reading') -%}
        {%- set condition = 'true' if touched is none else healing_tables._is_touched(source.reading['keys'], touched) -%}
        {%- do text.append(text.pop() | replace(healing_tables._touched_keys_only(source.name), condition)) -%}
    {%- endfor -%}
    {{- return(text[0]) -}}
{%- endmacro %}

{% macro _is_touched(expressions, touched) -%}
    {{- return('(' ~ (expressions | join(', ')) ~ ') in (select ' ~ healing_tables._key_list({'key_columns': expressions}) ~ ' from ' ~ touched ~ ')') -}}
{%- endmacro %}

{#-
    Whether a select is more than one call of dimension(), perhaps behind CTEs: of rows that are added, joined or
    numbered, a heal of some keys would give others than a rebuild.
-#}
{% macro _says_more(sql) -%}
    {%- set after = healing_tables._without_comments(sql.rsplit(healing_tables._call_end(), 1)[-1]) -%}
    {{- return(after not in ['', ';'] or healing_tables._ctes_before(sql) is none) -}}
{%- endmacro %}

{#- The CTEs before the call of dimension(), as text to begin a select with; none if something else stands there. -#}
{% macro _ctes_before(sql) -%}
    {%- set call = modules.re.search('select\\s+/[*] healing_tables: [{]', sql) -%}
    {%- if call is none -%} {{ return(none) }} {%- endif -%}
    {%- set code = healing_tables._without_comments(sql[:call.start()]) -%}
    {{- return(sql[:call.start()] ~ '\n' if code == '' or modules.re.match('(?is)with\\b.*[)]$', code) else none) -}}
{%- endmacro %}

{% macro _without_comments(sql) -%}
    {{- return(modules.re.sub('(?s)--[^\n]*|/[*].*?[*]/', '', sql) | trim) -}}
{%- endmacro %}

{#- What every call ends with. -#}
{% macro _call_end() -%}
    {{- return('select * from versions\n)') -}}
{%- endmacro %}

{#- Whether a condition depends on other rows than the one it is about, or on the time at which it is asked. -#}
{% macro _looks_elsewhere(condition, words='select|now|curdate|current_date|current_timestamp|localtimestamp|unix_timestamp|rand|randn|random|uuid') -%}
    {%- set code = modules.re.sub("'[^']*'|`[^`]*`", '', condition or '') -%}
    {{- return(modules.re.search('(?i)\\b(' ~ words ~ ')\\b', code) is not none) -}}
{%- endmacro %}

{#- The definition of a dimension as one number: if it is another one, what is stored cannot be healed. -#}
{% macro _definition(sql, about) -%}
    {%- set loaded = [] -%}
    {%- for source in about.sources if source.get('reading') -%} {%- do loaded.append(source.reading.loaded_column) -%} {%- endfor -%}
    {{- return(local_md5(modules.re.sub('/[*] healing_tables.*?[*]/', '', sql) ~ tojson(loaded))) -}}
{%- endmacro %}

{#- Expressions over the rows of a source; moments as microseconds. `place`: none for what only the model's own select knows. -#}
{% macro _reading(spec, source) -%}
    {%- set keys = [] -%}
    {%- for _ in source.key_columns -%} {%- do keys.append(healing_tables._key(spec, source, loop.index0)) -%} {%- endfor -%}
    {%- set is_snapshots = source.kind == 'snapshots' -%}
    {%- set calendar = none -%}
    {%- if is_snapshots and source.calendar -%}
        {%- set calendar = 'select ' ~ healing_tables._micros(healing_tables._id(source.moment), source.calendar_type) ~ ' as at from ' ~ source.calendar -%}
    {%- endif -%}
    {{- return({
        'relation': source.relation, 'place': source.place if not source.calendar or healing_tables._place(source.calendar) else none, 'kind': source.kind, 'keys': keys,
        'where': ('(' ~ source.where ~ ') and ' if source.where else '') ~ 'coalesce(' ~ healing_tables._placeable(spec, source) ~ ', false)',
        'at': healing_tables._source_moment(source),
        'moment': healing_tables._id(source.moment), 'moment_type': healing_tables._column_type(source, source.moment),
        'limit': healing_tables._end_of_time(spec.valid_to_current),
        'state': healing_tables._state(source) if is_snapshots else none,
        'looks_elsewhere': healing_tables._looks_elsewhere(source.where) or healing_tables._looks_elsewhere(source.deleted_when),
        'until': healing_tables._micros(healing_tables._id(source.until), healing_tables._column_type(source, source.until))
            if source.kind == 'periods' else none,
        'calendar': calendar,
        'loaded_column': healing_tables._id(source.loaded_at) if source.loaded_at else none,
        'loaded_type': healing_tables._column_type(source, source.loaded_at) if source.loaded_at else none,
        'loaded_at': healing_tables._micros(healing_tables._id(source.loaded_at), healing_tables._column_type(source, source.loaded_at))
            if source.loaded_at else none}) -}}
{%- endmacro %}

{#- Database, schema and name of a relation that others can read too. -#}
{% macro _place(relation) -%}
    {%- if relation is string or relation.is_cte or relation.identifier.startswith('__dbt__cte__') -%} {{ return(none) }} {%- endif -%}
    {{- return([relation.database, relation.schema, relation.identifier]) -}}
{%- endmacro %}
