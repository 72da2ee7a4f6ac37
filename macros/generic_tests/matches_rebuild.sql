{#- A failing row is a row that is 'missing' from the stored table, 'superfluous' in it, or 'different' from what
    its model returns now; also one row that lists columns that a rebuild would add, change or remove. -#}
{% test matches_rebuild(model, key_columns=none, column_name=none) %}
{%- set instead = healing_tables._placeholder_select('matches_rebuild', {'model': model}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{#- what --empty or --sample has built is no rebuild -#}
{%- if healing_tables._is_partial_run() -%} {{ return('select 1 as one from ' ~ model ~ ' where false') }} {%- endif -%}
{#- dbt gives a test only the macros that it calls: these are the ones that its model may call -#}
{%- if false -%}
    {%- do healing_tables.dimension() -%}
    {%- do healing_tables.effectivity() -%}
    {%- do healing_tables.snapshot_effectivity() -%}
    {%- do healing_tables.period_effectivity() -%}
    {%- do healing_tables.time_slices() -%}
    {%- do healing_tables.unified_timeline() -%}
    {%- do healing_tables.compress() -%}
    {%- do healing_tables.key_hash() -%}
    {%- do healing_tables.row_hash() -%}
    {%- do healing_tables.set_aside() -%}
    {%- do healing_tables.as_of() -%}
    {%- do healing_tables.current_versions() -%}
    {%- do healing_tables.versions_at() -%}
    {%- do healing_tables.changes_between() -%}
{%- endif -%}
{%- set node = healing_tables._tested_node(healing_tables._current_model()) -%}
{%- set rendering = healing_tables._render_model(node) -%}
{#- what the model reads is not built -#}
{%- if rendering.code.startswith('select') and rendering.code.endswith(' as not_compiled') -%}
    {{- return(rendering.code) -}}
{%- endif -%}
{%- if key_columns is not none -%}
    {%- do rendering.settings.update({'key_columns': healing_tables._as_list(key_columns)}) -%}
{%- endif -%}
{%- set inputs = healing_tables._row_report_inputs(rendering,
    healing_tables._stored_table('matches_rebuild', rendering), none, config.get('where')) -%}
select * from (
{{ healing_tables._row_differences(inputs) }}
select
    {%- for key in inputs.key_columns %}
    key_{{ loop.index }} as {{ healing_tables._quoted(key) }},
    {%- endfor %}
    start as {{ healing_tables._quoted(inputs.start_name or 'start') }},
    how,
    array_join(transform({{ healing_tables._differing_cells(inputs) }}, cell -> cell.column), ', ') as columns
from differing
{%- for which, names in inputs.left_out.items() if which in inputs.other_shape %}
union all
select {% for key in inputs.key_columns %}null, {% endfor %}null,
'columns', {{ healing_tables._string_literal(which ~ ': ' ~ names) }}
{%- endfor %}
)
{% endtest %}
