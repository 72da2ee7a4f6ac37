{#- A table beside a dimension that grows: its change log, its audit, its history, the rows set aside. -#}

{#- The end of a MERGE into it that adds the rows `s` which are not there. `columns`: of both, as SQL. -#}
{% macro _insert_missing(format, columns) -%}
{%- if format.commits.when_matched -%}
{{ format.commits.when_matched }}
{% endif -%}
when not matched then insert ({{ columns | join(', ') }}) values (s.{{ columns | join(', s.') }})
{%- endmacro %}

{#-
    Make it if there is none; otherwise check it, and add the columns that it lacks. Returns {is_new, added (names of
    columns), narrower ({column: type}: its type can become that one), details (see _table_details())}.

    what        the table in messages: 'change log'
    columns     {name: type}; required: those without which it is another table; same_types: false if the others may be
                stored in other types
    properties  of a new table
    order       the columns by which a new table is clustered where the format does that, or none
-#}
{% macro _ensure_table_beside(
    format, mistakes, relation, what, columns, required, properties, order=none, same_types=true
) -%}
    {%- set listed, added, wrong, narrower = [], [], [], {} -%}
    {%- set exists = healing_tables._table_exists(relation) -%}
    {%- set details = healing_tables._table_details(relation) if exists else {'columns': {}} -%}
    {%- for name, type in columns.items() -%}
        {%- do listed.append(healing_tables._quoted(name) ~ ' ' ~ type) -%}
        {%- set stored = healing_tables._type_of_column(details.columns, name) -%}
        {%- if stored is none and name not in required -%} {%- do added.append(name) -%}
        {%- elif exists and stored is not none and healing_tables._is_wider(type, stored)
            and format.can_widen(stored, type) -%}
            {%- do narrower.update({healing_tables._find_column(name, details.columns): type}) -%}
        {%- elif exists and stored != type and (same_types or name in required) -%}
            {%- do wrong.append(name) -%}
            {%- do healing_tables._mistake(mistakes, relation | string,
                'the ' ~ what ~ ' of a dimension, or no table yet',
                'a table ' ~ ('without ' ~ name if stored is none else 'whose ' ~ name ~ ' is ' ~ stored)
                ~ ', where ' ~ type ~ ' is needed', 'choose another name, or rename that table') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set properties = dict(format.properties.for_columns(columns, true), **properties) -%}
    {%- if not exists and format.commits.names_folders -%}
        {%- do healing_tables._run(healing_tables._create_in_folders(
            format, relation, healing_tables._with_partition_last(columns, 'merge_id'), ['merge_id'], properties)) -%}
    {%- elif not exists -%}
        {%- do healing_tables._run('create table if not exists ' ~ relation ~ ' (' ~ (listed | join(', ')) ~ ') using '
            ~ format.name ~ ' ' ~ healing_tables._properties_clause(properties)) -%}
        {%- do healing_tables._order_files(format, relation, healing_tables._cluster_by_key(format, order, columns))
            if order is not none -%}
    {%- elif added and not wrong -%}
        {%- set missing = [] -%}
        {%- for name in added -%} {%- do missing.append(healing_tables._quoted(name) ~ ' ' ~ columns[name]) -%}
        {%- endfor -%}
        {%- do healing_tables._run('alter table ' ~ relation ~ ' add columns (' ~ (missing | join(', ')) ~ ')') -%}
    {%- endif -%}
    {{- return({'is_new': not exists, 'added': added if exists else [], 'narrower': narrower, 'details': details}) -}}
{%- endmacro %}
