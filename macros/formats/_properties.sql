{#- Table properties: as clauses of statements, and as a table has them. -#}

{% macro _properties_clause(properties) -%}
    {%- set parts = [] -%}
    {%- for name, value in properties.items() -%}
        {%- do parts.append(healing_tables._string_literal(name) ~ ' = ' ~ healing_tables._string_literal(value)) -%}
    {%- endfor -%}
    {{- return('tblproperties (' ~ (parts | join(', ')) ~ ')' if parts else '') -}}
{%- endmacro %}

{#- The configured properties, and those that the format needs for these columns. -#}
{% macro _tblproperties(format, columns, more) -%}
    {{- return(healing_tables._properties_clause(dict(healing_tables._configured_properties(format, columns),
        **more))) -}}
{%- endmacro %}

{% macro _configured_properties(format, columns={}) -%}
    {{- return(dict(
        format.properties.for_columns(columns, config.get('materialized') == 'healing_merge'
            or (config.get('materialized') == 'healing_table' and (healing_tables._option('mode', none) == 'heal'
                or healing_tables._option('publish', none) != 'overwrite'))),
        **(config.get('tblproperties') or {}))) -}}
{%- endmacro %}

{#- The value of one property, or none. -#}
{% macro _property(details, name) -%}
    {%- set match = modules.re.search('(?i)[\\[,]' ~ modules.re.escape(name) ~ '=([^],]+)', details.get('properties')
        or '') -%}
    {{- return(match.group(1) if match else none) -}}
{%- endmacro %}
