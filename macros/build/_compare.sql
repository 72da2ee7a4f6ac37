{#-
    Before anything is published, the candidate is compared with what is stored: a `change`.

    how         'unchanged' (nothing to publish), 'merge' (the rows that differ) or 'overwrite' (the whole table)
    rows        what an overwrite publishes, as a select
    obstacle    why it cannot be a merge, or none
    summary     the figures as a text
    log_row     the figures as columns of the log
    inputs      see _diff_inputs; buckets: see _key_bucket. Only where there was something to compare with.
-#}
{% macro _compare_with_stored(build) -%}
    {%- set settings = build.settings -%}
    {%- set rows = 'select * from ' ~ build.candidate -%}
    {%- if not build.stored or build.keeps_foreign -%}
        {{- return(healing_tables._all_rows_as_new(build, rows, none)) -}}
    {%- endif -%}
    {%- set stored_columns = healing_tables._columns_of(build.existing) -%}
    {%- set columns = healing_tables._columns_of(build.candidate) -%}
    {%- do healing_tables._check_schema_changes(build, stored_columns, columns) -%}
    {%- set missing = healing_tables._missing_names(
        settings.key_columns + ([settings.valid_from] if settings.valid_from is not none else []), stored_columns) -%}
    {%- if missing -%}
        {%- set obstacle = 'what is stored has no ' ~ (missing | join(', ')) -%}
        {%- do healing_tables._log_progress(build.target, 'not compared: ' ~ obstacle) -%}
        {{- return(healing_tables._all_rows_as_new(build, rows, obstacle)) -}}
    {%- endif -%}
    {%- set inputs = healing_tables._diff_inputs(settings, build.existing, rows, stored_columns, columns,
        build.changed_keys) -%}
    {%- if build.changed_keys is not none -%}
        {#- few rows, for which all of the stored table is read: once, not here and in the MERGE -#}
        {%- set query = healing_tables._row_diff(inputs) ~ 'select * from difference' -%}
        {%- set inputs = dict(inputs, staged=healing_tables._create_side_table(build, '_changes', query)) -%}
    {%- endif -%}
    {%- set figures = {'current_keys': 0, 'closed_versions': 0} -%}
    {%- for name, value in run_query(healing_tables._diff_figures(inputs, build.existing)).rows[0].dict().items() -%}
        {%- do figures.update({name: value if name == 'buckets' else value | int}) -%}
    {%- endfor -%}
    {%- if figures.ended_keys > 0 or figures.lost_versions > 0 -%}
        {%- for name, value in run_query(healing_tables._stored_figures(inputs, build.existing)).rows[
            0].dict().items() -%}
            {%- do figures.update({name: value | int}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do healing_tables._check_guards(build, figures) -%}
    {%- set unchanged = figures.stored_versions - figures.updated - figures.deleted -%}
    {%- set obstacle = healing_tables._overwrite_reason(build, stored_columns, columns, inputs, figures) -%}
    {%- set differing = figures.inserted + figures.updated + figures.deleted -%}
    {%- set change = {
        'how': 'overwrite', 'rows': rows, 'inputs': inputs, 'buckets': figures.get('buckets'), 'obstacle': obstacle,
        'summary': figures.inserted ~ ' rows inserted, ' ~ figures.updated ~ ' updated, ' ~ figures.deleted
        ~ ' deleted, ' ~ unchanged ~ ' as they were',
        'log_row': {
            'rows_added': figures.inserted, 'rows_changed': figures.updated, 'rows_removed': figures.deleted,
            'rows_unchanged': unchanged, 'keys_affected': figures.differing_keys}} -%}
    {%- if obstacle is none and differing == 0 -%} {{ return(dict(change, how='unchanged')) }} {%- endif -%}
    {%- if obstacle is none and not build.format.has_commits -%}
        {%- set change = dict(change,
            obstacle='only a table with commits, such as Delta, can take a part of its rows') -%}
    {%- endif -%}
    {%- set is_heal = build.log_row.mode == 'heal' -%}
    {%- if change.obstacle is not none -%}
        {%- do healing_tables._log_progress(build.target, 'no merge: ' ~ change.obstacle)
            if settings.publish == 'merge' and not is_heal -%}
        {{- return(change) -}}
    {%- endif -%}
    {%- set is_small = 2 * differing <= figures.stored_versions -%}
    {{- return(dict(
        change, how='merge' if is_heal or settings.publish == 'merge' or (settings.publish == 'auto' and is_small)
        else 'overwrite')) -}}
{%- endmacro %}

{#- The change where there is nothing to compare with. -#}
{% macro _all_rows_as_new(build, rows, obstacle) -%}
    {%- set keys = [] -%}
    {%- for key in build.settings.key_columns -%} {%- do keys.append(healing_tables._id(key)) -%} {%- endfor -%}
    {%- set row = run_query(
        'select count(*) as versions, count(distinct struct(' ~ (keys | join(', ')) ~ ')) as keys from '
        ~ build.candidate).rows[0] -%}
    {%- do healing_tables._check_guards(build, {
        'candidate_versions': row['versions'] | int, 'is_first': true, 'current_keys': 0, 'ended_keys': 0,
        'closed_versions': 0, 'lost_versions': 0}) -%}
    {{- return({
        'how': 'overwrite', 'rows': rows, 'obstacle': obstacle, 'summary': '', 'log_row': {
            'rows_added': row['versions'] | int, 'rows_changed': 0, 'rows_removed': 0, 'rows_unchanged': 0,
            'keys_affected': row['keys'] | int}}) -}}
{%- endmacro %}

{#- Why the stored table has to be replaced, whatever the rows that differ; none if it can stay. -#}
{% macro _overwrite_reason(build, stored_columns, columns, inputs, figures) -%}
    {%- if build.stored.get('provider') != build.format.name -%}
        {{- return('it is stored as ' ~ build.stored.get('provider')) -}}
    {%- endif -%}
    {%- if flags.FULL_REFRESH -%} {{ return('--full-refresh') }} {%- endif -%}
    {%- if stored_columns.items() | list != columns.items() | list -%} {{ return('the columns differ') }} {%- endif -%}
    {%- if inputs.columns | length < columns | length -%}
        {{- return('a column has a type without equality') -}}
    {%- endif -%}
    {%- if figures.repeated > 0 -%} {{ return('several rows of a key have one start') }} {%- endif -%}
    {%- if build.stored.partitions | map('lower') | list != healing_tables._as_list(config.get('partition_by'))
        | map('lower') | list -%}
        {{- return('the partitions differ') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}

{#-
    Columns that come, go or change their type. What loses nothing passes: a new column, a type that holds every old
    value. on_schema_change: fail refuses that too, sync_all_columns and --full-refresh allow everything.
-#}
{% macro _check_schema_changes(build, stored_columns, columns) -%}
    {%- set added = [] -%}
    {%- set widened = [] -%}
    {%- set lost = [] -%}
    {%- for name, type in columns.items() -%}
        {%- set stored = healing_tables._find_column(name, stored_columns) -%}
        {%- set text = 'column ' ~ name ~ ' becomes ' ~ type ~ ', it was ' ~ stored_columns.get(stored) -%}
        {%- if stored is none -%}
            {%- do added.append('column ' ~ name ~ ' (' ~ type ~ ') is new: filled through all of history') -%}
        {%- elif not healing_tables._type_holds(type, stored_columns[stored]) -%} {%- do lost.append(text) -%}
        {%- elif stored_columns[stored] != type -%} {%- do widened.append(text) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name, type in stored_columns.items() if healing_tables._find_column(name, columns) is none -%}
        {%- do lost.append('column ' ~ name ~ ' (' ~ type ~ ') goes') -%}
    {%- endfor -%}
    {%- for text in added + widened + lost -%}
        {%- do healing_tables._log_progress(build.target, text) -%}
    {%- endfor -%}
    {%- set option = config.get('on_schema_change') or 'ignore' -%}
    {%- set refused = {'fail': added + widened + lost, 'append_new_columns': widened + lost,
        'ignore': lost}.get(option, []) -%}
    {%- if refused and not flags.FULL_REFRESH -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_schema_change: ' ~ option, {
                'fail': 'the columns that are stored', 'append_new_columns': 'the columns that are stored, or more',
                'ignore': 'the columns that are stored, or more, in types that hold every stored value'}[option],
                refused | join('; '),
            'correct the model; or set on_schema_change: sync_all_columns; or run it once with --full-refresh') -%}
        {%- do healing_tables._refuse(build, mistakes) -%}
    {%- endif -%}
{%- endmacro %}
