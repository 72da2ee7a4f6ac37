{#- What an undo reads and writes: the rows of then, from the audit, published as a build would. -#}

{#-
    What an undo begins with; it refuses what it cannot do. `is_run`: it will publish.

    run         see _begin.sql; if the undo publishes, its audit has all commits
    known       see audit/_known.sql
    is_merged   by a healing_merge
    moved       see _moved_batches()
-#}
{% macro _begin_undo(table, known_at, is_run) -%}
    {%- set mistakes, target, node = [], table.relation, table.node -%}
    {%- if node is none or node.config.materialized not in ['healing_table', 'healing_merge'] -%}
        {%- do healing_tables._mistake(mistakes, 'dimension',
            'a dimension that a healing_table or a healing_merge of this project writes', target | string,
            'read the rows of then with versions_at(..., known_at=...), and write them yourself') -%}
        {%- do healing_tables._raise_mistakes('undo', mistakes) -%}
    {%- endif -%}
    {%- set is_merged = node.config.materialized == 'healing_merge' -%}
    {%- set stored = healing_tables._table_details(target) -%}
    {%- set format = healing_tables._stored_format(stored) -%}
    {%- do healing_tables._mistake(mistakes, 'audit', 'a model with an audit', 'one without',
        'set meta.healing_tables.audit: {}: what was known is known from then on')
        if healing_tables._option('audit', none) is none -%}
    {%- do healing_tables._check_can_undo_merges(mistakes, target) if is_merged -%}
    {%- set settings = healing_tables._settings_of_rows(mistakes, healing_tables._metadata_of_table(mistakes, node),
        stored.get('columns', {}), format) -%}
    {%- do healing_tables._raise_mistakes('undo', mistakes) -%}
    {%- set known = healing_tables._known(mistakes, 'dimension', target, settings.valid_from, none, known_at) -%}
    {%- for name, type in (known.stored.items() if known is not none else [])
        if healing_tables._type_in_text(type) != known.columns[name] -%}
        {%- do healing_tables._mistake(mistakes, name, 'a column whose type of today holds all values of before', type,
            'widen it to ' ~ known.columns[name]) -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes('undo', mistakes) -%}
    {%- set run = healing_tables._run_of_operation('undo', target, stored, settings) -%}
    {%- set moved = healing_tables._moved_batches(run, known, known_at) if is_merged else none -%}
    {%- set undone = {'run': run, 'known': known, 'is_merged': is_merged, 'moved': moved} -%}
    {%- if not is_run -%} {{ return(undone) }} {%- endif -%}
    {#- what the audit lacks may be of before that moment -#}
    {{- return(dict(undone, run=healing_tables._with_audit(run), known=healing_tables._known(
        mistakes, 'dimension', target, settings.valid_from, none, known_at))) -}}
{%- endmacro %}

{#- A table of the rows that differ from those of then: key_1.., start, old, candidate_row, differs. -#}
{% macro _stage_undo(undone, known_at) -%}
    {%- set run, columns = undone.run, undone.known.stored -%}
    {%- set then = '(select ' ~ (healing_tables._quoted_list(columns) | join(', ')) ~ ' from '
        ~ healing_tables._known_at(undone.known, known_at) ~ ')' -%}
    {%- do healing_tables._run('create or replace table ' ~ run.candidate_table ~ ' using ' ~ run.format.name
        ~ ' as\nselect ' ~ healing_tables._key_names(run.settings.key_columns)
        ~ ', start, old, new as candidate_row, true as differs from (\n' ~ healing_tables._audited_versions(
            run.settings, run.target, then, columns, columns, true) ~ '\n)') -%}
    {{- return(run.candidate_table) -}}
{%- endmacro %}

{% macro _figures_of_undo(undone, staged) -%}
    {{- return(healing_tables._read_figures('select count_if(old is null) as rows_added, '
        ~ 'count_if(candidate_row is null) as rows_removed, '
        ~ 'count_if(old is not null and candidate_row is not null) as rows_changed, count(distinct struct('
        ~ healing_tables._key_names(undone.run.settings.key_columns) ~ ')) as keys_affected from ' ~ staged)) -}}
{%- endmacro %}

{#- One MERGE, then its audit, and its row of the log. -#}
{% macro _publish_undo(undone, staged, figures, known_at) -%}
    {%- set run, reason = undone.run, 'undo to ' ~ known_at -%}
    {%- set rows = run_query('select count(*) as n from ' ~ run.target).rows[0]['n'] | int -%}
    {%- set conflicts = ['another writer'] if run.format.commits.newest_version(run.target) != run.version_before
        else healing_tables._publish_merge(run, {
            'staged': staged, 'buckets': none, 'row_count': rows + figures.rows_added - figures.rows_removed,
            'inputs': {
                'key_columns': run.settings.key_columns, 'valid_from': run.settings.valid_from,
                'columns': undone.known.stored | list}}, 'undo') -%}
    {%- if conflicts -%}
        {%- do healing_tables._run('drop table if exists ' ~ staged) -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(mistakes, 'undo', 'no other writer in between', conflicts | join(', '),
            'run it again') -%}
        {%- do healing_tables._raise_error('healing_tables.undo ' ~ run.target ~ ': the target is unchanged.',
            mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._audit_of_operation(run, reason) -%}
    {{- return(healing_tables._end_operation(dict(
        figures, target=run.target, format_name=run.format.name, mode='undo', status='published', publish='merge',
        reason=reason, rows_unchanged=rows - figures.rows_changed - figures.rows_removed, started_at=run.started_at,
        version_before=run.version_before, version_after=run.format.commits.newest_version(run.target)))) -}}
{%- endmacro %}
