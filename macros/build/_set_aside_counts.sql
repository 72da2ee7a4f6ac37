{#- Count rows that are set aside and ties that are resolved by value: nothing is left out or chosen silently. -#}

{#-
    A query for these counts per source; none if no source can be counted.

    source | set_aside | ties | has_rows
    crm    | 2         | 0    | false
    crm    | 0         | 0    | true

    `looks_for_rows`: the first source with `alive` has another row, with has_rows, if it has such a row.
-#}
{% macro _set_aside_counts(build, looks_for_rows=false) -%}
    {#- CTEs of the model and of ephemeral models precede its select -#}
    {%- set ctes = healing_tables._ctes_before(build.settings.call) if build.settings.call is not none else none -%}
    {%- set queries, uncounted = [], [] -%}
    {%- set first = build.settings.metadata.sources | rejectattr('alive', 'none') | map(attribute='name') | first -%}
    {%- for source in build.settings.metadata.sources -%}
        {%- if ctes is none and (source.parts is none or source.has_subquery) -%} {%- do uncounted.append(
            source.name) -%}
        {%- else -%}
            {%- set name = healing_tables._string_literal(source.name) -%}
            {%- do queries.append(
                'select ' ~ name ~ ' as source, count(*) as set_aside, ('
                ~ healing_tables._ties_of_source(build, source, ctes) ~ ') as ties, false as has_rows from '
                ~ source.relation ~ ' where ' ~ source.set_aside) -%}
            {%- do queries.append('(select ' ~ name ~ ', 0, 0, true from ' ~ source.relation ~ ' where '
                ~ source.alive ~ ' limit 1)') if looks_for_rows and source.name == first -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if uncounted -%}
        {%- do healing_tables._log_progress(
            build.target, 'rows set aside are not counted: source ' ~ (uncounted | join(', '))
            ~ ' or its where is a part of the model, which only the model can read') -%}
    {%- else -%} {%- do build.log_row.update({'rows_set_aside': 0, 'ties_resolved': 0}) -%}
    {%- endif -%}
    {{- return((ctes or '') ~ queries | join(' union all ') if queries else none) -}}
{%- endmacro %}

{#- Warn about the counts, and add them to the row of the log. `counts`: rows of _set_aside_counts(). -#}
{% macro _report_set_aside(build, counts) -%}
    {%- set row, warnings = build.log_row, [] -%}
    {%- for count in counts -%}
        {%- do row.update({
            'rows_set_aside': row.rows_set_aside + count['set_aside'] | int,
            'ties_resolved': row.ties_resolved + count['ties'] | int}) if row.get('rows_set_aside') is not none -%}
        {%- if count['set_aside'] > 0 -%}
            {%- do warnings.append(
                build.target ~ ': ' ~ healing_tables._counted(count['set_aside'], 'row') ~ ' of source '
                ~ count['source']
                ~ ' set aside (NULL key, NULL or endless moment, '
                ~ 'or empty period); healing_tables.set_aside lists them') -%}
        {%- endif -%}
        {%- if count['ties'] > 0 -%}
            {%- do warnings.append(
                build.target ~ ': ' ~ healing_tables._counted(count['ties'], 'tie') ~ ' in source ' ~ count['source']
                ~ ' resolved by on_tie: greatest') -%}
        {%- endif -%}
    {%- endfor -%}
    {#- dbt v2 does not have these options here -#}
    {%- set options = flags.WARN_ERROR_OPTIONS or {} -%}
    {%- if warnings and (flags.WARN_ERROR
        or (options.includes is defined and options.includes('JinjaLogWarning'))) -%}
        {#- dbt turns the first warning into an error -#}
        {%- do healing_tables._end_build(build, 'refused', {'reason': warnings | join('; ')}) -%}
    {%- endif -%}
    {%- for text in warnings -%} {%- do exceptions.warn(healing_tables._plain_names(text)) -%} {%- endfor -%}
{%- endmacro %}

{#- The number of ties in a source, as SQL: a select or a number. -#}
{% macro _ties_of_source(build, source, ctes) -%}
    {%- if not source.ties -%} {{ return('cast(0 as bigint)') }} {%- endif -%}
    {%- if not healing_tables._is_sharded(build) -%} {{ return(healing_tables._count_ties(source)) }} {%- endif -%}
    {%- set shards, counted = build.settings.shards, [] -%}
    {%- set ties = healing_tables._count_ties(source, healing_tables._is_in_shard(source['keys'], shards)) -%}
    {%- for number in range(shards) -%}
        {%- do counted.append(run_query((ctes or '') ~ healing_tables._of_shard(ties, number, 1)).rows[0][0] | int) -%}
    {%- endfor -%}
    {{- return('cast(' ~ (counted | sum) ~ ' as bigint)') -}}
{%- endmacro %}
