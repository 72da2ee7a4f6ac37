{#-
    What a materialization has to know about the select it was given, as JSON in a comment inside of it, so that
    nothing is said twice. Slashes are escaped: no text in it can end the comment or open another.
-#}
{% macro _spec_comment(spec) -%}
    {%- set sources = [] -%}
    {%- for source in spec.sources -%}
        {%- do sources.append({
            'name': source.name,
            'is_read_by_all': source.place is not none and not healing_tables._looks_elsewhere((source.where or '') ~ ' ' ~ (source.deleted_when or ''), 'select'),
            'set_aside': healing_tables._count_set_aside(spec, source),
            'ties': healing_tables._count_ties(spec, source) if source.on_tie == 'greatest' else none}) -%}
        {%- if healing_tables._can_heal() -%}
            {%- do sources[-1].update({'reading': healing_tables._reading(spec, source)}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set deleting = [] -%}
    {%- for source in spec.sources if source.name in spec.exists_in and (source.has_end or source.deleted_when) -%}
        {%- do deleting.append(source.name) -%}
    {%- endfor -%}
    {%- set about = {
        'key_columns': spec.key_columns | map(attribute='name') | list,
        'names': spec.names, 'versioned': spec.attributes | selectattr('scd_type', 'in', [2, 6]) | map(attribute='name') | list,
        'valid_to_current': spec.valid_to_current | string if spec.valid_to_current is not none else none,
        'current_value': spec.current_values[0], 'can_delete': deleting | length > 0,
        'has_gaps': deleting | length > 0 and healing_tables._has_type(spec, [2, 6]), 'sources': sources} -%}
    {%- set sequence = healing_tables._sequence_name(spec.surrogate_key) -%}
    {%- if sequence is not none -%} {%- do about.update({'sequence': sequence}) -%} {%- endif -%}
    {{- return('/* healing_tables: ' ~ (tojson(about) | replace('/', '\\/')) ~ ' */') -}}
{%- endmacro %}

{#- The map that the comment of a select holds, or none. -#}
{% macro _read_spec_comment(sql) -%}
    {%- set found = modules.re.findall('/[*] healing_tables: ([{].*?[}]) [*]/', sql) | unique | list -%}
    {%- if found | length > 1 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'the select', 'one call of dimension()', (found | length) ~ ' calls that differ',
            'build each dimension in a model of its own') -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
    {{- return(fromjson(found[0]) if found else none) -}}
{%- endmacro %}

{% macro _count_set_aside(spec, source) -%}
    {{- return(
        'select count(*) from ' ~ source.relation ~ ' where ' ~ ('(' ~ source.where ~ ') and ' if source.where else '')
        ~ 'not coalesce(' ~ healing_tables._placeable(spec, source) ~ ', false)') -}}
{%- endmacro %}

{#- Moments of a key at which rows that differ agreed in tie_break_by, so that the greatest was taken. -#}
{% macro _count_ties(spec, source) -%}
    {%- set columns = [] -%}
    {%- for key in source.key_columns -%} {%- do columns.append(healing_tables._key(spec, source, loop.index0) ~ ' as key_' ~ loop.index) -%} {%- endfor -%}
    {%- set best = [healing_tables._source_moment(source)] if healing_tables._is_carried_over(source) else [] -%}
    {%- for column in source.tie_break_by -%} {%- do best.append(healing_tables._id(column)) -%} {%- endfor -%}
    {%- set keys = healing_tables._key_list(spec) -%}
    {%- set within = healing_tables._within_cut(source) -%}
    {{- return(
        'select count(*) from (select count(distinct struct(state)) as states from (select ' ~ keys ~ ', at, state, rank() over (partition by '
        ~ keys ~ ', at order by tie desc) as place from (select ' ~ (columns | join(', ')) ~ ', '
        ~ healing_tables._cut_moment(source) ~ ' as at, ' ~ healing_tables._state(source) ~ ' as state, struct('
        ~ (best | join(', ') or 'true') ~ ') as tie from ' ~ source.relation ~ ' where '
        ~ ('(' ~ source.where ~ ') and ' if source.where else '') ~ 'coalesce(' ~ healing_tables._placeable(spec, source)
        ~ ', false)' ~ (' and ' ~ within | join(' and ') if within) ~ ')) where place = 1 group by ' ~ keys ~ ', at) where states > 1') -}}
{%- endmacro %}
