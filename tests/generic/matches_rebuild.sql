{#- A failing row is a row that the stored table lacks ('missing'), has too many ('superfluous') or that is 'different'
    from what its model gives now; also one row that names columns that a rebuild would add, change or remove. -#}
{% test matches_rebuild(model, key_columns=none, column_name=none) %}
{%- set instead = healing_tables._not_looked_up('matches_rebuild', {'model': model}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{#- what --empty or --sample has built is no rebuild -#}
{%- if healing_tables._is_partial_run() -%} {{ return('select 1 as one from ' ~ model ~ ' where false') }} {%- endif -%}
{%- set node = healing_tables._tested_node(context.model) -%}
{%- set asked = healing_tables._asked(node) -%}
{#- what the model reads is not built -#}
{%- if asked.code.startswith('select') and asked.code.endswith(' as not_compiled') -%} {{ return(asked.code) }} {%- endif -%}
{%- if key_columns is not none -%} {%- do asked.about.update({'key_columns': healing_tables._list(key_columns)}) -%} {%- endif -%}
{%- set sides = healing_tables._compared_sides(asked, healing_tables._stored_table('matches_rebuild', asked), none, config.get('where')) -%}
select * from (
{{ healing_tables._differing(sides) }}
select
    {%- for key in sides.key_columns %}
    key_{{ loop.index }} as {{ healing_tables._id(key) }},
    {%- endfor %}
    start as {{ healing_tables._id(sides.start_name or 'start') }},
    how,
    array_join(transform({{ healing_tables._differing_columns(sides) }}, cell -> cell.column), ', ') as columns
from differing
{%- for which, names in sides.left_out.items() if which in sides.other_shape %}
union all
select {% for key in sides.key_columns %}null, {% endfor %}null, 'columns', {{ healing_tables._text(which ~ ': ' ~ names) }}
{%- endfor %}
)
{% endtest %}
