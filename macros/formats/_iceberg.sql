{#-
    Apache Iceberg. A version is a snapshot; snapshots have ids without an order, and parents. A build writes to its own
    branch of the table, and one fast_forward publishes it, but only if main is still at the snapshot from which the
    branch started.

    main                 7 -- 3                     7 -- 3 -- 9
    healing_1a2b..            `-- 9            ->
-#}

{% macro _format_iceberg() -%}
    {%- set merged = {'commit.retry.num-retries': '20', 'write.metadata.delete-after-commit.enabled': 'true'} -%}
    {%- set appended = dict(merged, **{'write.metadata.previous-versions-max': '20'}) -%}
    {{- return({
        'name': 'iceberg', 'has_commits': true, 'has_branches': true, 'staging_format': 'iceberg',
        'check_session': healing_tables._check_iceberg, 'stored_type': healing_tables._iceberg_type,
        'can_widen': healing_tables._iceberg_can_widen, 'widen': healing_tables._iceberg_widen,
        'commits': {
            'newest_version': healing_tables._iceberg_version, 'newest': healing_tables._iceberg_newest_commits,
            'since': healing_tables._iceberg_commits_since, 'engine': healing_tables._iceberg_engine,
            'begin': healing_tables._iceberg_begin_commit, 'end': healing_tables._iceberg_end_commit,
            'has_tags': true, 'tag_property': healing_tables._iceberg_tag_property,
            'renew': healing_tables._iceberg_renew, 'before': healing_tables._iceberg_version_before,
            'when_matched': 'when matched and false then delete'},
        'branches': {'leftovers': healing_tables._iceberg_branches, 'drop': healing_tables._iceberg_drop_branch},
        'change_feed': {
            'is_on': healing_tables._has_iceberg_change_feed, 'source': healing_tables._iceberg_change_feed,
            'gap': healing_tables._iceberg_change_feed_gap},
        'properties': {'for_columns': healing_tables._iceberg_properties, 'log': appended, 'key_map': appended,
            'change_log': merged, 'audit': merged},
        'files': {
            'written_at': healing_tables._iceberg_written_at, 'order': healing_tables._iceberg_order,
            'kept_hours': healing_tables._iceberg_kept_hours, 'maintain': healing_tables._iceberg_maintain,
            'erase': healing_tables._iceberg_erase, 'past': healing_tables._iceberg_past,
            'all': healing_tables._iceberg_all_snapshots}}) -}}
{%- endmacro %}

{#- Report a session without Iceberg as one mistake instead of Spark's stack trace. -#}
{% macro _check_iceberg(mistakes, session) -%}
    {%- if not healing_tables._platform().has_own_settings -%} {{ return(none) }} {%- endif -%}
    {%- set catalog = run_query('select current_catalog() as catalog').rows[0]['catalog'] -%}
    {%- set missing = [] -%}
    {%- do missing.append('its extension') if 'IcebergSparkSessionExtensions' not in
        session.get('spark.sql.extensions', '') -%}
    {%- do missing.append('a catalog of Iceberg, which ' ~ catalog ~ ' is not') if 'iceberg' not in
        session.get('spark.sql.catalog.' ~ catalog, '') | lower -%}
    {%- if missing -%}
        {%- do healing_tables._mistake(
            mistakes, 'file_format', 'a Spark session with Iceberg, for an Iceberg table', 'a session without '
            ~ (missing | join(' and ')),
            'add these settings to server_side_parameters in profiles.yml (method session) or to the server (method '
            'thrift), with the jar for your Spark:\n'
            ~ '             spark.jars.packages: org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0\n'
            ~ '             spark.sql.extensions: org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions\n'
            ~ '             spark.sql.catalog.lake: org.apache.iceberg.spark.SparkCatalog, and its type and place\n'
            ~ '             spark.sql.defaultCatalog: lake') -%}
    {%- endif -%}
{%- endmacro %}

{#- In an Iceberg catalog, a table `using parquet` would be an Iceberg table with parquet files. -#}
{% macro _check_not_iceberg(mistakes, session) -%}
    {%- if not healing_tables._platform().has_own_settings -%} {{ return(none) }} {%- endif -%}
    {%- set catalog = session.get('spark.sql.defaultCatalog', 'spark_catalog') -%}
    {%- if session.get('spark.sql.catalog.' ~ catalog) == 'org.apache.iceberg.spark.SparkCatalog' -%}
        {%- do healing_tables._mistake(
            mistakes, 'file_format', 'iceberg, since that is what the catalog ' ~ catalog ~ ' holds',
            config.get('file_format'), 'set file_format: iceberg') -%}
    {%- endif -%}
{%- endmacro %}

{#-
    The current snapshot of main; none for a table without a write. A session may cache the table for half a minute.
-#}
{% macro _iceberg_version(relation) -%}
    {%- do healing_tables._run('refresh table ' ~ relation) -%}
    {%- set found = run_query("show tblproperties " ~ relation ~ " ('current-snapshot-id')").rows[0][1] -%}
    {{- return(found | int if found != 'none' else none) -}}
{%- endmacro %}

{% macro _iceberg_engine(relation) -%}
    {{- return(run_query("select summary['iceberg-version'] as engine from " ~ relation
        ~ '.snapshots order by committed_at desc limit 1').rows[0]['engine']) -}}
{%- endmacro %}

{#- Iceberg has no tinyint, smallint, char or varchar. A field name is followed by a colon. -#}
{% macro _iceberg_type(type) -%}
    {%- set type = modules.re.sub('(^|[:<,])(tinyint|smallint)(?=[,>]|$)', '\\1int', type) -%}
    {{- return(modules.re.sub('(^|[:<,])(char|varchar)[(][0-9]+[)](?=[,>]|$)', '\\1string', type)) -}}
{%- endmacro %}

{#- Within each file: to sort all rows of a build would cost it another shuffle. -#}
{% macro _iceberg_order(columns) -%} {{ return('write locally ordered by ' ~ columns) }} {%- endmacro %}

{#- A merge changes a few rows in many files; merge-on-read avoids rewriting these files. -#}
{% macro _iceberg_properties(columns, merges) -%}
    {{- return({'write.merge.mode': 'merge-on-read'} if merges else {}) -}}
{%- endmacro %}

{#- Create the branch of this run at a snapshot of main. Returns the table name to write to. -#}
{% macro _iceberg_begin_commit(relation, version) -%}
    {%- set branch = healing_tables._iceberg_own_branch() -%}
    {%- do healing_tables._iceberg_alter(relation, 'create or replace branch ' ~ branch
        ~ (' as of version ' ~ version if version is not none)) -%}
    {{- return(relation ~ '.branch_' ~ branch) -}}
{%- endmacro %}

{% macro _iceberg_own_branch() -%} {{ return('healing_' ~ invocation_id | replace('-', '')) }} {%- endmacro %}

{#-
    Publish the branch of this run, unless main has moved: then return the conflicts, as strings. Iceberg rejects a
    fast_forward if another writer changes anything in the table at the same time; it is then retried. `tag`: of the
    commit, or none.
-#}
{% macro _iceberg_end_commit(relation, version, tag=none) -%}
    {%- set branch = healing_tables._iceberg_own_branch() -%}
    {%- set head = healing_tables._iceberg_head(relation, branch) if tag is not none else none -%}
    {%- set earlier = healing_tables._iceberg_set_tag(relation, head, tag) if head is not none else [] -%}
    {%- set fast_forward = healing_tables._iceberg_call(relation, 'fast_forward') ~ ", 'main', "
        ~ healing_tables._string_literal(branch) ~ ')' -%}
    {%- set outcome = namespace(conflicts=none, main=none) -%}
    {%- for attempt in range(healing_tables._iceberg_attempts()) -%}
        {%- if outcome.conflicts is none -%}
            {%- set outcome.main = healing_tables._iceberg_version(relation) -%}
            {%- if outcome.main != version -%}
                {#- a fast_forward that failed with an error may have succeeded: main is then at the branch's head -#}
                {%- set is_published = attempt > 0
                    and outcome.main == healing_tables._iceberg_head(relation, branch) -%}
                {%- set outcome.conflicts = [] if is_published else ['version ' ~ outcome.main] -%}
            {%- elif healing_tables._iceberg_try(fast_forward) is none -%} {%- set outcome.conflicts = [] -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {#- the cause is another error: this raises it -#}
    {%- do healing_tables._run(fast_forward) if outcome.conflicts is none -%}
    {%- do healing_tables._iceberg_drop_branch(relation, branch) -%}
    {#- a run that has set one of these, too, started before this commit, and cannot publish any more -#}
    {%- do healing_tables._iceberg_alter(relation, 'unset tblproperties if exists (' ~ (earlier | join(', ')) ~ ')')
        if earlier | length > 3 and not outcome.conflicts -%}
    {{- return(outcome.conflicts or []) -}}
{%- endmacro %}

{% macro _iceberg_head(relation, branch) -%}
    {%- set found = run_query('select snapshot_id from ' ~ relation ~ '.refs where name = '
        ~ healing_tables._string_literal(branch)).rows -%}
    {{- return(found[0]['snapshot_id'] | int if found else none) -}}
{%- endmacro %}

{#- The names of _iceberg_own_branch(); those of merges, healing_merge_<...>, do not match. -#}
{% macro _iceberg_branch_pattern() -%} {{ return('healing_[0-9a-f]{32}') }} {%- endmacro %}

{#- Branches that builds have left, see _format.sql; `hours` is none for one without a commit of its own. -#}
{% macro _iceberg_branches(relation) -%}
    {%- set found = [] -%}
    {%- for row in run_query(
        "select r.name, case when h.snapshot_id is null then (unix_micros(now()) - unix_micros(s.committed_at)) "
        ~ "/ 3600000000 end as hours from " ~ relation ~ ".refs as r left join " ~ relation
        ~ ".snapshots as s on r.snapshot_id = s.snapshot_id left join " ~ relation
        ~ ".history as h on r.snapshot_id = h.snapshot_id "
        ~ "where r.type = 'BRANCH' and r.name rlike '^" ~ healing_tables._iceberg_branch_pattern()
        ~ "$' order by r.name").rows -%}
        {%- do found.append({'name': row['name'], 'id': row['name'].removeprefix('healing_'),
            'hours': row['hours'] | float if row['hours'] is not none else none}) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{% macro _iceberg_drop_branch(relation, branch) -%}
    {%- do healing_tables._iceberg_alter(relation, 'drop branch if exists '
        ~ healing_tables._quoted(branch)) -%}
{%- endmacro %}

{#- It gives a new table a snapshot, and the newest snapshot of any table all columns: so that it can be read by
    version. -#}
{% macro _iceberg_renew(relation) -%}
    {{- return('insert into ' ~ relation ~ ' select * from ' ~ relation ~ ' where false') -}}
{%- endmacro %}

{#- A build commits only if nothing has changed since its base. -#}
{% macro _iceberg_version_before(version, base) -%} {{ return(base) }} {%- endmacro %}

{#- As IcebergTarget.can_widen() of the library. -#}
{% macro _iceberg_can_widen(stored, given) -%}
    {%- if 'decimal(' in stored ~ given -%}
        {{- return('decimal(' in stored and 'decimal(' in given and healing_tables._precision_and_scale(stored)[1]
            == healing_tables._precision_and_scale(given)[1]) -}}
    {%- endif -%}
    {{- return(true) -}}
{%- endmacro %}

{% macro _iceberg_widen(relation, columns) -%}
    {%- for name, type in columns.items() -%}
        {%- do healing_tables._iceberg_alter(relation, 'alter column ' ~ healing_tables._quoted(name) ~ ' type ' ~ type)
            -%}
    {%- endfor -%}
{%- endmacro %}
