{#-
    Run OPTIMIZE, clustered by the key, and VACUUM on a stored dimension; with `beside` also on those tables beside it
    that only grow. Print files and bytes before and after. Refused while a build of the same table is running.

    before: 112 files, 5308416 bytes  ->  OPTIMIZE ... ZORDER BY (id), VACUUM ... RETAIN 168 HOURS  ->  after: 1 files,
                                      ...
-#}
{% macro maintain(dimension, key_columns=none, retention_hours=none, allow_short_retention=false,
    build_hours=12, force=false, beside=false) -%}
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
        {%- do healing_tables._maintain_table(relation, stored, keys, hours, allow_short_retention) -%}
        {%- for name, table in (healing_tables._tables_that_grow(relation) if beside else {}).items() -%}
            {%- set found = load_relation(table) -%}
            {%- set details = healing_tables._table_details(found) if found is not none else {} -%}
            {%- set format = healing_tables._stored_format(details) if details else none -%}
            {%- if format is not none and format.has_commits -%}
                {%- do healing_tables._maintain_table(found, details, ['key'] if name in ['audit', 'key_map'] else keys
                    if name in ['change_log', 'history'] else [], healing_tables._retention([], found, details,
                    retention_hours, allow_short_retention), allow_short_retention) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {%- do healing_tables._report('maintain', relation, 'a ' ~ stored.provider
            ~ ' table has neither OPTIMIZE nor VACUUM: every build writes'
            ~ ' its files anew and empties the folder before the last one; to have fewer files, build it again, or '
            'with file_format: delta') -%}
    {%- endif -%}
{%- endmacro %}

{% macro _maintain_table(relation, details, keys, hours, allow_short) -%}
    {%- for line in healing_tables._stored_format(details).files.maintain(
        relation, details.columns, keys, details.partitions, hours, allow_short) -%}
        {%- do healing_tables._report('maintain', relation, line) -%}
    {%- endfor -%}
{%- endmacro %}

{#- The tables beside a dimension that only grow, if it has them: {change_log, history, audit, set_aside, key_map}. -#}
{% macro _tables_that_grow(relation) -%}
    {%- set tables = {} -%}
    {%- for option, suffix in {'change_log': '_changes', 'history': '_history', 'audit': '_audit'}.items() -%}
        {%- set named = healing_tables._option(option, none) -%}
        {%- do tables.update({option: healing_tables._table_named_or_beside(relation,
            named.get('table') if named is mapping else named, suffix)}) -%}
    {%- endfor -%}
    {%- do tables.update({'set_aside': healing_tables._beside(relation, '__set_aside'),
        'key_map': healing_tables._key_map_relation(relation)}) -%}
    {{- return(tables) -}}
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
