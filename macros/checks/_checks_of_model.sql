{#-
    What a table of this package says of itself, so that the tests of its model need no arguments: key_columns, valid_from,
    valid_to, is_current, current_value, valid_to_current, tracked and checks, as _checked() takes them.
-#}

{#- What a build leaves in the property healing_tables.spec of its table. -#}
{% macro _stored_spec(about) -%}
    {#- one column stands for many: a property has to stay short -#}
    {%- set tracked = [about.names.row_hash] if about.names.row_hash is not none and about.tracked | length > 0 else about.tracked -%}
    {{- return(tojson({
        'key_columns': about.key_columns, 'valid_from': about.valid_from, 'valid_to': about.valid_to, 'is_current': about.is_current,
        'current_value': about.current_value, 'valid_to_current': about.valid_to_current, 'tracked': tracked, 'checks': about.checks})) -}}
{%- endmacro %}

{#- Of the model that a test belongs to: the property, or else its configuration. Empty for a model of another kind. -#}
{% macro _own_about(relation) -%}
    {%- set node = healing_tables._attached_node() -%}
    {%- if node is none or node.config.materialized not in ['healing_table', 'healing_merge'] -%} {{ return({}) }} {%- endif -%}
    {%- if healing_tables._can_look_up() and node.config.materialized == 'healing_table' -%}
        {%- set table = relation if relation.identifier is defined else healing_tables._node_relation(node) -%}
        {%- for row in run_query('show tblproperties ' ~ table.include(database=false)).rows if row[0] == 'healing_tables.spec' -%}
            {{- return(fromjson(row[1])) -}}
        {%- endfor -%}
    {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set names = healing_tables._generated_names(mistakes, healing_tables._option('column_names', none, {}), none) -%}
    {%- do healing_tables._raise_mistakes('column_names', mistakes) -%}
    {#- a merge ends keys only where it is told to; of a build whose table says nothing it is not known -#}
    {%- set can_delete = node.config.materialized == 'healing_table' or healing_tables._option('full_batch', none, false) is sameas true
        or healing_tables._option('deleted_when', none) is not none -%}
    {{- return({
        'key_columns': healing_tables._list(healing_tables._option('key_columns', none)) or healing_tables._unique_key(),
        'valid_from': names.valid_from, 'valid_to': names.valid_to, 'is_current': names.is_current,
        'current_value': healing_tables._option('current_values', none, [true, false])[0],
        'valid_to_current': healing_tables._valid_to_current(),
        'tracked': healing_tables._list(healing_tables._option('tracked_columns', none, names.row_hash)),
        'checks': healing_tables._wanted_checks('checks', healing_tables._option('checks', none, {}), healing_tables._default_checks(can_delete, can_delete))})
    -}}
{%- endmacro %}

{#- The node of the model that a generic test belongs to, or none. -#}
{% macro _attached_node() -%}
    {%- set id = model.get('attached_node') if model is defined and model is mapping -%}
    {{- return((graph.get('nodes') or {}).get(id) if id else none) -}}
{%- endmacro %}

{#- The checks of a dimension: of one whose keys can be deleted, keys without a current row and gaps are no faults. -#}
{% macro _default_checks(can_delete, has_gaps, has_tracked=true) -%}
    {%- set checks = {'single_current': {'at_most_one': can_delete}, 'no_overlaps': {}, 'valid_order': {}} -%}
    {%- if has_tracked -%} {%- do checks.update({'no_consecutive_duplicates': {}}) -%} {%- endif -%}
    {%- if not has_gaps -%} {%- do checks.update({'no_gaps': {}}) -%} {%- endif -%}
    {{- return(checks) -}}
{%- endmacro %}
