{% macro generate_surrogate_key(field_list) %}
    md5(concat_ws('-', {{ field_list | join(', ') }}))
{% endmacro %}
