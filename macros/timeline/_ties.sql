{#-
    The condition `keep`, which raises an error if two rows of a source differ at the same moment, or if two periods
    of a source overlap. It is a single CASE, since Spark may evaluate the parts of an AND in any order.
-#}
{% macro _unless_tie(spec, sources, winner, keep) -%}
    {%- set periods = spec.sources | selectattr('kind', 'equalto', 'periods') | list if winner == 'now' or not sources
        else [] -%}
    {%- if not sources and not periods -%} {{ return(keep) }} {%- endif -%}
    {%- set cases = [] -%}
    {%- for source in sources -%}
        {%- set event = healing_tables._source_column(source, 'event') -%}
        {%- set same_rank = healing_tables._source_column(source, 'tie') ~ ' <=> '
            ~ healing_tables._source_column(source, 'best') ~ ' and '
            if source.has_tie else '' -%}
        {%- do cases.append(
            'when ' ~ event ~ ' is not null and ' ~ same_rank ~ 'not (' ~ event ~ ' <=> '
            ~ healing_tables._source_column(source, winner) ~ ') then ' ~ healing_tables._raise_tie(spec, source)) -%}
    {%- endfor -%}
    {%- for source in periods -%}
        {%- set before = healing_tables._source_column(source, 'before') -%}
        {%- do cases.append(
            'when ' ~ healing_tables._source_column(source, 'event') ~ ' is not null and ' ~ before
            ~ ' is not null and coalesce('
            ~ before ~ '.until > at, true) then ' ~ healing_tables._raise_tie(spec, source)) -%}
    {%- endfor -%}
    {{- return('case\n            ' ~ cases | join('\n            ') ~ '\n            else ' ~ keep
        ~ '\n        end') -}}
{%- endmacro %}

{% macro _raise_tie(spec, source) -%}
    {%- set key_text = healing_tables._key_text(spec.key_columns | map(attribute='name') | list) -%}
    {%- if source.kind == 'periods' -%}
        {%- set what = 'overlapping periods' -%}
        {%- set remedy = 'wanted: periods of a key that do not overlap; got: a period that starts before the previous '
            'one has ended; '
            ~ 'remedy: shorten or remove one of them in the source' -%}
    {%- else -%}
        {%- set what = 'unresolved tie' -%}
        {%- set option = 'sequence_by' if source.get('sequence_by') else 'tie_break_by' -%}
        {%- set remedy = 'wanted: one row per key and moment; got: rows that differ'
            ~ (' and agree in ' ~ option ~ ' (' ~ (source.get(option) | join(', ')) ~ ')' if source.get(option) else '')
            ~ '; remedy: give the source ' ~ ('another column in ' if source.get(option)) ~ option
            ~ ', or on_tie: greatest' -%}
    {%- endif -%}
    {%- set relation = source.get('all_rows', source.relation) -%}
    {%- set where = relation if source.name == 'source' else 'source ' ~ source.name ~ ' (' ~ relation
        ~ ')' -%}
    {%- set head = 'healing_tables: ' ~ what ~ ' in ' ~ where ~ ' of ' ~ healing_tables._model_name() ~ ': key ' -%}
    {{- return(
        'cast(raise_error(concat(' ~ healing_tables._string_literal(head) ~ ', ' ~ key_text ~ ", ' at ', "
        ~ healing_tables._as_text('timestamp_micros(at)', 'timestamp') ~ ", ' UTC; ', "
            ~ healing_tables._string_literal(remedy)
        ~ ')) as boolean)'
    ) -}}
{%- endmacro %}
