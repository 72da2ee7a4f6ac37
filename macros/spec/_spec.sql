{#-
    Everything a build needs to know, checked: the one place where a call becomes a plan. Used by dimension() and
    by the steps, so that both mean the same. Returns a map:

    macro, key_columns [{name, type}], sources [see _source], attributes [see _attributes], exists_in, names (generated
    column to its name or none), moment_type ('date', 'timestamp', or none: unknown until Spark plans), and the
    options valid_to_current, current_values, deleted_values, valid_from_first, surrogate_key; extra_names (see _extra_names)

    Where columns cannot be looked up it returns the text of _not_looked_up() instead.
-#}
{% macro _spec(macro_name, sources, options) -%}
    {%- set mistakes = [] -%}
    {%- set read = healing_tables._read_by(sources) -%}
    {%- set instead = healing_tables._not_looked_up(macro_name, read.relations, read.conditions, mistakes) -%}
    {%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
    {#- our own materializations check them with the rest of what they are given -#}
    {%- do healing_tables._check_model_options(mistakes)
        if healing_tables._model_config().get('materialized') not in ['healing_table', 'healing_merge', 'capture'] -%}
    {%- set key_columns = healing_tables._list(options.get('key_columns')) or healing_tables._unique_key() -%}
    {%- if not key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'key_columns', 'at least one column', 'none', 'set unique_key in config() or pass key_columns') -%}
    {%- endif -%}
    {%- set column_types = options.get('column_types') or {} -%}
    {%- if column_types is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, 'column_types', 'a map from column to type', healing_tables._shown_value(column_types), "write {'name': 'string'}") -%}
        {%- set column_types = {} -%}
    {%- endif -%}
    {%- set known = [] -%}
    {%- if sources is not mapping or sources.identifier is defined or not sources -%}
        {%- do healing_tables._mistake(
            mistakes, 'sources', 'a map of at least one source', 'none' if not sources else healing_tables._shown_value(sources),
            "pass {'crm': {'relation': ref('...'), 'changed_at': '...'}}") -%}
    {%- else -%}
        {%- for name, given in sources.items() -%}
            {%- if name | string | lower in (known | select | map(attribute='name') | map('lower') | list) -%}
                {%- do healing_tables._mistake(
                    mistakes, 'sources.' ~ name, 'names that differ by more than their case', name, 'rename one of the two') -%}
            {%- endif -%}
            {%- do known.append(healing_tables._source(mistakes, name | string, given, key_columns, column_types)) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set known = known | select | list -%}
    {%- do healing_tables._raise_mistakes(macro_name, mistakes) if not known -%}
    {%- set keys = healing_tables._keys(mistakes, key_columns, known) -%}
    {%- set spec = {
        'macro': macro_name, 'key_columns': keys, 'sources': known,
        'moment_type': healing_tables._common_moment_type(known),
        'names': options.get('names') or healing_tables._generated_names(mistakes, options.get('column_names') or {}, none),
        'exists_in': healing_tables._list(options.get('exists_in')) or (known | map(attribute='name') | list),
        'valid_to_current': options.get('valid_to_current'),
        'current_values': options.get('current_values') or [true, false],
        'deleted_values': options.get('deleted_values') or [true, false],
        'valid_from_first': options.get('valid_from_first'),
        'surrogate_key': healing_tables._surrogate_key(mistakes, options.get('surrogate_key')),
    } -%}
    {%- set exists_in = [] -%}
    {%- for name in spec.exists_in -%} {%- do exists_in.append(healing_tables._find(name, known | map(attribute='name') | list) or name) -%} {%- endfor -%}
    {%- do spec.update({'exists_in': exists_in}) -%}
    {%- for name in healing_tables._missing(spec.exists_in, known | map(attribute='name')) -%}
        {%- do healing_tables._mistake(
            mistakes, 'exists_in', 'one of ' ~ (known | map(attribute='name') | join(', ')), name, 'correct the name') -%}
    {%- endfor -%}
    {%- do healing_tables._check_moments(mistakes, spec) -%}
    {%- do healing_tables._check_cuts(mistakes, spec) if not mistakes -%}
    {%- do spec.update({'attributes': healing_tables._attributes(mistakes, options.get('attributes'), spec)}) -%}
    {%- do spec.update({'extra_names': healing_tables._extra_names(mistakes, spec, options.get('column_names') or {})}) -%}
    {%- do healing_tables._check_output_names(mistakes, spec) -%}
    {#- a type that is missing because of another mistake is not one more -#}
    {%- if not mistakes -%} {%- do healing_tables._check_hash_types(mistakes, spec) -%} {%- endif -%}
    {%- do healing_tables._raise_mistakes(macro_name, mistakes) -%}
    {%- for source in known -%}
        {%- do source.update({'used': healing_tables._used_columns(source.name, spec.attributes)}) -%}
    {%- endfor -%}
    {{- return(spec) -}}
{%- endmacro %}

{#-
    The spec of a step: rows that keep their moments, no versions, no hashes. `generated` are the columns it adds.
    A step shows every attribute as it is in the slice, whatever its SCD type.
-#}
{% macro _step_spec(macro_name, sources, key_columns, attributes, generated, valid_to_current=none, exists_in=none) -%}
    {%- set names = {'key_hash': none, 'row_hash': none, 'last_updated': none, 'change_reason': none, 'change_source': none} -%}
    {%- for column in generated -%} {%- do names.update({column: column}) -%} {%- endfor -%}
    {%- set plain = attributes -%}
    {%- if attributes is mapping -%}
        {%- set plain = {} -%}
        {%- for name, value in attributes.items() -%}
            {%- do plain.update({name: dict(value, scd_type=2, changed_at=false) if value is mapping else 2}) -%}
        {%- endfor -%}
    {%- endif -%}
    {{- return(healing_tables._spec(macro_name, sources, {
        'key_columns': key_columns, 'attributes': plain, 'names': names, 'exists_in': exists_in,
        'valid_to_current': valid_to_current,
        'column_types': healing_tables._option('column_types', none)})) -}}
{%- endmacro %}

{#- Key columns in one common type over all sources. -#}
{% macro _keys(mistakes, key_columns, sources) -%}
    {%- set keys = [] -%}
    {%- for name in key_columns -%}
        {%- set position = loop.index0 -%}
        {%- set types = [] -%}
        {%- for source in sources if source.key_columns | length > position -%}
            {%- do types.append(source.key_columns[position].type) -%}
        {%- endfor -%}
        {%- set type = healing_tables._common_type(types) -%}
        {%- if type == 'mixed' or (type is not none and healing_tables._has_no_equality(type)) -%}
            {%- do healing_tables._mistake(
                mistakes, 'key_columns.' ~ name, 'one type over all sources', types | join(', '),
                'cast the column in the sources to one type') -%}
        {%- endif -%}
        {%- do keys.append({'name': name, 'type': type}) -%}
    {%- endfor -%}
    {{- return(keys) -}}
{%- endmacro %}

{#- Dates stay dates where every moment is a date; one timestamp makes all of them timestamps. -#}
{% macro _common_moment_type(sources) -%}
    {%- set types = [] -%}
    {%- for source in sources -%}
        {%- do types.extend(source.moment_types) -%}
    {%- endfor -%}
    {%- if 'timestamp' in types or 'timestamp_ntz' in types -%} {{ return('timestamp') }} {%- endif -%}
    {%- if none in types -%} {{ return(none) }} {%- endif -%}
    {{- return('date') -}}
{%- endmacro %}

{#- `others`: names of columns that attributes bring along, which column_names may also rename; none: nobody knows them here. -#}
{% macro _generated_names(mistakes, column_names, others=[]) -%}
    {%- set names = {
        'valid_from': 'valid_from', 'valid_to': 'valid_to', 'is_current': 'is_current', 'version': 'version',
        'compressed_row_count': 'compressed_row_count', 'ended_by_delete': none, 'last_updated': none,
        'change_reason': none, 'change_source': none, 'key_hash': 'key_hash', 'row_hash': 'row_hash'
    } -%}
    {%- if column_names is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, 'column_names', 'a map', healing_tables._shown_value(column_names), "write {'valid_from': 'effective_from'}") -%}
        {{- return(names) -}}
    {%- endif -%}
    {%- if others is not none -%}
        {%- do healing_tables._check_options(mistakes, 'column_names', column_names, names.keys() | list + others) -%}
    {%- endif -%}
    {%- for column, name in column_names.items() if column in names -%}
        {%- if name is not none and (name is not string or not name) -%}
            {%- do healing_tables._mistake(
                mistakes, 'column_names.' ~ column, 'a name, or none to leave the column out', healing_tables._shown_value(name), 'correct it') -%}
        {%- else -%}
            {%- do names.update({column: name}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{#- The columns that attributes bring along: name to the name wanted, or none to leave the column out. -#}
{% macro _extra_names(mistakes, spec, column_names) -%}
    {%- set names = {} -%}
    {%- for attribute in spec.attributes -%}
        {%- for extra in healing_tables._extra_columns(attribute) -%} {%- do names.update({extra: extra}) -%} {%- endfor -%}
    {%- endfor -%}
    {%- for column, name in (column_names.items() if column_names is mapping else []) -%}
        {%- if column in names and name is not none and (name is not string or not name) -%}
            {%- do healing_tables._mistake(
                mistakes, 'column_names.' ~ column, 'a name, or none to leave the column out', name | string, 'correct it') -%}
        {%- elif column in names -%} {%- do names.update({column: name}) -%}
        {%- elif column not in spec.names -%}
            {%- do healing_tables._check_options(mistakes, 'column_names', [column], spec.names.keys() | list + names.keys() | list) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{% macro _surrogate_key(mistakes, given) -%}
    {%- if given is none -%} {{ return(none) }} {%- endif -%}
    {%- if given is not string and given is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, 'surrogate_key', 'a name, or a map of name and strategy', given | string, "write {'name': 'customer_key'}") -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set key = {'name': given, 'strategy': 'hash'} if given is string else dict({'strategy': 'hash'}, **given) -%}
    {%- do healing_tables._check_options(mistakes, 'surrogate_key', key, ['name', 'strategy']) -%}
    {%- if not key.get('name') -%}
        {%- do healing_tables._mistake(mistakes, 'surrogate_key.name', 'a column name', 'none', 'name the column') -%}
    {%- endif -%}
    {%- set known = ['hash'] + (['sequence'] if healing_tables._model_config().get('materialized') == 'healing_table' else []) -%}
    {%- if key.strategy not in known -%}
        {%- do healing_tables._mistake(
            mistakes, 'surrogate_key.strategy', known | join(' or '), key.strategy,
            "a select can only give hash keys: integers are given by the materialization, materialized='healing_table'") -%}
    {%- endif -%}
    {{- return(key) -}}
{%- endmacro %}

{#- The name of an integer key, which the select leaves to the materialization. -#}
{% macro _sequence_name(surrogate_key) -%}
    {{- return(surrogate_key.name if surrogate_key is not none and surrogate_key.strategy == 'sequence' else none) -}}
{%- endmacro %}

{% macro _check_moments(mistakes, spec) -%}
    {%- for option in ['valid_to_current', 'valid_from_first'] if spec[option] is not none -%}
        {%- if healing_tables._parse_moment(spec[option]) is none -%}
            {%- do healing_tables._mistake(
                mistakes, option, "a moment in UTC such as '9999-12-31 00:00:00'", spec[option], 'correct the text') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for option in ['current_values', 'deleted_values'] -%}
        {%- do healing_tables._check_two_values(mistakes, option, spec[option]) -%}
    {%- endfor -%}
{%- endmacro %}

{#- The two values of a flag: of one type, and not the same. -#}
{% macro _check_two_values(mistakes, option, values) -%}
    {%- set kinds = [] -%}
    {%- for value in (values if values is iterable and values is not string else []) if value is not none -%}
        {%- do kinds.append('boolean' if value is boolean else 'number' if value is number else 'text') -%}
    {%- endfor -%}
    {%- if values is string or values is not iterable or values | length != 2 or kinds | unique | list | length != 1 or values[0] == values[1] -%}
        {%- do healing_tables._mistake(
            mistakes, option, "two values of one type that differ, such as ['Y', 'N']", values | string, 'give both values') -%}
    {%- endif -%}
{%- endmacro %}

{#- Every column of the result, and no name twice. -#}
{% macro _check_output_names(mistakes, spec) -%}
    {%- set taken = {} -%}
    {%- set columns = [] -%}
    {%- for key in spec.key_columns -%} {%- do columns.append([key.name, 'key column']) -%} {%- endfor -%}
    {%- for attribute in spec.attributes -%}
        {%- do columns.append([attribute.name, 'attribute (from ' ~ (attribute.from | map(attribute='source') | join(', ')) ~ ')']) -%}
        {%- for extra in healing_tables._extra_columns(attribute) if spec.extra_names[extra] is not none -%}
            {%- do columns.append([spec.extra_names[extra], 'generated column of attribute ' ~ attribute.name]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for column, name in spec.names.items() if name is not none -%}
        {%- do columns.append([name, 'generated column ' ~ column]) -%}
    {%- endfor -%}
    {%- if spec.surrogate_key is not none -%} {%- do columns.append([spec.surrogate_key.name, 'surrogate key']) -%} {%- endif -%}
    {%- for name, what in columns -%}
        {%- if name | string | lower in taken -%}
            {%- do healing_tables._mistake(
                mistakes, 'column ' ~ name, 'a name used once', what ~ ' and ' ~ taken[name | string | lower],
                'rename the generated one with column_names, or give the attribute another name with from, or exclude it') -%}
        {%- endif -%}
        {%- do taken.update({name | string | lower: what}) -%}
    {%- endfor -%}
{%- endmacro %}

{#- Columns that a type brings along. -#}
{% macro _extra_columns(attribute) -%}
    {%- set extra = [] -%}
    {%- if attribute.scd_type == 6 -%} {%- do extra.append('current_' ~ attribute.name) -%} {%- endif -%}
    {%- if attribute.scd_type in [3, 6] -%} {%- do extra.append('previous_' ~ attribute.name) -%} {%- endif -%}
    {%- if attribute.changed_at -%} {%- do extra.append(attribute.name ~ '_changed_at') -%} {%- endif -%}
    {{- return(extra) -}}
{%- endmacro %}

{#- The columns of a source that attributes read, by name in code point order. -#}
{% macro _used_columns(source_name, attributes) -%}
    {%- set used = [] -%}
    {%- for attribute in attributes -%}
        {%- for entry in attribute.from if entry.source == source_name and entry.column not in used -%}
            {%- do used.append(entry.column) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(used | sort(case_sensitive=true)) -}}
{%- endmacro %}
