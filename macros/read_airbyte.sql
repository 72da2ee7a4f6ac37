{#-
    An append table of Airbyte as a change log: of a sync by change data capture, or else of one with a cursor, the
    column `changed_at`.

    id | _ab_cdc_updated_at   | _ab_cdc_deleted_at   | _ab_cdc_lsn      id | _changed_at | _sequence | _is_deleted
    1  | 2024-01-01T00:00:00Z | 2024-01-01T00:00:00Z | 42           ->  1  | 2024-01-01  | {42, ...} | true
-#}
{% macro read_airbyte(relation, changed_at=none, columns=none, column_names={}) -%}
{%- set instead = healing_tables._placeholder_select('read_airbyte', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes, is_cdc = [], changed_at is none -%}
{%- set needed = ['_airbyte_extracted_at'] + (['_ab_cdc_updated_at', '_ab_cdc_deleted_at'] if is_cdc else []) -%}
{%- set found = healing_tables._columns_of_feed(mistakes, relation, columns, needed) -%}
{%- do healing_tables._check_columns(mistakes, 'changed_at', [changed_at], relation | string, found) if not is_cdc -%}
{%- set order = [] -%}
{#- of PostgreSQL and SQL Server; of MySQL -#}
{%- for name in ['_ab_cdc_lsn', '_ab_cdc_event_serial_no', '_ab_cdc_log_file', '_ab_cdc_log_pos']
    if is_cdc and healing_tables._find_column(name, found or {}) is not none -%}
    {%- do order.append(name) -%}
{%- endfor -%}
{%- set at = 'cast(_ab_cdc_updated_at as timestamp)' if is_cdc else healing_tables._quoted(changed_at) -%}
{{ healing_tables._read_feed('read_airbyte', mistakes, relation, found, columns, column_names, {
    'needed': [], 'hidden': '_airbyte_.*|_ab_cdc_.*', 'at': at,
    'is_deleted': '_ab_cdc_deleted_at is not null' if is_cdc else 'false',
    'sequence': 'struct(' ~ ((order or [at ~ ' as at']) + ['_airbyte_extracted_at']) | join(', ') ~ ')'}) }}
{%- endmacro %}
