{#- Set comments and properties of a table only if they differ: setting an equal value would be a commit. -#}

{#- Spark cannot change the comment of a partition column of parquet and ORC; it is set when the table is created. -#}
{% macro _set_comments(target) -%}
    {%- if not config.persist_relation_docs() and not config.persist_column_docs() -%} {{ return(none) }} {%- endif -%}
    {%- set stored = healing_tables._table_details(target) -%}
    {%- if config.persist_relation_docs() and model.description and model.description != stored.comment -%}
        {%- do healing_tables._run('comment on table ' ~ target ~ ' is '
            ~ healing_tables._string_literal(model.description)) -%}
    {%- endif -%}
    {%- set fixed = [] if healing_tables._format().has_commits else stored.partitions -%}
    {%- for name, stored_comment in stored.comments.items() if name not in fixed -%}
        {%- set comment = healing_tables._column_comment(name) -%}
        {%- if comment and comment != stored_comment -%}
            {%- do healing_tables._run('alter table ' ~ target ~ ' alter column ' ~ healing_tables._quoted(name)
                ~ ' comment ' ~ healing_tables._string_literal(comment)) -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- `spec`: see _check_property(); none for a table without one. Other properties of a table without commits are its
    location's. `properties_text`: the properties of the table, as one string (see _table_details), or none: they
    are looked up. -#}
{% macro _set_properties(format, target, spec=none, properties_text=none) -%}
    {%- set wanted = healing_tables._configured_properties(format) if format.has_commits else {} -%}
    {%- if spec is not none -%} {%- do wanted.update({'healing_tables.spec': spec}) -%} {%- endif -%}
    {%- if not wanted -%} {{ return(none) }} {%- endif -%}
    {%- set missing = [] -%}
    {%- for name, value in wanted.items() if properties_text is none
        or not ('[' ~ name ~ '=' ~ value in properties_text or ',' ~ name ~ '=' ~ value in properties_text) -%}
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
