{#-
    The rows that a build excludes because they cannot be placed on a timeline, each with the reason.

    id   | updated_at | name         id   | updated_at | name | reason
    1    | NULL       | Ann     ->   1    | NULL       | Ann  | NULL moment in updated_at
    NULL | 2024-01-01 | Bob          NULL | 2024-01-01 | Bob  | NULL in key column id
    2    | 2024-01-01 | Cid
-#}
{% macro set_aside(relation, key_columns, changed_at, where=none, valid_to_current='(not given)', valid_to=none) -%}
{%- set source = {'relation': relation, 'where': where} -%}
{%- do source.update({'valid_from': changed_at, 'valid_to': valid_to} if valid_to is not none
    else {'changed_at': changed_at}) -%}
{%- set spec = healing_tables._step_spec(
    'set_aside', {'source': source}, key_columns, [], [],
    healing_tables._valid_to_current(valid_to_current)) -%}
{%- if spec is string -%} {{ return(spec) }} {%- endif -%}
{%- set source = spec.sources[0] -%}
{%- set reason = 'set_aside_reason' if healing_tables._find_column('reason', source.columns or []) is not none
    else 'reason' %}
select
    *,
    {{ healing_tables._set_aside_reason(spec, source) }} as {{ reason }}
from {{ source.relation }}
where {{ '(' ~ source.where ~ ') and ' if source.where }}not coalesce({{ healing_tables._is_usable_row(spec,
    source) }}, false)
{%- endmacro %}
