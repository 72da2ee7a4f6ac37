{#- Delta Lake: every write is a commit with a number, and the history shows what each one did. -#}

{% macro _format_delta() -%}
    {#- the log has fewer checkpoints: one takes as long as the rows of three builds; and no statistics of its columns,
        which take a third of an insert: its files are not chosen by them -#}
    {{- return({
        'name': 'delta', 'has_commits': true, 'can_shard': true, 'staging_format': 'parquet',
        'check_session': healing_tables._check_delta, 'table_id': healing_tables._delta_table_id,
        'constraints': healing_tables._delta_constraints, 'can_widen': healing_tables._delta_can_widen,
        'widen': healing_tables._delta_widen,
        'commits': {
            'newest_version': healing_tables._delta_version, 'has_ordered_versions': true,
            'newest': healing_tables._delta_newest_commits, 'since': healing_tables._delta_commits_since,
            'engine': healing_tables._delta_engine, 'has_tags': true,
            'tag_property': healing_tables._delta_tag_property, 'shows_predicates': true,
            'may_be_gone': healing_tables._may_be_vacuumed, 'before': healing_tables._delta_version_before},
        'change_feed': {
            'is_on': healing_tables._has_delta_change_feed, 'source': healing_tables._delta_change_feed,
            'gap': healing_tables._delta_change_feed_gap},
        'properties': {
            'for_columns': healing_tables._delta_properties,
            'log': {
                'delta.autoOptimize.autoCompact': 'true', 'delta.checkpointInterval': '100',
                'delta.dataSkippingNumIndexedCols': '0'},
            'key_map': {
                'delta.appendOnly': 'true', 'delta.isolationLevel': 'Serializable',
                'delta.autoOptimize.autoCompact': 'true'},
            'change_log': {'delta.isolationLevel': 'Serializable'},
            'audit': {'delta.isolationLevel': 'Serializable', 'delta.autoOptimize.autoCompact': 'true'}},
        'files': {
            'order': healing_tables._delta_order, 'kept_hours': healing_tables._delta_kept_hours,
            'maintain': healing_tables._delta_maintain, 'erase': healing_tables._delta_erase,
            'past': healing_tables._delta_past, 'all': healing_tables._delta_all_files,
            'log': healing_tables._delta_log_of_past}}) -}}
{%- endmacro %}

{#-
    Report a session without Delta as one mistake instead of Spark's stack trace: Jinja cannot catch an error, so the
    settings are checked first. `session`: see _session_settings().
-#}
{% macro _check_delta(mistakes, session) -%}
    {%- if not healing_tables._platform().has_own_settings -%} {{ return(none) }} {%- endif -%}
    {%- set missing, lines = [], [] -%}
    {%- set wanted = {
        'spark.sql.extensions': 'io.delta.sql.DeltaSparkSessionExtension',
        'spark.sql.catalog.spark_catalog': 'org.apache.spark.sql.delta.catalog.DeltaCatalog'} -%}
    {%- for name, value in wanted.items() if not session.get(name) -%}
        {%- do missing.append(name) -%}
        {%- do lines.append(name ~ ': ' ~ value) -%}
    {%- endfor -%}
    {%- if missing and 'spark.databricks.clusterUsageTags.clusterId' not in session -%}
        {%- do healing_tables._mistake(
            mistakes, 'file_format', 'a Spark session with Delta, for a Delta table', 'a session without '
            ~ (missing | join(' and ')),
            'add these settings to server_side_parameters in profiles.yml (method session) or to the server (method '
            'thrift), with the Delta jar:\n'
            ~ '             spark.jars.packages: ' ~ healing_tables._delta_jar(healing_tables._spark_version())
            ~ '\n             '
            ~ (lines | join('\n             '))
            ~ '\n             or set file_format: orc or parquet') -%}
    {%- endif -%}
{%- endmacro %}

{#- The newest jar that was tested with a version of Spark. -#}
{% macro _delta_jar(spark_version) -%}
    {%- set jars = {'3.5': '_2.12:3.3.2', '4.0': '_2.13:4.0.0', '4.1': '_2.13:4.1.0'} -%}
    {{- return('io.delta:delta-spark' ~ jars.get(spark_version.split('.')[:2] | join('.'), '_4.2_2.13:4.4.0')) -}}
{%- endmacro %}

{#- Whether the session supports Delta, also if the current model is not in Delta. A platform without SET has Delta. -#}
{% macro _has_delta() -%}
    {{- return(not healing_tables._platform().has_set
        or 'delta' in healing_tables._session_conf('spark.sql.catalog.spark_catalog') | lower) -}}
{%- endmacro %}

{% macro _delta_version(relation) -%}
    {{- return(run_query('describe history ' ~ relation ~ ' limit 1').rows[0]['version'] | int) -}}
{%- endmacro %}

{% macro _delta_version_before(version, base) -%}
    {{- return(version - 1 if version > 0 else none) -}}
{%- endmacro %}

{#- One for all: the history shows what each statement has set. -#}
{% macro _delta_tag_property(base, version) -%} {{ return('healing_tables.build') }} {%- endmacro %}

{% macro _delta_engine(relation) -%}
    {{- return(run_query('describe history ' ~ relation ~ ' limit 1').rows[0]['engineInfo']) -}}
{%- endmacro %}

{% macro _delta_table_id(relation, details) -%}
    {{- return(run_query('describe detail ' ~ relation).rows[0]['id']) -}}
{%- endmacro %}

{% macro _delta_commits_since(relation, version) -%}
    {%- set version = -1 if version is none else version -%}
    {#- usually the newest commits are enough -#}
    {%- set history = healing_tables._delta_newest_commits(relation) -%}
    {%- if history and history[-1].version > version + 1 -%}
        {%- set history = healing_tables._delta_newest_commits(relation, none) -%}
    {%- endif -%}
    {%- if history[0].version < version -%} {{ return(none) }} {%- endif -%}
    {%- set commits = history | selectattr('version', 'gt', version) | list -%}
    {{- return(none if commits and commits[-1].version != version + 1 else commits) -}}
{%- endmacro %}

{#- The newest commits; `limit` none: all. -#}
{% macro _delta_newest_commits(relation, limit=20) -%}
    {%- set commits = [] -%}
    {%- for row in run_query('describe history ' ~ relation ~ (' limit ' ~ limit if limit is not none)).rows -%}
        {%- set written = modules.re.search('numOutputRows[^0-9]+([0-9]+)', row['operationMetrics'] | string) -%}
        {%- do commits.append({
            'version': row['version'] | int, 'at': row['timestamp'], 'operation': row['operation'],
            'parameters': row['operationParameters'] | string,
            'changes_rows': row['operation'] not in healing_tables._delta_maintenance_operations(),
            'written_rows': written.group(1) | int if written else none}) -%}
    {%- endfor -%}
    {{- return(commits) -}}
{%- endmacro %}

{#- An entry of the log has minima and maxima of the rows that it adds or removes, and its conditions. So the entries
    up to the newest one that removes rows for good. -#}
{% macro _delta_log_of_past(relation) -%}
    {%- set commits = healing_tables._delta_newest_commits(relation, none) -%}
    {%- set removing = commits | selectattr('operation', 'in', ['DELETE', 'UPDATE', 'REORG']) | list -%}
    {{- return(commits | selectattr('version', 'le', removing[0].version) | list | length if removing else 0) -}}
{%- endmacro %}

{#- Operations that change no rows. -#}
{% macro _delta_maintenance_operations() -%}
    {{- return([
        'OPTIMIZE', 'VACUUM START', 'VACUUM END', 'REORG', 'SET TBLPROPERTIES', 'UNSET TBLPROPERTIES', 'CHANGE COLUMN',
        'CHANGE COLUMNS', 'ADD CONSTRAINT', 'DROP CONSTRAINT', 'CLUSTER BY', 'UPGRADE PROTOCOL', 'COMPUTE STATS',
        'ADD FEATURE', 'DROP FEATURE']) -}}
{%- endmacro %}

{% macro _has_delta_change_feed(details) -%}
    {{- return(healing_tables._property(details, 'delta.enableChangeDataFeed') | lower == 'true') -}}
{%- endmacro %}

{% macro _delta_change_feed(relation, details, version, until) -%}
    {{- return('table_changes_by_path(' ~ healing_tables._string_literal(details.location) ~ ', ' ~ (version + 1)
        ~ (', ' ~ until if until is not none else '') ~ ')') -}}
{%- endmacro %}

{% macro _delta_change_feed_gap(relation, details, version) -%}
    {%- set commits = healing_tables._delta_commits_since(relation, version) -%}
    {%- if commits is none -%} {{ return('its history does not reach back so far') }} {%- endif -%}
    {%- set usable = ['WRITE', 'MERGE', 'UPDATE', 'DELETE', 'TRUNCATE', 'STREAMING UPDATE', 'COPY INTO',
        'ADD COLUMNS'] -%}
    {%- set widens_types = healing_tables._property(details, 'delta.enableTypeWidening') | lower == 'true' -%}
    {%- for commit in commits -%}
        {%- if commit.changes_rows and commit.operation not in usable -%}
            {{- return('it has a commit that is not in its change feed: ' ~ commit.operation) -}}
        {%- elif 'enableChangeDataFeed' in commit.parameters -%}
            {{- return('its change feed was switched on or off since then') -}}
        {%- elif commit.operation.startswith('CHANGE COLUMN') and widens_types -%}
            {{- return('the type of a column may have changed since then (delta.enableTypeWidening), and its change '
                'feed cannot be read across such a change') -}}
        {%- endif -%}
    {%- endfor -%}
    {%- if healing_tables._may_be_vacuumed(commits, details) -%}
        {{- return('a VACUUM may have removed its change data, which are older than the retention of deleted files '
            '(delta.deletedFileRetentionDuration)') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}

{#-
    Whether files that the change feed reads may have been removed. A VACUUM removes files older than its retention. On
    some stores it writes no commit, so files older than the table's retention are assumed to be removed.
-#}
{% macro _may_be_vacuumed(commits, details) -%}
    {%- set moments = commits | selectattr('changes_rows') | map(attribute='at') | list -%}
    {%- if not moments -%} {{ return(false) }} {%- endif -%}
    {%- set retention = modules.re.sub('^interval +', '',
        healing_tables._property(details, 'delta.deletedFileRetentionDuration') or '7 days') -%}
    {%- set kept = (healing_tables._interval_seconds([], '', retention) or '604800') | float -%}
    {%- if (run_query('select now() as now').rows[0]['now'] - moments | min).total_seconds() > kept -%}
        {{- return(true) -}}
    {%- endif -%}
    {%- for commit in commits if commit.operation == 'VACUUM START' -%}
        {%- set given = modules.re.search('specifiedRetentionMillis[^0-9]+([0-9]+)', commit.parameters)
            or modules.re.search('defaultRetentionMillis[^0-9]+([0-9]+)', commit.parameters) -%}
        {%- if (commit.at - moments | min).total_seconds() >= ((given.group(1) | float) / 1000 if given else 0) -%}
            {{- return(true) -}}
        {%- endif -%}
    {%- endfor -%}
    {{- return(false) -}}
{%- endmacro %}

{#-
    Column mapping for names that Delta cannot write as they are, also of fields. A merge changes a few rows in many
    files; deletion vectors avoid rewriting these files.
-#}
{% macro _delta_properties(columns, merges) -%}
    {%- set properties = {'delta.enableDeletionVectors': 'true'} if merges else {} -%}
    {%- set fields = modules.re.findall('`((?:[^`]|``)*)`', columns.values() | select | join(' ')) -%}
    {%- do properties.update({'delta.columnMapping.mode': 'name'})
        if modules.re.search('[ ,;{}()\n\t=]', (columns | list + fields) | join('')) -%}
    {{- return(properties) -}}
{%- endmacro %}

{% macro _delta_constraints(relation, details) -%}
    {%- set found, prefix = {}, 'delta.constraints.' -%}
    {#- from the rows: in the text of all properties, a comma in an expression ends it #}
    {%- if prefix in (details.get('properties') or '') -%}
        {%- for property in run_query('show tblproperties ' ~ relation).rows if property[0].startswith(prefix) -%}
            {%- do found.update({property[0][prefix | length:]: property[1]}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{- return(found) -}}
{%- endmacro %}

{#- As DeltaTarget.can_widen() of the library. -#}
{% macro _delta_can_widen(stored, given) -%}
    {%- if healing_tables._spark_version().startswith('3.') -%} {#- with Delta 3.3 -#}
        {{- return(stored in ['tinyint', 'smallint'] and given in ['smallint', 'int']) -}}
    {%- endif -%}
    {%- if healing_tables._type_family(stored) == 'integer' and given.startswith('decimal(') -%}
        {%- set size = healing_tables._precision_and_scale(given) -%}
        {{- return(size[0] - size[1] >= [healing_tables._precision_and_scale(stored)[0], 10] | max) -}}
    {%- endif -%}
    {{- return(true) -}}
{%- endmacro %}

{% macro _delta_widen(relation, columns) -%}
    {%- do healing_tables._run('alter table ' ~ relation ~ ' set ' ~ healing_tables._properties_clause(
        {'delta.enableTypeWidening': 'true'})) -%}
    {%- for name, type in columns.items() -%}
        {%- do healing_tables._run('alter table ' ~ relation ~ ' alter column ' ~ healing_tables._quoted(name)
            ~ ' type ' ~ type) -%}
    {%- endfor -%}
{%- endmacro %}
