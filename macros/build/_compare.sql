{#-
    A `change`: what a build is about to publish.

    how         'unchanged' (nothing), 'merge' (the rows that differ) or 'overwrite' (the whole table)
    obstacle    why it cannot be a merge, or none
    summary     the figures as text
    log_row     the figures as columns of the log
    row_count   the rows of the table afterwards, if known
    inputs      see _diff_inputs; buckets: see _key_bucket; staged: the table of changes. Only for a merge.
-#}

{#- The change of a heal without changed keys: the stored table still has the rows of the last build. -#}
{% macro _no_change(build) -%}
    {{- return({'how': 'unchanged', 'summary': 'no key has changed', 'row_count': build.last.row_count, 'log_row': {
        'rows_added': 0, 'rows_changed': 0, 'rows_removed': 0,
        'rows_unchanged': healing_tables._stored_rows_count(build)}}) -}}
{%- endmacro %}

{#- Whether the stored rows can be matched by key and start. A build that would lose columns is refused. -#}
{% macro _is_comparable(build) -%}
    {%- if not build.stored or build.keeps_foreign -%} {{ return(false) }} {%- endif -%}
    {%- set settings = build.settings -%}
    {%- do healing_tables._check_schema_changes(build, build.stored.columns, build.columns) -%}
    {%- set missing = healing_tables._missing_names(
        settings.key_columns + ([settings.valid_from] if settings.valid_from is not none else []),
        build.stored.columns) -%}
    {%- do healing_tables._log_progress(build.target, 'not compared: the stored table has no ' ~ (missing | join(', ')))
        if missing -%}
    {{- return(not missing) -}}
{%- endmacro %}

{#- Choose the change from the figures of a comparison. A build that would remove too much is refused. -#}
{% macro _change_of_figures(build, inputs, figures, obstacle) -%}
    {%- do figures.update({'current_keys': 0, 'closed_versions': 0}) -%}
    {%- if figures.ended_keys > 0 or figures.lost_versions > 0 -%}
        {%- do figures.update(healing_tables._read_figures(healing_tables._stored_figures(inputs, build.existing))) -%}
    {%- endif -%}
    {%- do healing_tables._check_guards(build, figures) -%}
    {%- set unchanged = figures.stored_versions - figures.updated - figures.deleted -%}
    {%- set differing = figures.inserted + figures.updated + figures.deleted -%}
    {%- set publish = build.settings.publish -%}
    {%- set is_unchanged = differing == 0 and figures.repeated == 0
        and healing_tables._overwrite_reason(build) is none -%}
    {%- set obstacle = 'several rows of a key have the same start' if figures.repeated > 0
        else 'equal keys of this type can be in different key buckets'
            if obstacle is none and build.location is not none and not inputs.has_buckets
        else obstacle -%}
    {%- set is_small = 2 * differing <= figures.stored_versions -%}
    {%- set can_merge = obstacle is none and (build.log_row.mode == 'heal' or publish == 'merge'
        or (publish == 'auto' and is_small)) -%}
    {%- do healing_tables._log_progress(build.target, 'no merge: ' ~ obstacle)
        if obstacle is not none and publish == 'merge' and not is_unchanged -%}
    {{- return({
        'how': 'unchanged' if is_unchanged else 'merge' if can_merge else 'overwrite',
        'inputs': inputs, 'buckets': figures.get('buckets'), 'staged': build.changes, 'obstacle': obstacle,
        'row_count': figures.candidate_versions,
        'summary': healing_tables._counted(figures.inserted, 'row') ~ ' inserted, ' ~ figures.updated ~ ' updated, '
        ~ figures.deleted
        ~ ' deleted, ' ~ unchanged ~ ' as they were',
        'log_row': {
            'rows_added': figures.inserted, 'rows_changed': figures.updated, 'rows_removed': figures.deleted,
            'rows_unchanged': unchanged, 'keys_affected': figures.differing_keys}}) -}}
{%- endmacro %}

{#- Report the counts of _set_aside_counts(). Returns whether one of them shows a row after which its key exists. -#}
{% macro _look_for_rows(build, counts) -%}
    {%- set rows = run_query(counts).rows if counts is not none else [] -%}
    {%- do healing_tables._report_set_aside(build, rows) -%}
    {{- return(rows | selectattr('has_rows') | list | length > 0) -}}
{%- endmacro %}

{#- The change if there is nothing to compare with. Its rows are counted when they are written. A dimension has rows if
    a source has any; the query itself runs only if that is not known. -#}
{% macro _all_rows_as_new(build, obstacle, has_rows) -%}
    {%- set has_rows = has_rows or healing_tables._has_rows('(\n' ~ healing_tables._as_subquery(build.query) ~ ')') -%}
    {%- do healing_tables._check_guards(build, {
        'candidate_versions': 1 if has_rows else 0, 'is_first': true,
        'current_keys': 0, 'ended_keys': 0, 'closed_versions': 0, 'lost_versions': 0}) -%}
    {{- return({'how': 'overwrite', 'obstacle': obstacle, 'summary': '', 'log_row': {
        'rows_changed': 0, 'rows_removed': 0, 'rows_unchanged': 0}}) -}}
{%- endmacro %}

{#- Why the whole table is written instead of merging the rows that differ; none if they can be merged. -#}
{% macro _merge_obstacle(build, is_comparable) -%}
    {%- if not is_comparable -%}
        {{- return('nothing is stored' if not build.stored else 'the stored table cannot be compared') -}}
    {%- endif -%}
    {%- set obstacle = build.format.part_obstacle(build.stored) -%}
    {%- if obstacle is not none -%} {{ return(obstacle) }} {%- endif -%}
    {%- if build.location is not none and not build.is_as_left -%}
        {{- return('another writer may have put rows into the wrong key buckets') -}}
    {%- endif -%}
    {%- if build.settings.publish == 'overwrite' and build.log_row.mode != 'heal' -%}
        {{- return('publish: overwrite') -}}
    {%- endif -%}
    {{- return(healing_tables._overwrite_reason(build)) -}}
{%- endmacro %}

{#- Why all rows must be written, even those that do not differ; none if writing the difference is enough. -#}
{% macro _overwrite_reason(build) -%}
    {{- return(healing_tables._replace_reason(build) or ('--full-refresh' if flags.FULL_REFRESH else none)) -}}
{%- endmacro %}

{#- Why the stored table must be replaced; none if rows can be written to it. -#}
{% macro _replace_reason(build) -%}
    {%- if build.stored.get('provider') != build.format.name -%}
        {{- return('it is stored as ' ~ build.stored.get('provider')) -}}
    {%- endif -%}
    {%- if build.stored.columns.items() | list != build.columns.items() | list -%}
        {{- return('the columns differ') -}}
    {%- endif -%}
    {%- for type in build.columns.values() if healing_tables._has_no_equality(type) -%}
        {{- return('a column has a type without equality') -}}
    {%- endfor -%}
    {%- if build.stored.partitions | map('lower') | list != healing_tables._as_list(config.get('partition_by'))
        | map('lower') | map('replace', ', ', ',') | list -%}
        {{- return('the partitions differ') -}}
    {%- endif -%}
    {%- if build.location is not none
        and healing_tables._stored_buckets(build.stored.location).buckets != healing_tables._key_buckets() -%}
        {{- return('the number of key buckets differs') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}

{#-
    Check columns that are added, removed or changed in type. Changes that lose no values are allowed: a new column, or
    a type that holds every old value. on_schema_change: fail refuses these, too; sync_all_columns and --full-refresh
    allow everything.
-#}
{% macro _check_schema_changes(build, stored_columns, columns) -%}
    {%- set added = [] -%}
    {%- set widened = [] -%}
    {%- set lost = [] -%}
    {%- for name, type in columns.items() -%}
        {%- set stored = healing_tables._find_column(name, stored_columns) -%}
        {%- set text = 'column ' ~ name ~ ' becomes ' ~ type ~ ', it was ' ~ stored_columns.get(stored) -%}
        {%- if stored is none -%}
            {%- do added.append('column ' ~ name ~ ' (' ~ type ~ ') is new: added to all versions') -%}
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
                'fail': 'the stored columns', 'append_new_columns': 'the stored columns, or more',
                'ignore': 'the stored columns, or more, in types that hold every stored value'}[option],
                refused | join('; '),
            'correct the model; or set on_schema_change: sync_all_columns; or run it once with --full-refresh') -%}
        {%- do healing_tables._refuse(build, mistakes, false) -%}
    {%- endif -%}
{%- endmacro %}
