{#-
    A slowly changing dimension, computed from the whole history of its sources. It is one select, for any
    materialization or a CTE. See docs/concepts.md for the rules.

    crm  id | updated_at | name        erp  id | updated_at | limit
         1  | 2024-01-01 | Ann              1  | 2024-02-01 | 500

    id | name | limit | valid_from | valid_to   | is_current
    1  | Ann  | NULL  | 2024-01-01 | 2024-02-01 | false
    1  | Ann  | 500   | 2024-02-01 | (open)     | true
-#}
{% macro dimension(
    sources, key_columns=none, attributes=none, exists_in=none, column_names=none, valid_to_current='(not given)',
    current_values=none, valid_from_first=none, surrogate_key=none, column_types=none, deleted_values=none,
    deleted_rows=none, null_keys=none
) -%}
{%- do healing_tables._report_lookup(sources) -%}
{%- set spec = healing_tables._spec('dimension', sources, {
    'key_columns': healing_tables._option('key_columns', key_columns),
    'attributes': healing_tables._option('attributes', attributes),
    'exists_in': healing_tables._option('exists_in', exists_in),
    'column_names': healing_tables._option('column_names', column_names),
    'valid_to_current': healing_tables._valid_to_current(valid_to_current),
    'current_values': healing_tables._option('current_values', current_values),
    'deleted_values': healing_tables._option('deleted_values', deleted_values),
    'valid_from_first': healing_tables._option('valid_from_first', valid_from_first),
    'surrogate_key': healing_tables._option('surrogate_key', surrogate_key),
    'column_types': healing_tables._option('column_types', column_types),
    'deleted_rows': healing_tables._option('deleted_rows', deleted_rows),
    'null_keys': healing_tables._option('null_keys', null_keys),
}) -%}
{%- if spec is string -%} {{ return(spec) }} {%- endif -%}
{%- do healing_tables._leave_out_erased(spec) -%}
{%- set rendering = healing_tables._rendering() -%}
{%- do rendering.update({'spec': spec}) if rendering is not none -%}
{%- if healing_tables._is_tracing() -%} {{ return(healing_tables._trace(spec)) }} {%- endif -%}
{{ healing_tables._dimension_select(spec) }}
{%- endmacro %}

{#- A line when a build begins to look at its sources, which takes a while in a new process. -#}
{% macro _report_lookup(sources) -%}
    {%- if execute and flags.WHICH in ['run', 'build'] and sources is mapping
        and healing_tables._model_config().get('materialized') == 'healing_table' -%}
        {%- do log(healing_tables._plain_names('healing_table ' ~ this ~ ': looking at '
            ~ healing_tables._counted(sources | length, 'source')), info=true) -%}
    {%- endif -%}
{%- endmacro %}
