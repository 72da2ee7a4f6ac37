{#- What Delta knows of a table's past, and whether its change data feed tells all of it. -#}

{#-
    What has been done to a Delta table since a version: [{version, at, operation, parameters}]; none where its history
    does not reach back so far.
-#}
{% macro _commits_since(relation, version) -%}
    {%- set commits = [] -%}
    {%- set history = run_query('describe history ' ~ relation).rows -%}
    {%- if history[0]['version'] | int < version -%} {{ return(none) }} {%- endif -%}
    {%- for row in history if row['version'] | int > version -%}
        {%- do commits.append({
            'version': row['version'] | int, 'at': row['timestamp'], 'operation': row['operation'],
            'parameters': row['operationParameters'] | string}) -%}
    {%- endfor -%}
    {%- if commits and commits | map(attribute='version') | min != version + 1 -%} {{ return(none) }} {%- endif -%}
    {{- return(commits) -}}
{%- endmacro %}

{#- Commits that leave the rows as they are. -#}
{% macro _upkeep() -%}
    {{- return([
        'OPTIMIZE', 'VACUUM START', 'VACUUM END', 'REORG', 'SET TBLPROPERTIES', 'UNSET TBLPROPERTIES', 'CHANGE COLUMN',
        'CHANGE COLUMNS', 'ADD CONSTRAINT', 'DROP CONSTRAINT', 'CLUSTER BY', 'UPGRADE PROTOCOL', 'COMPUTE STATS',
        'ADD FEATURE', 'DROP FEATURE']) -}}
{%- endmacro %}

{#- Why the change feed of a table does not tell all that has happened since a version; none if it does. -#}
{% macro _feed_gap(relation, details, version) -%}
    {%- set commits = healing_tables._commits_since(relation, version) -%}
    {%- if commits is none -%} {{ return('its history does not reach back so far') }} {%- endif -%}
    {%- set usable = healing_tables._upkeep() + ['WRITE', 'MERGE', 'UPDATE', 'DELETE', 'TRUNCATE', 'STREAMING UPDATE', 'COPY INTO', 'ADD COLUMNS'] -%}
    {%- for commit in commits -%}
        {%- if commit.operation not in usable -%}
            {{- return('it has a commit that its change feed does not tell: ' ~ commit.operation) -}}
        {%- elif 'enableChangeDataFeed' in commit.parameters -%}
            {{- return('its change feed was switched since') -}}
        {%- elif commit.operation.startswith('CHANGE COLUMN') and details.widens_types -%}
            {{- return('a column may have another type since (delta.enableTypeWidening), and its change feed cannot be read across that') -}}
        {%- endif -%}
    {%- endfor -%}
    {%- if healing_tables._is_vacuumed(commits, details) -%}
        {{- return('a VACUUM may have taken its change data: they are older than its deleted files are kept (delta.deletedFileRetentionDuration)') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}

{#-
    Whether files that the feed reads may be gone. A VACUUM takes what is older than its retention. Not every store lets
    it leave a commit, so what is older than the table's retention counts as gone.
-#}
{% macro _is_vacuumed(commits, details) -%}
    {%- set told = commits | rejectattr('operation', 'in', healing_tables._upkeep()) | map(attribute='at') | list -%}
    {%- if not told -%} {{ return(false) }} {%- endif -%}
    {%- set kept = (healing_tables._fixed_seconds([], '', details.retention) or '604800') | float -%}
    {%- if (run_query('select now() as now').rows[0]['now'] - told | min).total_seconds() > kept -%} {{ return(true) }} {%- endif -%}
    {%- for commit in commits if commit.operation == 'VACUUM START' -%}
        {%- set given = modules.re.search('specifiedRetentionMillis[^0-9]+([0-9]+)', commit.parameters)
            or modules.re.search('defaultRetentionMillis[^0-9]+([0-9]+)', commit.parameters) -%}
        {%- if (commit.at - told | min).total_seconds() >= ((given.group(1) | float) / 1000 if given else 0) -%} {{ return(true) }} {%- endif -%}
    {%- endfor -%}
    {{- return(false) -}}
{%- endmacro %}
