{#-
    Run OPTIMIZE, clustered by the key, and VACUUM on a stored dimension. Print files and bytes before and after.
    Refused while a build of the same table is running.

    before: 112 files, 5308416 bytes  ->  OPTIMIZE ... ZORDER BY (id), VACUUM ... RETAIN 168 HOURS  ->  after: 1 files,
                                      ...
-#}
{% macro maintain(dimension, key_columns=none, retention_hours=none, allow_short_retention=false,
    build_hours=12, force=false) -%}
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

    {%- for candidate in candidates -%}
        {%- do healing_tables._report('maintain', relation, 'a build has left ' ~ candidate.relation ~ ', '
            ~ candidate.age ~ '; ' ~ healing_tables._drop_command(candidate.may_be_running) ~ ' drops it') -%}
    {%- endfor -%}
    {%- if format is not none and format.has_commits -%}
        {%- for line in format.files.maintain(
            relation, columns, keys, stored.partitions, hours, allow_short_retention) -%}
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
    {%- set least = [168, format.files.kept_hours(relation) or 0] -%}
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
