{#- Rows as JSON. -#}

{#- Options of to_json: moments in UTC, NULLs as well. As sql/values.py of the library. -#}
{% macro _json_options() -%}
    {{- return("map('timeZone', 'UTC', 'timestampFormat', concat('yyyy-MM-dd', char(39), 'T', char(39), "
        "'HH:mm:ss.SSSSSSXXX'), 'ignoreNullFields', 'false')") -}}
{%- endmacro %}
