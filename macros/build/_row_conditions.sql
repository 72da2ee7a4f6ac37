{#- The conditions, besides the checks, that each row of a candidate must satisfy to be stored. -#}

{#-
    [{sql (over the columns of the candidate, true for a good row), argument, wanted, got ({rows}: how many),
    remedy; of_all: it reads other rows, too}]: the constraints of a contract and of the stored table, partition columns
    whose values are not stored exactly, and surrogate keys that are not unique.
-#}
{% macro _row_conditions(run, columns) -%}
    {%- set contract = healing_tables._contract_conditions() -%}
    {{- return(healing_tables._partition_conditions(run, columns) + contract
        + (healing_tables._stored_constraints(run) if not contract else [])
        + healing_tables._unique_key_conditions(run.settings.metadata)) -}}
{%- endmacro %}

{#-
    Partition values are strings in folder names. A timestamp is written in the session's time zone, and an empty string
    is read as NULL, so every build would find a difference.
-#}
{% macro _partition_conditions(run, columns) -%}
    {%- set conditions = [] -%}
    {%- set mistakes = [] -%}
    {%- set remedy = 'partition by a date or another column' -%}
    {%- for column in healing_tables._as_list(config.get('partition_by')) -%}
        {%- set type = healing_tables._type_of_column(columns, column) -%}
        {%- if type == 'timestamp' -%}
            {%- do healing_tables._mistake(
                mistakes, 'partition_by', 'columns whose values a partition stores exactly',
                column ~ ', a timestamp: its text follows the time zone of the session', remedy) -%}
        {%- elif type is not none and healing_tables._type_family(type) == 'text' -%}
            {%- do conditions.append({
                'sql': 'coalesce(' ~ healing_tables._quoted(column) ~ " <> '', true)",
                'argument': 'partition_by', 'wanted': 'columns whose values a partition stores exactly',
                'got': column ~ ', which is the empty text in {rows}: a partition stores it as NULL',
                'remedy': remedy}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {{- return(conditions) -}}
{%- endmacro %}

{#- The constraints that dbt-spark gives a table, which another table may not have yet. -#}
{% macro _contract_conditions() -%}
    {%- set conditions = [] -%}
    {%- if not config.get('contract').enforced -%} {{ return(conditions) }} {%- endif -%}
    {%- for constraint in model.constraints if constraint.type == 'check' -%}
        {%- do conditions.append({'sql': '(' ~ constraint.expression ~ ')', 'argument': 'constraints',
            'wanted': 'rows that satisfy ' ~ (constraint.name or 'a check') ~ ': ' ~ constraint.expression}) -%}
    {%- endfor -%}
    {%- for column in model.columns.values() -%}
        {%- for constraint in column.constraints if constraint.type == 'not_null' -%}
            {%- do conditions.append({'sql': healing_tables._quoted(column.name) ~ ' is not null',
                'argument': 'columns.' ~ column.name, 'wanted': 'no NULL, as its constraint requires'}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for condition in conditions -%}
        {%- do condition.update({'got': '{rows} in violation', 'remedy': 'correct the sources, or the constraint'}) -%}
    {%- endfor -%}
    {{- return(conditions) -}}
{%- endmacro %}

{#- The constraints of the stored table. It would refuse the rows, too, but only when they are published: a merge has
    them in its change log then. -#}
{% macro _stored_constraints(run) -%}
    {%- set conditions = [] -%}
    {%- set format = healing_tables._stored_format(run.stored) if not should_full_refresh() else none -%}
    {%- set found = format.constraints(run.existing, run.stored) if format is not none else none -%}
    {%- for name, expression in (found or {}).items() -%}
        {%- do conditions.append({'sql': '(' ~ expression ~ ')', 'argument': name,
            'wanted': 'rows that satisfy this constraint of the table: ' ~ expression, 'got': '{rows} in violation',
            'remedy': 'correct the sources, or drop the constraint'}) -%}
    {%- endfor -%}
    {{- return(conditions) -}}
{%- endmacro %}
