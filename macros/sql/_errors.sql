{#- Mistakes in a call are collected and raised together, before any SQL runs. -#}

{% macro _mistake(mistakes, argument, wanted, got, remedy) -%}
    {%- do mistakes.append({'argument': argument, 'wanted': wanted, 'got': got, 'remedy': remedy}) -%}
{%- endmacro %}

{#- A value as a message shows it: where the type is the mistake, '2' must not look like 2. -#}
{% macro _shown_value(value) -%}
    {{- return("the text '" ~ value ~ "'" if value is string else value | string) -}}
{%- endmacro %}

{% macro _raise_mistakes(macro_name, mistakes) -%}
    {%- if mistakes -%}
        {%- set lines = [
            'healing_tables.' ~ macro_name ~ '() in model ' ~ healing_tables._model_name() ~ ' has '
            ~ (mistakes | length) ~ (' mistake' if mistakes | length == 1 else ' mistakes')
            ~ '; nothing was written.'
        ] -%}
        {%- for mistake in mistakes -%}
            {#- the one source of a step is its arguments -#}
            {%- do lines.append('  ' ~ loop.index ~ '. ' ~ mistake.argument | replace('sources.source.', '')) -%}
            {%- do lines.append('     wanted: ' ~ mistake.wanted) -%}
            {%- do lines.append('     got:    ' ~ healing_tables._got(mistake)) -%}
            {%- do lines.append('     remedy: ' ~ mistake.remedy) -%}
        {%- endfor -%}
        {{- exceptions.raise_compiler_error(lines | join('\n')) -}}
    {%- endif -%}
{%- endmacro %}

{#- What came, also where it is an empty text. -#}
{% macro _got(mistake) -%}
    {{- return(mistake.got if mistake.got | string | trim else "'" ~ mistake.got ~ "'") -}}
{%- endmacro %}

{#- In an operation or an inline query there is no model to name. -#}
{% macro _model_name() -%}
    {%- set is_named = model is defined and model is mapping and model.name and model.get('resource_type') != 'macro' -%}
    {{- return(model.name if is_named else '(inline)') -}}
{%- endmacro %}

{#-
    A session without Delta, in one mistake instead of Spark's stack trace: Jinja cannot catch an error, so the settings are looked at
    before. Only on connections whose settings are the user's own; other vendors bring Delta in their own way.
-#}
{% macro _check_delta(mistakes) -%}
    {#- a cluster or an endpoint is named on Databricks only -#}
    {%- if adapter.type() != 'spark' or target.cluster or target.endpoint or 'healing_tables has Delta' in graph -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set missing, lines = [], [] -%}
    {%- set wanted = {
        'spark.sql.extensions': 'io.delta.sql.DeltaSparkSessionExtension',
        'spark.sql.catalog.spark_catalog': 'org.apache.spark.sql.delta.catalog.DeltaCatalog'} -%}
    {%- for name, value in wanted.items() if healing_tables._setting(name) in ['<undefined>', 'builtin'] -%}
        {%- do missing.append(name) -%}
        {%- do lines.append(name ~ ': ' ~ value) -%}
    {%- endfor -%}
    {%- if missing and healing_tables._setting('spark.databricks.clusterUsageTags.clusterId') == '<undefined>' -%}
        {%- do healing_tables._mistake(
            mistakes, 'file_format', 'a Spark session with Delta, for a Delta table', 'a session without ' ~ (missing | join(' and ')),
            'add these settings to server_side_parameters in profiles.yml (method session) or to the server (method thrift), with the Delta jar:\n'
            ~ '             spark.jars.packages: io.delta:delta-spark_4.2_2.13:4.4.0\n             ' ~ (lines | join('\n             '))
            ~ '\n             or set file_format: parquet (healing_table only)') -%}
    {%- else -%} {%- do graph.update({'healing_tables has Delta': true}) -%}
    {%- endif -%}
{%- endmacro %}

{#- Options nobody knows, each with the ones that exist. -#}
{% macro _check_options(mistakes, argument, given, known) -%}
    {%- for option in given if option not in known -%}
        {%- do healing_tables._mistake(
            mistakes, argument ~ '.' ~ option, 'one of ' ~ (known | join(', ')), option, 'correct or remove it') -%}
    {%- endfor -%}
{%- endmacro %}
