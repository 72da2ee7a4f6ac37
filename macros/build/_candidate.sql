{#- The candidate of a build: written next to the target, checked in one scan, its left-out rows told. -#}

{#-
    The candidate, checked and compared: what is to be published, as _compare says. A heal that cannot be merged into
    what is stored, for instance since a column has another type now, becomes a rebuild.
-#}
{% macro _build(target, candidate, folder, sql, about, existing, stored, sequence) -%}
    {%- set build = about.build -%}
    {%- if build.mode == 'heal' and build.touched_keys == 0 -%}
        {{- return({'how': 'unchanged', 'told': 'no key has news', 'row': dict(
            rows_added=0, rows_changed=0, rows_removed=0, rows_unchanged=run_query('select count(*) as n from ' ~ existing).rows[0]['n'] | int)}) -}}
    {%- endif -%}
    {%- set started = healing_tables._now() -%}
    {%- set query = healing_tables._with_touched_keys(sql, about, build.touched) -%}
    {%- call statement('candidate') -%}
        {{ healing_tables._create_candidate(candidate, folder, healing_tables._with_sequence(query, about, sequence)) }}
    {%- endcall -%}
    {%- set seconds = healing_tables._now() - started -%}
    {#- before the checks: a build that they refuse tells it too -#}
    {%- if build.mode != 'heal' -%} {%- do healing_tables._warn_of_rows(target, about, sql) -%} {%- endif -%}
    {%- do healing_tables._check_partitions(target, candidate, about) -%}
    {%- do healing_tables._check_candidate(target, candidate, about, seconds) -%}
    {#- the constraints of a contract too hold before anything is published -#}
    {%- do persist_constraints(candidate, model) -%}
    {%- set change = healing_tables._compare(target, candidate, about, existing, stored) -%}
    {%- if build.mode == 'heal' and change.how == 'overwrite' -%}
        {%- do healing_tables._rebuild_instead(target, build, change.obstacle) -%}
        {{- return(healing_tables._build(target, candidate, folder, sql, about, existing, stored, sequence)) -}}
    {%- endif -%}
    {{- return(change) -}}
{%- endmacro %}

{#- A name of this run's own, next to the target. -#}
{% macro _candidate(target) -%}
    {{- return(api.Relation.create(
        database=target.database, schema=target.schema, type='table',
        identifier=target.identifier ~ '__candidate_' ~ invocation_id | replace('-', ''))) -}}
{%- endmacro %}

{#- Names of the tables that other runs have left next to a table, or still write: candidates (and their touched keys), rekeys. -#}
{% macro _of_other_runs(relation, what='candidate') -%}
    {%- set prefix = relation.identifier | lower ~ '__' ~ what ~ '_' -%}
    {%- set own = prefix ~ invocation_id | replace('-', '') -%}
    {%- set names = [] -%}
    {%- for row in run_query('show tables in ' ~ relation.without_identifier()).rows
        if row['tableName'].startswith(prefix) and not row['tableName'].startswith(own) -%}
        {%- do names.append(row['tableName']) -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{#-
    Columns that a partition does not keep as they are. Its values are texts in the names of folders: of a timestamp in the
    session's time zone, and an empty text is read as NULL, so that each build would find a difference.
-#}
{% macro _check_partitions(target, candidate, about) -%}
    {%- set columns = healing_tables._list(config.get('partition_by')) -%}
    {%- if not columns -%} {{ return(none) }} {%- endif -%}
    {%- set types = healing_tables._columns_of(candidate) -%}
    {%- set mistakes = [] -%}
    {%- set empty = {} -%}
    {%- for column in columns -%}
        {%- set type = healing_tables._type_in(types, column) -%}
        {%- if type == 'timestamp' -%}
            {%- do healing_tables._mistake(
                mistakes, 'partition_by', 'columns that a partition keeps as they are', column ~ ', a timestamp: its text follows the time zone of the session',
                'partition by a date or another column') -%}
        {%- elif type is not none and healing_tables._family(type) == 'text' -%}
            {#- a file format of Hive has lost it in the candidate: no key is NULL otherwise -#}
            {%- set is_key = healing_tables._find(column, about.key_columns) is not none -%}
            {%- do empty.update({column: healing_tables._id(column) ~ " = ''" ~ (' or ' ~ healing_tables._id(column) ~ ' is null' if is_key)}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if empty -%}
        {%- set counts = [] -%}
        {%- for condition in empty.values() -%} {%- do counts.append('count_if(' ~ condition ~ ') as n' ~ loop.index) -%} {%- endfor -%}
        {%- set row = run_query('select ' ~ (counts | join(', ')) ~ ' from ' ~ candidate).rows[0] -%}
        {%- for column in empty -%}
            {%- set rows = row[loop.index0] | int -%}
            {%- do healing_tables._mistake(
                mistakes, 'partition_by', 'columns that a partition keeps as they are',
                column ~ ', which is the empty text in ' ~ rows ~ ' rows: a partition makes NULL of it', 'partition by a date or another column') if rows -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do healing_tables._refuse(target, candidate, about, mistakes) if mistakes -%}
{%- endmacro %}

{#- The checks, in one scan of the candidate; all that fail are reported together. -#}
{% macro _check_candidate(target, candidate, about, seconds) -%}
    {%- if not about.checks -%}
        {%- do healing_tables._progress(target, 'not checked: valid_from or valid_to is left out, or every check is off') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do about.update({'relation': candidate | string}) -%}
    {%- do healing_tables._check_about_columns('healing_table', about, healing_tables._columns_of(candidate)) -%}
    {%- set started = healing_tables._now() -%}
    {%- set summary = run_query(healing_tables._check_summary(about)).rows[0] -%}
    {%- for check in about.checks -%} {%- do about.build.checks.update({check: summary[check] | int}) -%} {%- endfor -%}
    {%- do healing_tables._progress(
        target, 'candidate ' ~ candidate.identifier ~ ' has ' ~ summary['keys'] ~ ' keys and ' ~ summary['versions'] ~ ' versions (' ~ healing_tables._seconds(seconds) ~ ')') -%}
    {%- set failed = [] -%}
    {%- set failed_checks = [] -%}
    {%- for check in about.checks if summary[check] > 0 -%}
        {%- do failed_checks.append(check) -%}
        {%- do failed.append('  ' ~ check ~ ': ' ~ summary[check] ~ ' failing, in keys such as ' ~ summary[check ~ '_keys']) -%}
    {%- endfor -%}
    {%- if failed -%}
        {%- do healing_tables._end_build(about, 'refused', {'reason': 'failed ' ~ (failed_checks | join(', '))}) -%}
        {{- exceptions.raise_compiler_error(
            ['healing_table ' ~ target ~ ': ' ~ (failed | length) ~ ' of ' ~ (about.checks | length)
             ~ ' checks failed; the target is as it was.'] | join('') ~ '\n' ~ failed | join('\n')
            ~ '\n  wanted: no violation\n  got:    the candidate ' ~ candidate ~ ', kept so that you can look at it'
            ~ "\n  remedy: mend the sources or the model, or set meta.healing_tables.checks, e.g. {'" ~ failed_checks[0] ~ "': false}; then drop the candidate") -}}
    {%- endif -%}
    {%- do healing_tables._progress(
        target, 'passed ' ~ (about.checks | join(', ')) ~ ' (' ~ healing_tables._seconds(healing_tables._now() - started) ~ ')') -%}
{%- endmacro %}

{#- Rows without a place and ties that were decided by value: nothing is left out or chosen in silence. -#}
{% macro _warn_of_rows(target, about, sql) -%}
    {%- set queries = [] -%}
    {#- CTEs of the model, and of ephemeral models, are in front of its select -#}
    {%- set ctes = healing_tables._ctes_before(sql) -%}
    {%- set unseen = about.sources | selectattr('is_read_by_all', 'false') | map(attribute='name') | list if ctes is none else [] -%}
    {%- for source in about.sources if source.name not in unseen -%}
        {%- do queries.append('select ' ~ healing_tables._text(source.name) ~ ' as source, (' ~ source.set_aside ~ ') as set_aside, '
            ~ ('(' ~ source.ties ~ ')' if source.ties else 'cast(0 as bigint)') ~ ' as ties') -%}
    {%- endfor -%}
    {%- if unseen -%}
        {%- do healing_tables._progress(
            target, 'rows set aside are not counted: source ' ~ (unseen | join(', ')) ~ ' or its where is a part of the model, which only the model can read') -%}
    {%- else -%} {%- do about.build.update({'rows_set_aside': 0, 'ties_resolved': 0}) -%}
    {%- endif -%}
    {%- set warnings = [] -%}
    {%- if queries -%}
        {%- for row in run_query((ctes or '') ~ queries | join(' union all ')).rows -%}
            {%- do about.build.update({
                'rows_set_aside': about.build.rows_set_aside + row['set_aside'] | int,
                'ties_resolved': about.build.ties_resolved + row['ties'] | int}) if not unseen -%}
            {%- if row['set_aside'] > 0 -%}
                {%- do warnings.append(
                    target ~ ': ' ~ row['set_aside'] ~ ' rows of source ' ~ row['source'] ~ ' set aside (NULL key, NULL or endless moment, '
                    ~ 'or empty period); healing_tables.set_aside lists them') -%}
            {%- endif -%}
            {%- if row['ties'] > 0 -%}
                {%- do warnings.append(
                    target ~ ': ' ~ row['ties'] ~ ' ties in source ' ~ row['source'] ~ ' resolved by on_tie: greatest') -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if warnings and (flags.WARN_ERROR or flags.WARN_ERROR_OPTIONS.includes('JinjaLogWarning')) -%}
        {#- dbt makes an error of the first -#}
        {%- do healing_tables._end_build(about, 'refused', {'reason': warnings | join('; ')}) -%}
    {%- endif -%}
    {%- for text in warnings -%} {%- do exceptions.warn(text) -%} {%- endfor -%}
{%- endmacro %}
