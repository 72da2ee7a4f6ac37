{#-
    What a table of this package says of itself, so that the tests of its model need no arguments: key_columns,
    valid_from, valid_to, is_current, current_value, valid_to_current, tracked and checks, as _checked_rows() takes
    them.
-#}

{#- What a build leaves in the property healing_tables.spec of its table. -#}
{% macro _check_property(settings) -%}
    {#- one column stands for many: a property has to stay short -#}
    {%- set row_hash = settings.metadata.names.row_hash -%}
    {%- set tracked = [row_hash] if row_hash is not none and settings.tracked | length > 0 else settings.tracked -%}
    {{- return(tojson({
        'key_columns': settings.key_columns, 'valid_from': settings.valid_from, 'valid_to': settings.valid_to,
        'is_current': settings.is_current, 'current_value': settings.current_value,
        'valid_to_current': settings.valid_to_current,
        'tracked': tracked, 'checks': settings.checks})) -}}
{%- endmacro %}

{#- Of the model that a test belongs to: the property, or else its configuration. Empty for a model of another kind. -#}
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
    {#- a merge ends keys only where it is told to; of a build whose table says nothing it is not known -#}
    {%- set can_delete = node.config.materialized == 'healing_table'
        or healing_tables._option('full_batch', none, false) is sameas true
        or healing_tables._option('deleted_when', none) is not none -%}
    {%- set checks = healing_tables._configured_checks(
        mistakes, healing_tables._option('checks', none, {}),
        healing_tables._default_checks(can_delete, can_delete)) -%}
    {%- do healing_tables._raise_mistakes('column_names', mistakes) -%}
    {{- return({
        'key_columns': healing_tables._as_list(healing_tables._option('key_columns', none))
        or healing_tables._unique_key(),
        'valid_from': names.valid_from, 'valid_to': names.valid_to, 'is_current': names.is_current,
        'current_value': healing_tables._option('current_values', none, [true, false])[0],
        'valid_to_current': healing_tables._valid_to_current(),
        'tracked': healing_tables._as_list(healing_tables._option('tracked_columns', none, names.row_hash)),
        'checks': checks}) -}}
{%- endmacro %}

{#- The checks of a dimension: of one whose keys can be deleted, keys without a current row and gaps are no faults. -#}
{% macro _default_checks(can_delete, has_gaps, has_tracked=true) -%}
    {%- set checks = {'single_current': {'at_most_one': can_delete}, 'no_overlaps': {}, 'valid_order': {}} -%}
    {%- if has_tracked -%} {%- do checks.update({'no_consecutive_duplicates': {}}) -%} {%- endif -%}
    {%- if not has_gaps -%} {%- do checks.update({'no_gaps': {}}) -%} {%- endif -%}
    {{- return(checks) -}}
{%- endmacro %}

{#- The checks to run: `defaults` {name: arguments}, changed by `given` {name: arguments, or false to leave it out}. -#}
{% macro _configured_checks(mistakes, given, defaults) -%}
    {%- if given is not none and given is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, 'checks', 'a map from check to its arguments or false', healing_tables._display_value(given),
            'write {no_overlaps: false}') -%}
        {%- set given = {} -%}
    {%- endif -%}
    {%- do healing_tables._check_options(mistakes, 'checks', given or {}, [
        'single_current', 'no_overlaps', 'no_gaps', 'valid_order', 'no_consecutive_duplicates']) -%}
    {%- set wanted = dict(defaults) -%}
    {%- for check, arguments in (given or {}).items() -%}
        {%- if arguments is sameas false -%} {%- do wanted.pop(check, none) -%}
        {%- else -%}
            {%- do wanted.update({check: dict(wanted.get(check) or {},
                **(arguments if arguments is mapping else {}))}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(wanted) -}}
{%- endmacro %}
