{#- Conditions that a user writes as SQL text: `where`, `deleted_when`, `heal_where`. -#}

{#- A condition that a parenthesis can follow: a line comment at its end would hide it. -#}
{% macro _close_line_comment(condition) -%}
    {{- return(condition ~ '\n' if condition is string and '--' in condition else condition) -}}
{%- endmacro %}

{#- Whether a condition depends on other rows than its own, or on the time at which it is evaluated. -#}
{% macro _reads_beyond_row(condition,
    words='select|now|curdate|current_date|current_timestamp|localtimestamp|unix_timestamp|rand|randn|random|uuid') -%}
    {%- set code = modules.re.sub("'[^']*'|`[^`]*`", '', condition or '') -%}
    {{- return(modules.re.search('(?i)\\b(' ~ words ~ ')\\b', code) is not none) -}}
{%- endmacro %}

{#- Whether a SQL expression names a column; quoted text, functions and typed literals (date '...') do not count. -#}
{% macro _mentions_column(expression, column) -%}
    {%- if not expression -%} {{ return(false) }} {%- endif -%}
    {%- set bare = modules.re.sub("'(?:[^'\\\\]|\\\\.)*'" ~ '|"(?:[^"\\\\]|\\\\.)*"', "''", expression) -%}
    {%- if healing_tables._quoted(column) | lower in bare | lower -%} {{ return(true) }} {%- endif -%}
    {{- return(modules.re.search('(?<![\\w`])' ~ modules.re.escape(column | lower) ~ "(?![\\w`])(?!\\s*\\()(?!\\s*'')",
        bare | lower) is not none) -}}
{%- endmacro %}

{#- A query for use in parentheses, without a final semicolon; the line break ends a comment in its last line. -#}
{% macro _as_subquery(query) -%}
    {{- return(modules.re.sub(';\\s*$', '', query) ~ '\n') -}}
{%- endmacro %}
