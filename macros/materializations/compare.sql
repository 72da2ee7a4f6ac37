{#-
    Before anything is published, the candidate is compared with what is stored. `how` of the result says what follows:
    'unchanged' (nothing), 'merge' (the rows that differ) or 'overwrite'. A build that would remove too much is refused.
-#}
{% macro _compare(target, candidate, about, existing, stored) -%}
    {%- set rows = 'select * from ' ~ candidate -%}
    {%- set change = {'how': 'overwrite', 'told': '', 'rows': rows, 'obstacle': none, 'row': {}} -%}
    {%- if not stored -%}
        {%- do change.row.update(healing_tables._counted(candidate, about)) -%}
        {{- return(change) -}}
    {%- endif -%}
    {%- set was = healing_tables._columns_of(existing) -%}
    {%- set will = healing_tables._columns_of(candidate) -%}
    {%- do healing_tables._schema_changes(target, candidate, about, was, will) -%}
    {%- set missing = healing_tables._missing(about.key_columns + ([about.valid_from] if about.valid_from is not none else []), was) -%}
    {%- if missing -%}
        {%- do change.update({'obstacle': 'what is stored has no ' ~ (missing | join(', '))}) -%}
        {%- do healing_tables._progress(target, 'not compared: ' ~ change.obstacle) -%}
        {%- do change.row.update(healing_tables._counted(candidate, about)) -%}
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
{% macro _counted(candidate, about) -%}
    {%- set keys = [] -%}
    {%- for key in about.key_columns -%} {%- do keys.append(healing_tables._id(key)) -%} {%- endfor -%}
    {%- set row = run_query('select count(*) as versions, count(distinct struct(' ~ (keys | join(', ')) ~ ')) as keys from ' ~ candidate).rows[0] -%}
    {{- return({'rows_added': row['versions'] | int, 'rows_changed': 0, 'rows_removed': 0, 'rows_unchanged': 0, 'keys_affected': row['keys'] | int}) -}}
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

{#- Columns that come, go or change their type: told, and refused where on_schema_change says so. -#}
{% macro _schema_changes(target, candidate, about, was, will) -%}
    {%- set come = [] -%}
    {%- set others = [] -%}
    {%- for name, type in will.items() -%}
        {%- if name not in was -%}
            {%- do come.append('column ' ~ name ~ ' (' ~ type ~ ') is new: filled through all of history') -%}
        {%- elif was[name] != type -%}
            {%- do others.append('column ' ~ name ~ ' becomes ' ~ type ~ ', it was ' ~ was[name]) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name, type in was.items() if name not in will -%}
        {%- do others.append('column ' ~ name ~ ' (' ~ type ~ ') goes') -%}
    {%- endfor -%}
    {%- for text in come + others -%} {%- do healing_tables._progress(target, text) -%} {%- endfor -%}
    {%- set refused = {'fail': come + others, 'append_new_columns': others}.get(config.get('on_schema_change'), []) -%}
    {%- if refused -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_schema_change: ' ~ config.get('on_schema_change'), 'the columns that are stored'
            ~ (', or more' if config.get('on_schema_change') != 'fail'), refused | join('; '),
            'correct the model, or run it once without on_schema_change') -%}
        {%- do healing_tables._refuse(target, candidate, about, mistakes) -%}
    {%- endif -%}
{%- endmacro %}

{#- A build that would end too many keys or lose too many closed versions: from 20 current keys on, an empty one always. -#}
{% macro _check_guards(target, candidate, about, figures) -%}
    {%- if healing_tables._is_partial_run() -%} {{ return(none) }} {%- endif -%}
    {#- a heal may well end all of its few keys -#}
    {%- set is_heal = about.build is defined and about.build.mode == 'heal' -%}
    {%- set is_empty = figures.candidate_versions == 0 and not is_heal -%}
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
    {%- for mistake in mistakes -%}
        {%- do mistake.update({'remedy': mistake.remedy ~ "--vars '{" ~ (allowed | join(', ')) ~ "}'"}) -%}
    {%- endfor -%}
    {%- do healing_tables._refuse(target, candidate, about, mistakes) if mistakes -%}
{%- endmacro %}

{#- The error of a candidate that is not published. -#}
{% macro _refuse(target, candidate, about, mistakes) -%}
    {%- set reasons = [] -%}
    {%- set lines = [config.get('materialized') ~ ' ' ~ target ~ ': refused; the target is as it was.'] -%}
    {%- for mistake in mistakes -%}
        {%- do lines.append('  ' ~ mistake.argument) -%}
        {%- do lines.append('     wanted: ' ~ mistake.wanted) -%}
        {%- do lines.append('     got:    ' ~ mistake.got) -%}
        {%- do lines.append('     remedy: ' ~ mistake.remedy) -%}
        {%- do reasons.append(mistake.argument ~ ': ' ~ mistake.got) -%}
    {%- endfor -%}
    {%- if about.build is defined -%}
        {%- do healing_tables._end_build(about, 'refused', {'reason': reasons | join('; ')}) -%}
    {%- endif -%}
    {%- do lines.append('  The candidate ' ~ candidate ~ ' is kept so that you can look at it; then drop it.') -%}
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

{#- What was compared must still be stored: a build that another one has overtaken would undo it. -#}
{% macro _check_not_overtaken(target, candidate, about, existing, stored) -%}
    {%- if stored.get('provider') != 'delta' -%} {{ return(none) }} {%- endif -%}
    {%- set others = healing_tables._told_writes(healing_tables._commits_since(existing, about.build.version_before)) -%}
    {%- if others -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'concurrent writers', 'version ' ~ about.build.version_before ~ ' of ' ~ target ~ ', which this build was compared with',
            others | join(', '), 'run it again') -%}
        {%- do healing_tables._refuse(target, candidate, about, mistakes) -%}
    {%- endif -%}
{%- endmacro %}

{#-
    Between that look and the moment from which on Delta sees other commits lies a moment. A commit in it is seen
    afterwards; without a row in the log the next build is a rebuild, whatever its mode. Gives the version of the build's commit.
-#}
{% macro _check_was_alone(target, build) -%}
    {%- set commits = healing_tables._commits_since(target, build.version_before) -%}
    {%- set writes = healing_tables._told_writes(commits) -%}
    {%- if writes | length > 1 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'concurrent writers', 'one commit, this build, after version ' ~ build.version_before ~ ' of ' ~ target,
            writes | join(', ') ~ ': rows of both may be there', 'run it again: the next build rebuilds all keys') -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
    {{- return(commits | map(attribute='version') | max if commits else healing_tables._newest_version(target)) -}}
{%- endmacro %}

{#- Those of `commits` that may have changed rows, as texts; none where the history does not reach back. -#}
{% macro _told_writes(commits) -%}
    {%- set writes = [] -%}
    {%- for commit in commits or [] if commit.operation not in healing_tables._upkeep() -%}
        {%- do writes.append('version ' ~ commit.version ~ ' (' ~ commit.operation ~ ')') -%}
    {%- endfor -%}
    {{- return(writes) -}}
{%- endmacro %}
