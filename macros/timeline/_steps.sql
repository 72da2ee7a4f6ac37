{#- What the three kinds of effectivity share: the change points of one source, named `source` in the spec. -#}
{% macro _effectivity(macro_name, key_columns, tracked_columns, options) -%}
{%- set given = {} -%}
{%- for option, value in options.items() if value is not none -%}
    {%- do given.update({option: value}) -%}
{%- endfor -%}
{%- set spec = healing_tables._step_spec(
    macro_name, {'source': given}, key_columns, tracked_columns, ['changed_at', 'is_deleted'],
    healing_tables._valid_to_current()) -%}
{%- if spec is string -%} {{ return(spec) }} {%- endif -%}
{%- do healing_tables._leave_out_erased(spec) -%}
select
    {%- for key in spec.key_columns %}
    key_{{ loop.index }} as {{ healing_tables._quoted(key.name) }},
    {%- endfor %}
    {%- for attribute in spec.attributes %}
    {{ healing_tables._owned_value(attribute) }} as {{ attribute.quoted }},
    {%- endfor %}
    {{ healing_tables._from_micros('at', spec.moment_type) }} as changed_at,
    `source` is null as is_deleted
from (
{{ healing_tables._timeline(spec) }}
select * from points
)
{%- endmacro %}

{#- Slices over one or more relations in the shape of an effectivity. -#}
{% macro _time_slices(macro_name, relations, key_columns, attributes, exists_in, valid_to_current) -%}
{%- set sources = {} -%}
{%- for name, relation in relations.items() -%}
    {%- do sources.update({name: {'relation': relation, 'changed_at': 'changed_at', 'deleted_when': 'is_deleted'}}) -%}
{%- endfor -%}
{%- set spec = healing_tables._step_spec(
    macro_name, sources, key_columns, attributes, ['valid_from', 'valid_to', 'is_current'],
    healing_tables._valid_to_current(valid_to_current), exists_in) -%}
{%- if spec is string -%} {{ return(spec) }} {%- endif -%}
{%- set keys = healing_tables._key_names(spec.key_columns) -%}
select
    {%- for key in spec.key_columns %}
    key_{{ loop.index }} as {{ healing_tables._quoted(key.name) }},
    {%- endfor %}
    {%- for attribute in spec.attributes %}
    versioned.{{ attribute.quoted }},
    {%- endfor %}
    {{ healing_tables._from_micros('at', spec.moment_type) }} as valid_from,
    {{ healing_tables._valid_to(spec, 'valid_to') }} as valid_to,
    valid_to is null as is_current
from (
{{ healing_tables._timeline(spec) }},
{{ healing_tables._slices(spec) }}
select *, lead(at) over (partition by {{ keys }} order by at) as valid_to
from slices
)
where versioned is not null
{%- endmacro %}
