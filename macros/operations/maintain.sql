{#-
    Run OPTIMIZE, clustered by the key, and VACUUM on a stored dimension. Print files and bytes before and after.
    Refused while a build of the same table is running.

    before: 112 files, 5308416 bytes  ->  OPTIMIZE ... ZORDER BY (id), VACUUM ... RETAIN 168 HOURS  ->  after: 1 files,
                                      ...
-#}
{% macro maintain(dimension, key_columns=none, retention_hours=none, allow_short_retention=false,
    drop_candidates=false, build_hours=12, force=false) -%}
    {%- set table = healing_tables._operation_table('maintain', dimension) -%}
    {%- set relation = table.relation -%}
    {%- set stored = healing_tables._table_details(relation) -%}
    {%- set columns = healing_tables._columns_of(relation) -%}
    {%- set spec = healing_tables._spec_of_model(table.node) or {} -%}
    {%- set keys = healing_tables._stored_keys(spec, {'key_columns': key_columns}) -%}
    {%- set mistakes = [] -%}
    {%- if stored.get('provider') is none -%}
        {%- do healing_tables._mistake(mistakes, 'dimension', 'a table', relation ~ ', a view',
            'maintain the tables that it reads') -%}
    {%- endif -%}
    {%- do healing_tables._check_columns(mistakes, 'key_columns', keys, relation | string, columns) -%}
    {%- set hours = healing_tables._retention(mistakes, relation, stored, retention_hours, allow_short_retention) -%}
    {%- set format = healing_tables._stored_format(stored) -%}
    {%- set candidates = healing_tables._candidates_of(relation, format, build_hours) -%}
    {%- do healing_tables._check_no_build(mistakes, candidates, build_hours, force) -%}
    {%- do healing_tables._raise_mistakes('maintain', mistakes) -%}

    {%- do healing_tables._tidy_candidates(relation, format, candidates, drop_candidates) -%}
    {%- if format is not none and format.has_commits -%}
        {%- for line in format.maintain(relation, columns, keys, stored.partitions, hours, allow_short_retention) -%}
            {%- do healing_tables._report('maintain', relation, line) -%}
        {%- endfor -%}
    {%- else -%}
        {%- do healing_tables._report('maintain', relation, 'a ' ~ stored.provider
            ~ ' table has neither OPTIMIZE nor VACUUM: every build writes'
            ~ ' its files anew and empties the folder before the last one; to have fewer files, build it again, or '
            'with file_format: delta') -%}
    {%- endif -%}
{%- endmacro %}

{#- How long VACUUM keeps old files: a week, or the table's own setting if that is longer. -#}
{% macro _retention(mistakes, relation, stored, asked, allow_short) -%}
    {%- set format = healing_tables._stored_format(stored) -%}
    {%- if format is none or not format.has_commits -%} {{ return(none) }} {%- endif -%}
    {%- set least = [168, format.kept_hours(relation) or 0] -%}
    {%- if asked is none -%} {{ return(least | max) }} {%- endif -%}
    {%- if asked is not number or asked is boolean or asked < 0 -%}
        {%- do healing_tables._mistake(mistakes, 'retention_hours', 'a number of hours',
            healing_tables._display_value(asked), 'leave it out for ' ~ (least | max)) -%}
    {%- elif asked < least | max and not allow_short -%}
        {%- do healing_tables._mistake(
            mistakes, 'retention_hours', 'at least ' ~ (least | max)
            ~ ' hours: running readers and writers, and time travel, need the old files', asked,
            'leave it out; or, if nobody uses the table, add allow_short_retention: true') -%}
    {%- endif -%}
    {{- return(asked) -}}
{%- endmacro %}

{#- Candidates of other runs, beside the table or as branches of it: {relation, branch (name, or none), age (text),
    is_young}. A table without rows has no file that shows its age: it was refused. -#}
{% macro _candidates_of(relation, format, build_hours) -%}
    {%- set found = [] -%}
    {%- for name in healing_tables._tables_of_other_runs(relation, healing_tables._tables_beside(relation)) -%}
        {%- set candidate = api.Relation.create(schema=relation.schema, identifier=name, type='table') -%}
        {%- set age = run_query('select (unix_micros(now()) - ' ~ (format or healing_tables._no_format()).written_at(
            candidate) ~ ') / 3600000000 as hours').rows[0]['hours'] -%}
        {%- do found.append({
            'relation': candidate, 'branch': none,
            'age': 'without rows' if age is none else '%.1f hours old' | format(age | float),
            'is_young': age is not none and age | float < build_hours}) -%}
    {%- endfor -%}
    {%- for branch in format.branches(relation) if format is not none -%}
        {%- do found.append({
            'relation': 'branch ' ~ branch.name, 'branch': branch.name,
            'age': 'without a commit of its own' if branch.hours is none else '%.1f hours old' | format(branch.hours),
            'is_young': branch.hours is none or branch.hours < build_hours}) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- A running build is detected by its candidate, once that is written. -#}
{% macro _check_no_build(mistakes, candidates, build_hours, force) -%}
    {%- for candidate in candidates if candidate.is_young and not force -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'no running build: no candidate younger than ' ~ build_hours
            ~ ' hours (build_hours)',
            candidate.relation ~ ', ' ~ candidate.age,
            'wait for that build; if it has ended (a refused build leaves its candidate), drop the candidate or add '
            'force: true') -%}
    {%- endfor -%}
{%- endmacro %}

{#- Clean up what builds have left. A branch is always dropped: readers do not see it. -#}
{% macro _tidy_candidates(relation, format, candidates, drop_candidates) -%}
    {%- for candidate in candidates -%}
        {%- if candidate.branch is not none -%}
            {%- do format.drop_branch(relation, candidate.branch) -%}
            {%- do healing_tables._report('maintain', relation, 'dropped the ' ~ candidate.relation ~ ', '
                ~ candidate.age) -%}
        {%- elif drop_candidates -%}
            {%- do healing_tables._run('drop table if exists ' ~ candidate.relation) -%}
            {%- do healing_tables._report('maintain', relation, 'dropped ' ~ candidate.relation ~ ', '
                ~ candidate.age) -%}
        {%- else -%}
            {%- do healing_tables._report('maintain', relation, 'a build has left ' ~ candidate.relation
                ~ '; drop_candidates: true drops it') -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}
