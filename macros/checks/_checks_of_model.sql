{#-
    The description of a table of this package, so that the tests of its model need no arguments: key_columns,
    valid_from, valid_to, is_current, current_value, valid_to_current, tracked and checks, as _checked_rows() takes
    them.
-#}

{#- The value that a build stores in the property healing_tables.spec of its table. -#}
{% macro _check_property(settings) -%}
    {#- the row hash replaces all tracked columns: a property must be short -#}
    {%- set row_hash = settings.metadata.names.row_hash -%}
    {%- set tracked = [row_hash] if row_hash is not none and settings.tracked | length > 0 else settings.tracked -%}
    {{- return(tojson({
        'key_columns': settings.key_columns, 'valid_from': settings.valid_from, 'valid_to': settings.valid_to,
        'is_current': settings.is_current, 'current_value': settings.current_value,
        'valid_to_current': settings.valid_to_current,
        'tracked': tracked, 'checks': settings.checks})) -}}
{%- endmacro %}

{#- The description of the tested model: from the property, or else from its configuration. Empty for other models. -#}
{% macro _model_check_request(relation) -%}
    {%- set node = healing_tables._attached_node() -%}
    {%- if node is none or node.config.materialized not in ['healing_table', 'healing_merge'] -%}
        {{- return({}) -}}
    {%- endif -%}
    {%- if healing_tables._can_introspect() and node.config.materialized == 'healing_table' -%}
        {%- set table = relation if relation.identifier is defined else healing_tables._node_relation(node) -%}
        {%- for row in run_query('show tblproperties ' ~ table.include(database=false)).rows
            if row[0] == 'healing_tables.spec' -%}
            {{- return(fromjson(row[1])) -}}
        {%- endfor -%}
    {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set names = healing_tables._generated_names(mistakes, healing_tables._option('column_names', none, {}),
        none) -%}
    {#- a merge ends keys only if configured to; for a build whose table has no property, this is not known -#}
    {%- set can_delete = node.config.materialized == 'healing_table'
        or healing_tables._option('full_batch', none, false) is sameas true
        or healing_tables._option('deleted_when', none) is not none -%}
    {%- set checks = healing_tables._configured_checks(
        mistakes, healing_tables._option('checks', none, {}),
        healing_tables._default_checks(can_delete, can_delete)) -%}
    {%- do healing_tables._raise_mistakes('column_names', mistakes) -%}
    {%- set shown = healing_tables._merged_ends(node, relation, names) -%}
    {{- return({
        'key_columns': healing_tables._as_list(healing_tables._option('key_columns', none))
        or healing_tables._unique_key(),
        'valid_from': names.valid_from, 'valid_to': names.valid_to, 'is_current': names.is_current,
        'current_value': shown.flags[0],
        'valid_to_current': shown.end,
        'tracked': healing_tables._as_list(healing_tables._option('tracked_columns', none, names.row_hash)),
        'checks': checks}) -}}
{%- endmacro %}

{#- {end, flags} of a model: as configured; what a merge has taken over from an existing table is in its rows. -#}
{% macro _merged_ends(node, relation, names) -%}
    {%- set end = healing_tables._option('valid_to_current', '(not given)', '(not given)') -%}
    {%- set flags = healing_tables._option('current_values', none) -%}
    {%- set found = {'end': end, 'flags': flags} -%}
    {%- if node.config.materialized == 'healing_merge' and healing_tables._can_introspect()
        and (end == '(not given)' or flags is none) -%}
        {%- set table = relation if relation.identifier is defined else healing_tables._node_relation(node) -%}
        {%- set columns = healing_tables._columns_of(table) or {} -%}
        {%- set valid_to = healing_tables._find_column(names.valid_to or '', columns) -%}
        {%- set is_current = healing_tables._find_column(names.is_current or '', columns) -%}
        {#- what a merge would refuse is tested as it is configured -#}
        {%- set found = healing_tables._ends_and_flags([], {
            'relation': table, 'valid_to': valid_to, 'to_type': columns.get(valid_to), 'is_current': is_current,
            'flag_type': columns.get(is_current), 'end': end, 'flags': flags,
            'while_deleted': healing_tables._option('current_while_deleted', none, false) is sameas true}) -%}
    {%- endif -%}
    {{- return({
        'end': healing_tables._valid_to_current() if found.end == '(not given)' else found.end,
        'flags': found.flags or [true, false]}) -}}
{%- endmacro %}
