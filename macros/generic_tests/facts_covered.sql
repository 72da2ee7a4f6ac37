{#-
    A failing row is a fact that does not store the key of the version valid at its moment: it has the key of another
    version, the unknown member although there is a version, or a key although there is none. With allow_unknown: false
    also a fact that correctly stores the unknown member.
-#}
{% test facts_covered(
    model, dimension, key_columns, at, columns, unknown=none, allow_unknown=true, valid_from='valid_from',
    valid_to='valid_to', valid_to_current='(not given)', versions_per_key='many', null_keys=none,
    column_name=none
) %}
{%- set instead = healing_tables._placeholder_select('facts_covered', {'model': model, 'dimension': dimension}) -%}
{%- if instead is not none -%}
{{ instead }}
{%- else -%}
{{ healing_tables._uncovered_facts(
    healing_tables._as_of_request(
        model, dimension, key_columns, at, columns, unknown, valid_from, valid_to, valid_to_current, versions_per_key,
        'facts_covered', null_keys=null_keys),
    allow_unknown) }}
{%- endif -%}
{% endtest %}
