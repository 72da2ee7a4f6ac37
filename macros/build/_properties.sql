{#- Set comments and properties of a table only if they differ: setting an equal value would be a commit. -#}

{#- Spark cannot change the comment of a partition column of parquet and ORC; it is set when the table is created. -#}
{% macro _set_comments(target) -%}
    {%- if not config.persist_relation_docs() and not config.persist_column_docs() -%} {{ return(none) }} {%- endif -%}
    {%- set stored = healing_tables._stored_comments(target) -%}
    {%- if config.persist_relation_docs() and model.description and model.description != stored.comment -%}
        {%- do healing_tables._run('comment on table ' ~ target ~ ' is ' ~ healing_tables._text(model.description)) -%}
    {%- endif -%}
    {%- set fixed = [] if healing_tables._format().has_commits else stored.partitions -%}
    {%- for name in stored.columns if name not in fixed -%}
        {%- set comment = healing_tables._column_comment(name) -%}
        {%- if comment and comment != stored.columns[name] -%}
            {%- do healing_tables._run('alter table ' ~ target ~ ' alter column ' ~ healing_tables._id(name)
                ~ ' comment ' ~ healing_tables._text(comment)) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- The comments of a table as {columns: {name: comment}, partitions (columns), comment}. -#}
{% macro _stored_comments(target) -%}
    {%- set stored = {'columns': {}, 'partitions': [], 'comment': '', 'section': ''} -%}
    {%- for row in run_query('describe table extended ' ~ target).rows -%}
        {#- sections on partitions and the table follow the columns; their titles have no type -#}
        {%- if not row[1] -%} {%- do stored.update({'section': row[0] or ' '}) -%}
        {%- elif not stored.section -%}
            {#- a column named null is read as NULL -#}
            {%- do stored.columns.update({('null' if row[0] is none else row[0] | string): row[2] or ''}) -%}
        {%- elif stored.section == '# Partition Information' -%} {%- do stored.partitions.append(row[0]) -%}
        {%- elif row[0] == 'Comment' -%} {%- do stored.update({'comment': row[1]}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(stored) -}}
{%- endmacro %}

{#- `spec`: see _check_property(); none for a table without one. Other properties of a table without commits are its
    location's. `known`: the properties of the table, as one string (see _table_details), or none: they are looked
    up. -#}
{% macro _set_properties(format, target, spec=none, known=none) -%}
    {%- set wanted = healing_tables._configured_properties(format) if format.has_commits else {} -%}
    {%- if spec is not none -%} {%- do wanted.update({'healing_tables.spec': spec}) -%} {%- endif -%}
    {%- if not wanted -%} {{ return(none) }} {%- endif -%}
    {%- set missing = [] -%}
    {%- for name, value in wanted.items() if known is none or not ('[' ~ name ~ '=' ~ value in known
        or ',' ~ name ~ '=' ~ value in known) -%}
        {%- do missing.append(name) -%}
    {%- endfor -%}
    {%- if not missing -%} {{ return(none) }} {%- endif -%}
    {%- set stored = {} -%}
    {%- for row in run_query('show tblproperties ' ~ target).rows -%}
        {%- do stored.update({row[0]: row[1]}) -%}
    {%- endfor -%}
    {%- set changes = {} -%}
    {%- for name, value in wanted.items() if stored.get(name) | string != value | string -%}
        {%- do changes.update({name: value}) -%}
    {%- endfor -%}
    {%- do healing_tables._run('alter table ' ~ target ~ ' set ' ~ healing_tables._properties_clause(changes))
        if changes -%}
{%- endmacro %}
