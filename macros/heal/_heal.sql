{#- Whether a heal can give what a rebuild gives, and which keys it has to build. Asked by _begin_heal
    (build/_begin.sql), which otherwise lets the build be a rebuild. -#}

{#- Why what is stored cannot be healed, whatever its builds were; none if it can. -#}
{% macro _heal_obstacle(stored, format) -%}
    {%- set stored_format = healing_tables._stored_format(stored) -%}
    {%- if flags.FULL_REFRESH -%} {{ return('--full-refresh') }} {%- endif -%}
    {%- if not stored -%} {{ return('nothing is stored yet') }} {%- endif -%}
    {%- if stored_format is none or stored_format.name != format.name -%}
        {{- return('it is stored as ' ~ (stored.get('provider') or 'a view')) -}}
    {%- endif -%}
    {{- return(format.part_obstacle(stored)) -}}
{%- endmacro %}

{#-
    The keys that may have changed since the last build, over all sources: {selects (each of key_1, key_2, ..), keys
    (rows of VALUES), obstacle (why that cannot be known, or none)}. `marks` and `last_marks`: see _high_water_marks.
-#}
{% macro _changed_keys(settings, existing, marks, last_marks) -%}
    {%- set scans = settings.metadata.scans -%}
    {%- if settings.call is none -%} {{ return({'obstacle': 'the model does not call dimension()'}) }} {%- endif -%}
    {%- if healing_tables._is_more_than_call(settings.call) -%}
        {{- return({'obstacle': 'the model does more than call dimension()'}) -}}
    {%- endif -%}
    {%- set wider = scans | rejectattr('is_row_local') | map(attribute='name') | list -%}
    {%- if wider -%}
        {{- return({'obstacle': 'where or deleted_when of source ' ~ (wider | join(', '))
            ~ ' reads more than its own row'}) -}}
    {%- endif -%}
    {%- set unreadable = scans | selectattr('parts', 'none') | map(attribute='name') | list -%}
    {%- if unreadable -%}
        {{- return({'obstacle': 'source ' ~ (unreadable | join(', '))
            ~ ' is a CTE or an ephemeral model, or its calendar is one, which cannot be read outside of the model'}) -}}
    {%- endif -%}
    {%- if healing_tables._requests_keys() -%}
        {{- return({'selects': healing_tables._requested_keys(settings, existing), 'keys': [], 'obstacle': none}) -}}
    {%- endif -%}
    {%- set selects, keys, obstacles = [], [], [] -%}
    {%- for scan in scans -%}
        {%- set changes = healing_tables._changed_keys_of_source(scan, marks.get(scan.name),
            last_marks.get(scan.name)) -%}
        {%- do keys.extend(changes.get('keys', [])) -%}
        {%- if changes.obstacle is not none -%} {%- do obstacles.append(changes.obstacle) -%}
        {%- elif changes.select is not none -%} {%- do selects.append(changes.select) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return({'selects': selects, 'keys': keys, 'obstacle': obstacles | join('; ') if obstacles else none}) -}}
{%- endmacro %}
