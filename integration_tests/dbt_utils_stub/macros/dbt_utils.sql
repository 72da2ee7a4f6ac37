{#- Stands for dbt_utils where there is no copy of it: what the integration project and the examples of the docs use. -#}
{% macro generate_surrogate_key(field_list) %}
    md5(concat_ws('-', {{ field_list | join(', ') }}))
{% endmacro %}

{% macro star(from, except=[]) %}
    {%- set columns = adapter.get_columns_in_relation(from) if execute else [] -%}
    {%- for name in columns | map(attribute='name') | reject('in', except) -%}
        {{ adapter.quote(name) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
{% endmacro %}

{% test unique_combination_of_columns(model, combination_of_columns) %}
    select {{ combination_of_columns | join(', ') }}
    from {{ model }}
    group by all
    having count(*) > 1
{% endtest %}

{% test mutually_exclusive_ranges(model, lower_bound_column, upper_bound_column, partition_by, gaps) %}
    select a.*
    from {{ model }} a
    join {{ model }} b
        on a.{{ partition_by }} = b.{{ partition_by }} and a.{{ lower_bound_column }} < b.{{ lower_bound_column }}
        and b.{{ lower_bound_column }} < a.{{ upper_bound_column }}
{% endtest %}
