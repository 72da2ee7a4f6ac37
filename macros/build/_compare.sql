{#-
    Before anything is published, the candidate is compared with what is stored. `how` of the result says what follows:
    'unchanged' (nothing), 'merge' (the rows that differ) or 'overwrite'. A build that would remove too much is refused.
-#}
{% macro _compare(target, candidate, about, existing, stored) -%}
    {%- set rows = 'select * from ' ~ candidate -%}
    {%- set change = {'how': 'overwrite', 'told': '', 'rows': rows, 'obstacle': none, 'row': {}} -%}
    {%- if not stored or about.build.keeps_other -%}
        {%- do healing_tables._count_new(target, candidate, about, change) -%}
        {{- return(change) -}}
    {%- endif -%}
    {%- set was = healing_tables._columns_of(existing) -%}
    {%- set will = healing_tables._columns_of(candidate) -%}
    {%- do healing_tables._schema_changes(target, candidate, about, was, will) -%}
    {%- set missing = healing_tables._missing(about.key_columns + ([about.valid_from] if about.valid_from is not none else []), was) -%}
    {%- if missing -%}
        {%- do change.update({'obstacle': 'what is stored has no ' ~ (missing | join(', '))}) -%}
        {%- do healing_tables._progress(target, 'not compared: ' ~ change.obstacle) -%}
        {%- do healing_tables._count_new(target, candidate, about, change) -%}
        {{- return(change) -}}
    {%- endif -%}
    {%- set sides = healing_tables._sides(about, existing, rows, was, will) -%}
    {%- if sides.touched is not none -%}
        {#- few rows, for which all of the stored table is read: once, not here and in the MERGE -#}
        {%- set query = healing_tables._difference(sides) ~ 'select * from difference' -%}
        {%- do sides.update({'kept': healing_tables._side_table(candidate, about.build, '_changes', query)}) -%}
    {%- endif -%}
    {%- set figures = {'current_keys': 0, 'closed_versions': 0} -%}
    {%- for name, value in run_query(healing_tables._figures(sides, existing)).rows[0].dict().items() -%}
        {%- do figures.update({name: value if name == 'buckets' else value | int}) -%}
    {%- endfor -%}
    {%- if figures.ended_keys > 0 or figures.lost_versions > 0 -%}
        {%- for name, value in run_query(healing_tables._stored_figures(sides, existing)).rows[0].dict().items() -%}
            {%- do figures.update({name: value | int}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- do healing_tables._check_guards(target, candidate, about, figures) -%}
    {%- set differing = figures.inserted + figures.updated + figures.deleted -%}
    {%- set unchanged = figures.stored_versions - figures.updated - figures.deleted -%}
    {%- do change.update({
        'sides': sides, 'buckets': figures.get('buckets'), 'deleted': figures.deleted, 'obstacle': healing_tables._overwrite_reason(stored, was, will, sides, figures),
        'told': figures.inserted ~ ' rows inserted, ' ~ figures.updated ~ ' updated, ' ~ figures.deleted ~ ' deleted, ' ~ unchanged ~ ' as they were',
        'row': {'rows_added': figures.inserted, 'rows_changed': figures.updated, 'rows_removed': figures.deleted,
            'rows_unchanged': unchanged, 'keys_affected': figures.differing_keys}}) -%}
    {%- if change.obstacle is none and differing == 0 -%}
        {%- do change.update({'how': 'unchanged'}) -%}
        {{- return(change) -}}
    {%- endif -%}
    {%- if change.obstacle is none and healing_tables._file_format() != 'delta' -%}
        {%- do change.update({'obstacle': 'only a Delta table can take a part of its rows'}) -%}
    {%- endif -%}
    {%- if change.obstacle is not none -%}
        {%- if about.publish == 'merge' and about.build.mode != 'heal' -%} {%- do healing_tables._progress(target, 'no merge: ' ~ change.obstacle) -%} {%- endif -%}
    {%- elif about.build.mode == 'heal' or about.publish == 'merge' or (about.publish == 'auto' and 2 * differing <= figures.stored_versions) -%}
        {%- do change.update({'how': 'merge'}) -%}
    {%- endif -%}
    {{- return(change) -}}
{%- endmacro %}

{#- Without anything to compare with, all rows are new. -#}
{% macro _count_new(target, candidate, about, change) -%}
    {%- set keys = [] -%}
    {%- for key in about.key_columns -%} {%- do keys.append(healing_tables._id(key)) -%} {%- endfor -%}
    {%- set row = run_query('select count(*) as versions, count(distinct struct(' ~ (keys | join(', ')) ~ ')) as keys from ' ~ candidate).rows[0] -%}
    {%- do healing_tables._check_guards(target, candidate, about, {
        'candidate_versions': row['versions'] | int, 'is_first': true, 'current_keys': 0, 'ended_keys': 0, 'closed_versions': 0, 'lost_versions': 0}) -%}
    {%- do change.row.update({
        'rows_added': row['versions'] | int, 'rows_changed': 0, 'rows_removed': 0, 'rows_unchanged': 0, 'keys_affected': row['keys'] | int}) -%}
{%- endmacro %}

{#- Why the stored table has to be replaced, whatever the rows that differ; none if it can stay. -#}
{% macro _overwrite_reason(stored, was, will, sides, figures) -%}
    {%- if stored.get('provider') != healing_tables._file_format() -%}
        {{- return('it is stored as ' ~ stored.get('provider')) -}}
    {%- endif -%}
    {%- if flags.FULL_REFRESH -%} {{ return('--full-refresh') }} {%- endif -%}
    {%- if was.items() | list != will.items() | list -%} {{ return('the columns differ') }} {%- endif -%}
    {%- if sides.columns | length < will | length -%} {{ return('a column has a type without equality') }} {%- endif -%}
    {%- if figures.repeated > 0 -%} {{ return('several rows of a key have one start') }} {%- endif -%}
    {%- if stored.partitions | map('lower') | list != healing_tables._list(config.get('partition_by')) | map('lower') | list -%}
        {{- return('the partitions differ') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}

{#-
    Columns that come, go or change their type. What loses nothing passes: a new column, a type that holds every old value.
    on_schema_change: fail refuses that too, sync_all_columns and --full-refresh allow everything.
-#}
{% macro _schema_changes(target, candidate, about, was, will) -%}
    {%- set come = [] -%}
    {%- set others = [] -%}
    {%- set lost = [] -%}
    {%- for name, type in will.items() -%}
        {%- set stored = healing_tables._find(name, was) -%}
        {%- set text = 'column ' ~ name ~ ' becomes ' ~ type ~ ', it was ' ~ was.get(stored) -%}
        {%- if stored is none -%}
            {%- do come.append('column ' ~ name ~ ' (' ~ type ~ ') is new: filled through all of history') -%}
        {%- elif not healing_tables._holds(type, was[stored]) -%} {%- do lost.append(text) -%}
        {%- elif was[stored] != type -%} {%- do others.append(text) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name, type in was.items() if healing_tables._find(name, will) is none -%}
        {%- do lost.append('column ' ~ name ~ ' (' ~ type ~ ') goes') -%}
    {%- endfor -%}
    {%- for text in come + others + lost -%} {%- do healing_tables._progress(target, text) -%} {%- endfor -%}
    {%- set option = config.get('on_schema_change') or 'ignore' -%}
    {%- set refused = {'fail': come + others + lost, 'append_new_columns': others + lost, 'ignore': lost}.get(option, []) -%}
    {%- if refused and not flags.FULL_REFRESH -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_schema_change: ' ~ option, {
                'fail': 'the columns that are stored', 'append_new_columns': 'the columns that are stored, or more',
                'ignore': 'the columns that are stored, or more, in types that hold every stored value'}[option], refused | join('; '),
            'correct the model; or set on_schema_change: sync_all_columns; or run it once with --full-refresh') -%}
        {%- do healing_tables._refuse(target, candidate, about, mistakes) -%}
    {%- endif -%}
{%- endmacro %}

{#-
    A build that would end too many keys or lose too many closed versions, from 20 current keys on; and one without rows,
    unless there is a table that has none either.
-#}
{% macro _check_guards(target, candidate, about, figures) -%}
    {%- if healing_tables._is_partial_run() -%} {{ return(none) }} {%- endif -%}
    {#- a heal may well end all of its few keys -#}
    {%- set is_heal = about.build is defined and about.build.mode == 'heal' -%}
    {%- set is_empty = figures.candidate_versions == 0 and figures.get('stored_versions') != 0 and not is_heal -%}
    {%- if figures.current_keys < 20 and not is_empty -%} {{ return(none) }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set allowed = [] -%}
    {%- for option, got, of, wanted in [
        ('max_removed_keys_ratio', figures.ended_keys, figures.current_keys, ' of the current keys to end'),
        ('max_removed_versions_ratio', figures.lost_versions, figures.closed_versions, ' of the closed versions to be removed')] -%}
        {%- set ratio = about.ratios[option] -%}
        {%- if got > of * ratio -%}
            {%- do allowed.append(option ~ ': 1') -%}
            {%- do healing_tables._mistake(
                mistakes, option, 'at most ' ~ '%g' | format(ratio) ~ wanted,
                got ~ ' of ' ~ of ~ ' (' ~ '%.2f' | format(got / of) ~ ')' ~ (', since the candidate is empty' if is_empty),
                'check the sources; if it is right, allow it once: ') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if is_empty and not mistakes and figures.is_first and about.ratios.max_removed_keys_ratio < 1 -%}
        {%- do allowed.append('max_removed_keys_ratio: 1') -%}
        {%- do healing_tables._mistake(
            mistakes, 'max_removed_keys_ratio', 'a candidate with rows', 'none', 'check the sources; if it is right, allow it once: ') -%}
    {%- endif -%}
    {%- for mistake in mistakes -%}
        {%- do mistake.update({'remedy': mistake.remedy ~ "--vars '{" ~ (allowed | join(', ')) ~ "}'"}) -%}
    {%- endfor -%}
    {%- do healing_tables._refuse(target, candidate, about, mistakes) if mistakes -%}
{%- endmacro %}

{#- The error of a build that is refused; `candidate` is none where it has not been made yet. -#}
{% macro _refuse(target, candidate, about, mistakes) -%}
    {%- set reasons = [] -%}
    {%- set lines = [config.get('materialized') ~ ' ' ~ target ~ ': refused; the target is as it was.'] -%}
    {%- for mistake in mistakes -%}
        {%- do lines.append('  ' ~ mistake.argument) -%}
        {%- do lines.append('     wanted: ' ~ mistake.wanted) -%}
        {%- do lines.append('     got:    ' ~ healing_tables._got(mistake)) -%}
        {%- do lines.append('     remedy: ' ~ mistake.remedy) -%}
        {%- do reasons.append(mistake.argument ~ ': ' ~ mistake.got) -%}
    {%- endfor -%}
    {%- if about.build is defined -%}
        {%- do healing_tables._end_build(about, 'refused', {'reason': reasons | join('; ')}) -%}
    {%- endif -%}
    {%- if candidate is not none -%}
        {%- do lines.append('  The candidate ' ~ candidate ~ ' is kept so that you can look at it; then drop it.') -%}
    {%- endif -%}
    {{- exceptions.raise_compiler_error(lines | join('\n')) -}}
{%- endmacro %}

{#- The two ratios: a variable of the run, then the option as any other. -#}
{% macro _removal_ratios(mistakes) -%}
    {%- set ratios = {} -%}
    {%- for option, default in {'max_removed_keys_ratio': 0.5, 'max_removed_versions_ratio': 0.1}.items() -%}
        {%- set ratio = var(option, healing_tables._option(option, none, default)) -%}
        {%- if ratio is not number or ratio is boolean or ratio < 0 or ratio > 1 -%}
            {%- do healing_tables._mistake(mistakes, option, 'a number from 0 to 1', ratio | tojson, '1 allows everything') -%}
        {%- endif -%}
        {%- do ratios.update({option: ratio}) -%}
    {%- endfor -%}
    {{- return(ratios) -}}
{%- endmacro %}

{#- Those of `commits` that may have changed rows, as texts; none where the history does not reach back. -#}
{% macro _told_writes(commits) -%}
    {%- set writes = [] -%}
    {%- for commit in commits or [] if commit.operation not in healing_tables._upkeep() -%}
        {%- do writes.append('version ' ~ commit.version ~ ' (' ~ commit.operation ~ ')') -%}
    {%- endfor -%}
    {{- return(writes) -}}
{%- endmacro %}
