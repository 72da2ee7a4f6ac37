{#- Count rows that are set aside or moved, and ties that are resolved by value: nothing is left out or chosen
    silently. -#}

{#-
    The `counts` of a build: {query (a row per source, none if no source can be counted), is_complete}.

    source | set_aside | ties | moved | has_rows
    crm    | 2         | 0    | 0     | false
    crm    | 0         | 0    | 0     | true

    `looks_for_rows`: the first source with `alive` has another row, with has_rows, if it has such a row.
-#}
{% macro _set_aside_counts(run, looks_for_rows=false) -%}
    {%- set call, scans = run.settings.call, run.settings.metadata.scans -%}
    {#- CTEs of the model and of ephemeral models precede its select -#}
    {%- set ctes = healing_tables._ctes_before(call) if call is not none else none -%}
    {%- set queries, uncounted = [], [] -%}
    {%- set first = scans | rejectattr('alive', 'none') | map(attribute='name') | first -%}
    {%- for scan in scans -%}
        {%- if ctes is none and (scan.parts is none or scan.has_subquery) -%} {%- do uncounted.append(
            scan.name) -%}
        {%- else -%}
            {%- set name = healing_tables._string_literal(scan.name) -%}
            {%- do queries.append(
                'select ' ~ name ~ ' as source, count(*) as set_aside, ('
                ~ healing_tables._number_of_source(run, scan, ctes, scan.ties, healing_tables._count_ties)
                ~ ') as ties, (' ~ healing_tables._number_of_source(run, scan, ctes, scan.moved,
                    healing_tables._count_moved) ~ ') as moved, false as has_rows from '
                ~ scan.relation ~ ' where ' ~ scan.set_aside) -%}
            {%- do queries.append('(select ' ~ name ~ ', 0, 0, 0, true from ' ~ scan.relation ~ ' where '
                ~ scan.alive ~ ' limit 1)') if looks_for_rows and scan.name == first -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._log_progress(
        run.target, 'rows set aside are not counted: source ' ~ (uncounted | join(', '))
        ~ ' or its where is a part of the model, which only the model can read') if uncounted -%}
    {{- return({'query': (ctes or '') ~ queries | join(' union all ') if queries else none,
        'is_complete': not uncounted}) -}}
{%- endmacro %}

{#- Warn about the counts. Returns the candidate with them as figures. `rows`: of their query; `others`: further
    warnings. -#}
{% macro _report_set_aside(run, candidate, counts, rows, others=[]) -%}
    {%- set figures, warnings = {'rows_set_aside': 0, 'ties_resolved': 0}, others + [] -%}
    {%- for row in rows -%}
        {%- do figures.update({
            'rows_set_aside': figures.rows_set_aside + row['set_aside'] | int,
            'ties_resolved': figures.ties_resolved + row['ties'] | int}) -%}
        {%- if row['set_aside'] > 0 -%}
            {%- do warnings.append(
                run.target ~ ': ' ~ healing_tables._counted(row['set_aside'], 'row') ~ ' of source '
                ~ row['source']
                ~ ' set aside (NULL key, NULL or endless moment, '
                ~ 'or empty period); healing_tables.set_aside lists them') -%}
        {%- endif -%}
        {%- if row['ties'] > 0 -%}
            {%- do warnings.append(
                run.target ~ ': ' ~ healing_tables._counted(row['ties'], 'tie') ~ ' in source ' ~ row['source']
                ~ ' resolved by on_tie: greatest') -%}
        {%- endif -%}
        {%- if row['moved'] > 0 -%}
            {%- do warnings.append(
                run.target ~ ': ' ~ healing_tables._counted(row['moved'], 'row') ~ ' of source ' ~ row['source']
                ~ ' moved to the moment of a row before in sequence_by, which is later') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set figures = figures if counts.is_complete else {} -%}
    {#- dbt v2 does not have these options here -#}
    {%- set options = flags.WARN_ERROR_OPTIONS or {} -%}
    {%- if warnings and (flags.WARN_ERROR
        or (options.includes is defined and options.includes('JinjaLogWarning'))) -%}
        {#- dbt turns the first warning into an error -#}
        {%- do healing_tables._end_run(run, 'refused', dict(candidate.figures, reason=warnings | join('; '),
            **figures)) -%}
    {%- endif -%}
    {%- for text in warnings -%} {%- do exceptions.warn(healing_tables._plain_names(text)) -%} {%- endfor -%}
    {{- return(dict(candidate, figures=dict(candidate.figures, **figures))) -}}
{%- endmacro %}

{#- Say how many rows of erased keys the build leaves out; a heal, of those loaded since the last build. -#}
{% macro _report_erased(run) -%}
    {%- set counts = [] -%}
    {%- for scan in run.settings.metadata.scans if scan.get('erased') is not none and scan.parts is not none -%}
        {%- do counts.append('select ' ~ healing_tables._string_literal('source ' ~ scan.name)
            ~ ' as name, count(*) as number from ' ~ scan.erased ~ (' where ' ~ healing_tables._is_loaded_since(scan,
                run.last.marks) if run.mode == 'heal')) -%}
    {%- endfor -%}
    {%- do healing_tables._report_left_out(run.target, counts) -%}
{%- endmacro %}

{#- A number of a source, as SQL: a select or a number. `counted`: what `count` reads of it, or none. -#}
{% macro _number_of_source(run, scan, ctes, counted, count) -%}
    {%- if not counted -%} {{ return('cast(0 as bigint)') }} {%- endif -%}
    {%- if not healing_tables._is_sharded(run) -%} {{ return(count(scan)) }} {%- endif -%}
    {%- set shards, counted = run.settings.shards, [] -%}
    {%- set query = count(scan, healing_tables._is_in_shard(scan['keys'], shards)) -%}
    {%- for number in range(shards) -%}
        {%- do counted.append(run_query((ctes or '') ~ healing_tables._of_shard(query, number, 1)).rows[0][0] | int) -%}
    {%- endfor -%}
    {{- return('cast(' ~ (counted | sum) ~ ' as bigint)') -}}
{%- endmacro %}
