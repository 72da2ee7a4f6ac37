{#- The columns of a dimension besides keys and attributes: their names, and the surrogate key. -#}

{#- `others`: names of columns that attributes add, which column_names may also rename; none: they are not known
    here. -#}
{% macro _generated_names(mistakes, column_names, others=[], deleted_rows=false) -%}
    {%- set names = {
        'valid_from': 'valid_from', 'valid_to': 'valid_to', 'is_current': 'is_current', 'version': 'version',
        'compressed_row_count': 'compressed_row_count', 'ended_by_delete': none, 'last_updated': none,
        'change_reason': none, 'change_source': none, 'key_hash': 'key_hash', 'row_hash': 'row_hash'
    } -%}
    {%- do names.update({'is_deleted': 'is_deleted'}) if deleted_rows -%}
    {%- if column_names is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, 'column_names', 'a map', healing_tables._display_value(column_names),
            "write {'valid_from': 'effective_from'}") -%}
        {{- return(names) -}}
    {%- endif -%}
    {%- if others is not none -%}
        {%- do healing_tables._check_options(mistakes, 'column_names', column_names, names.keys() | list + others) -%}
    {%- endif -%}
    {%- for column, name in column_names.items() -%}
        {%- if column in names -%}
            {%- if name is not none and (name is not string or not name) -%}
                {%- do healing_tables._mistake(
                    mistakes, 'column_names.' ~ column, 'a name, or none to leave the column out',
                    healing_tables._display_value(name), "write a name in quotes: {'valid_from': 'start'}") -%}
            {%- else -%}
                {%- do names.update({column: name}) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{#- The columns that attributes add: name to the configured name, or none to leave the column out. -#}
{% macro _companion_names(mistakes, spec, column_names) -%}
    {%- set names = {} -%}
    {%- for attribute in spec.attributes -%}
        {%- for extra in attribute.companions -%}
            {%- do names.update({extra: extra}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for column, name in (column_names.items() if column_names is mapping else []) -%}
        {%- if column in names and name is not none and (name is not string or not name) -%}
            {%- do healing_tables._mistake(
                mistakes, 'column_names.' ~ column, 'a name, or none to leave the column out', name | string,
                "write a name in quotes: {'city_changed_at': 'city_since'}") -%}
        {%- elif column in names -%} {%- do names.update({column: name}) -%}
        {%- elif column not in spec.names -%}
            {%- do healing_tables._check_options(mistakes, 'column_names', [column],
                spec.names.keys() | list + names.keys() | list) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{% macro _surrogate_key(mistakes, given) -%}
    {%- if given is none -%} {{ return(none) }} {%- endif -%}
    {%- if given is not string and given is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, 'surrogate_key', 'a name, or a map of name and strategy', given | string,
            "write {'name': 'customer_key'}") -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set key = {'name': given, 'strategy': 'hash'} if given is string else dict({'strategy': 'hash'}, **given) -%}
    {%- do healing_tables._check_options(mistakes, 'surrogate_key', key, ['name', 'strategy']) -%}
    {%- if not key.get('name') -%}
        {%- do healing_tables._mistake(mistakes, 'surrogate_key.name', 'a column name', 'none', 'name the column') -%}
    {%- endif -%}
    {%- set is_built = healing_tables._model_config().get('materialized') in ['healing_table', 'healing_merge'] -%}
    {%- set strategies = ['hash', 'dbt_utils'] + (['sequence'] if is_built else []) -%}
    {%- if key.strategy not in strategies -%}
        {%- do healing_tables._mistake(
            mistakes, 'surrogate_key.strategy', strategies | join(' or '), key.strategy,
            "a select can only compute hash keys: integers are assigned by the materialization, "
            "materialized='healing_table'") -%}
    {%- endif -%}
    {{- return(key) -}}
{%- endmacro %}

{#- The name of an integer key, which the materialization adds, not the select. -#}
{% macro _sequence_name(surrogate_key) -%}
    {{- return(surrogate_key.name if surrogate_key is not none and surrogate_key.strategy == 'sequence' else none) -}}
{%- endmacro %}

{#- Check that the two values of a flag have the same type and differ. -#}
{% macro _check_two_values(mistakes, option, values) -%}
    {%- set kinds = [] -%}
    {%- for value in (values if values is iterable and values is not string else []) if value is not none -%}
        {%- do kinds.append('boolean' if value is boolean else 'number' if value is number else 'text') -%}
    {%- endfor -%}
    {%- if values is string or values is not iterable or values | length != 2 or kinds | unique | list | length != 1
        or values[0] == values[1] -%}
        {%- do healing_tables._mistake(
            mistakes, option, "two values of one type that differ, such as ['Y', 'N']", values | string,
            'give both values') -%}
    {%- endif -%}
{%- endmacro %}

{#- Check that no two columns of the result have the same name. -#}
{% macro _check_output_names(mistakes, spec) -%}
    {%- set taken = {} -%}
    {%- set columns = [] -%}
    {%- for key in spec.key_columns -%} {%- do columns.append([key.name, 'key column']) -%} {%- endfor -%}
    {%- for attribute in spec.attributes -%}
        {%- do columns.append([attribute.name, 'attribute (from '
            ~ (attribute.from | map(attribute='source') | join(', ')) ~ ')']) -%}
        {%- for extra in attribute.companions if spec.extra_names[extra] is not none -%}
            {%- do columns.append([spec.extra_names[extra], 'generated column of attribute ' ~ attribute.name]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for column, name in spec.names.items() if name is not none -%}
        {%- do columns.append([name, 'generated column ' ~ column]) -%}
    {%- endfor -%}
    {%- if spec.surrogate_key is not none -%}
        {%- do columns.append([spec.surrogate_key.name, 'surrogate key']) -%}
    {%- endif -%}
    {%- for name, what in columns -%}
        {%- if name | string | lower in taken -%}
            {%- do healing_tables._mistake(
                mistakes, 'column ' ~ name, 'a name used once', what ~ ' and ' ~ taken[name | string | lower],
                'rename the generated one with column_names, or give the attribute another name with from, or exclude '
                'it') -%}
        {%- endif -%}
        {%- do taken.update({name | string | lower: what}) -%}
    {%- endfor -%}
{%- endmacro %}

{#- Hashes need the type of each of their columns. -#}
{% macro _check_hash_types(mistakes, spec) -%}
    {%- set wanted = {} -%}
    {%- if spec.names.key_hash is not none
        or (spec.surrogate_key is not none and spec.surrogate_key.strategy == 'hash') -%}
        {%- for key in spec.key_columns -%} {%- do wanted.update({key.name: key.type}) -%} {%- endfor -%}
    {%- endif -%}
    {%- if spec.names.row_hash is not none -%}
        {%- for attribute in spec.attributes if attribute.scd_type in [2, 6] -%}
            {%- do wanted.update({attribute.name: attribute.type}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- for name, type in wanted.items() if type is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'column_types.' ~ name, 'the type of ' ~ name ~ ', which is part of a hash',
            'a source whose types cannot be looked up (a CTE, an ephemeral model, a fixture)',
            "add column_types={'" ~ name ~ "': '...'}"
            ~ (", or 'type' to the attribute" if name not in spec.key_columns | map(attribute='name'))
            ~ ", or leave the hash out with column_names={'key_hash': none, 'row_hash': none}") -%}
    {%- endfor -%}
{%- endmacro %}
