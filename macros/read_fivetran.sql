{#-
    A table of Fivetran in history mode as a change log. Its periods include their last millisecond: a period that has
    ended ends a millisecond later, unless another one of the key starts there.

    id | city | _fivetran_start | _fivetran_end            | _fivetran_active      id | _changed_at | _is_deleted
    1  | Oslo | 2024-01-01      | 2024-02-29 23:59:59.999  | false             ->  1  | 2024-01-01  | false
                                                                                   1  | 2024-03-01  | true
-#}
{% macro read_fivetran(relation, columns=none, column_names={}) -%}
{%- set instead = healing_tables._placeholder_select('read_fivetran', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes, needed = [], ['_fivetran_start', '_fivetran_end', '_fivetran_active'] -%}
{%- set found = healing_tables._columns_of_feed(mistakes, relation, columns, needed) -%}
{%- set at = "if(starts, _fivetran_start, _fivetran_end + interval '0.001' second)" -%}
{{ healing_tables._read_feed('read_fivetran', mistakes, relation, found, columns, column_names, {
    'needed': needed, 'hidden': '_fivetran_synced|_fivetran_batch', 'at': at, 'is_deleted': 'not starts',
    'sequence': 'struct(' ~ at ~ ' as at, if(starts, 1, 0) as part)',
    'pieces': 'lateral view explode(if(coalesce(_fivetran_active, false), array(true), array(true, false))) '
        ~ 'pieces as starts'}) }}
{%- endmacro %}
