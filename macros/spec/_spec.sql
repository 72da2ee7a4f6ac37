{#-
    Everything that a build needs, checked: the only place where a call is interpreted. Used by dimension() and
    by the steps, so that both have the same semantics. Returns a map:

    macro, key_columns [{name, type}], sources [see _source], attributes [see _attributes], exists_in, names (generated
    column to its name or none), moment_type ('date', 'timestamp', or none: unknown until Spark plans), and the
    options valid_to_current, current_values, deleted_values, valid_from_first (a moment), surrogate_key; opened_by
    (valid_from_first as a map from source to column); deleted_rows; extra_names (see _companion_names)

    Only in a merge: current_while_deleted; causes {column of the source with a cause of each row: its default as SQL,
    or none}; is_audited (the select has the column _audit_column(), see _output.sql)

    Where columns cannot be looked up it returns the text of _placeholder_select() instead.
-#}
{% macro _spec(macro_name, sources, options) -%}
    {%- do healing_tables._check_adapter() if execute -%}
    {%- set mistakes = [] -%}
    {%- set read = healing_tables._inputs_of(sources) -%}
    {%- set instead = healing_tables._placeholder_select(macro_name, read.relations, read.conditions, mistakes) -%}
    {%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
    {#- our own materializations check them together with their other options -#}
    {%- do healing_tables._check_model_options(mistakes)
        if healing_tables._model_config().get('materialized') not in ['healing_table', 'healing_merge', 'capture'] -%}
    {%- set key_columns = healing_tables._as_list(options.get('key_columns')) or healing_tables._unique_key() -%}
    {%- if not key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'key_columns', 'at least one column', 'none',
            'set unique_key in config() or pass key_columns') -%}
    {%- endif -%}
    {%- set column_types = options.get('column_types') or {} -%}
    {%- if column_types is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, 'column_types', 'a map from column to type', healing_tables._display_value(column_types),
            "write {'name': 'string'}") -%}
        {%- set column_types = {} -%}
    {%- endif -%}
    {%- set deleted_rows = options.get('deleted_rows') or false -%}
    {%- do healing_tables._check_choice(mistakes, 'deleted_rows', deleted_rows, [true, false]) -%}
    {%- do healing_tables._check_choice(mistakes, 'null_keys', options.get('null_keys') or 'set_aside',
        ['set_aside', 'keep']) -%}
    {%- set first = options.get('valid_from_first') -%}
    {%- set opened_by = first if first is mapping else {} -%}
    {%- set checked_sources = [] -%}
    {%- if sources is not mapping or sources.identifier is defined or not sources -%}
        {%- do healing_tables._mistake(
            mistakes, 'sources', 'a map of at least one source', 'none' if not sources
            else healing_tables._display_value(sources),
            "pass {'crm': {'relation': ref('...'), 'changed_at': '...'}}") -%}
    {%- else -%}
        {%- for name, given in sources.items() -%}
            {%- if name | string | lower in (checked_sources | select | map(attribute='name') | map('lower')
                | list) -%}
                {%- do healing_tables._mistake(
                    mistakes, 'sources.' ~ name, 'names that differ by more than their case', name,
                    'rename one of the two') -%}
            {%- endif -%}
            {%- do checked_sources.append(healing_tables._source(
                mistakes, name | string, given, key_columns, column_types, opened_by.get(name))) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set checked_sources = checked_sources | select | list -%}
    {%- for source in checked_sources -%} {%- do source.update({'partial_when': options.get('partial_when')}) -%}
    {%- endfor -%}
    {%- set source_names = checked_sources | map(attribute='name') | list -%}
    {%- do healing_tables._raise_mistakes(macro_name, mistakes) if not checked_sources -%}
    {%- set keys = healing_tables._spec_key_columns(mistakes, key_columns, checked_sources) -%}
    {%- set spec = {
        'macro': macro_name, 'key_columns': keys, 'sources': checked_sources,
        'moment_type': healing_tables._common_moment_type(checked_sources),
        'names': options.get('names') or healing_tables._generated_names(mistakes, options.get('column_names') or {},
            none, deleted_rows), 'deleted_rows': deleted_rows,
        'has_null_keys': healing_tables._has_null_keys(options.get('null_keys'), keys),
        'exists_in': healing_tables._as_list(options.get('exists_in')) or source_names,
        'valid_to_current': options.get('valid_to_current'),
        'current_values': options.get('current_values') or [true, false],
        'deleted_values': options.get('deleted_values') or [true, false],
        'valid_from_first': none if first is mapping else first, 'opened_by': opened_by,
        'surrogate_key': healing_tables._surrogate_key(mistakes, options.get('surrogate_key')),
        'causes': options.get('causes') or {}, 'is_audited': options.get('is_audited') or false,
        'current_while_deleted': options.get('current_while_deleted') or false,
    } -%}
    {%- set exists_in = [] -%}
    {%- for name in spec.exists_in -%}
        {%- do exists_in.append(healing_tables._find_column(name, source_names) or name) -%}
    {%- endfor -%}
    {%- do spec.update({'exists_in': exists_in}) -%}
    {%- for name in healing_tables._missing_names(spec.exists_in, source_names) -%}
        {%- do healing_tables._mistake(
            mistakes, 'exists_in', 'one of ' ~ (source_names | join(', ')), name,
            healing_tables._did_you_mean(name, source_names) or 'correct the name') -%}
    {%- endfor -%}
    {%- do healing_tables._check_options(mistakes, 'valid_from_first', opened_by, source_names) -%}
    {%- do healing_tables._check_moments(mistakes, spec) -%}
    {%- do healing_tables._check_source_windows(mistakes, spec) if not mistakes -%}
    {%- do spec.update({'attributes': healing_tables._attributes(mistakes, options.get('attributes'),
        checked_sources)}) -%}
    {%- do spec.update({'extra_names': healing_tables._companion_names(mistakes, spec, options.get('column_names')
        or {})}) -%}
    {%- do healing_tables._check_output_names(mistakes, spec) -%}
    {%- do healing_tables._mistake(mistakes, 'column_names.is_deleted', 'a name: with deleted_rows, only this column '
        'tells a deleted key', 'none', 'leave it out, or name it')
        if spec.deleted_rows and spec.names.is_deleted is none -%}
    {#- a type that is missing because of another mistake is not reported again -#}
    {%- if not mistakes -%} {%- do healing_tables._check_hash_types(mistakes, spec) -%} {%- endif -%}
    {%- do healing_tables._raise_mistakes(macro_name, mistakes) -%}
    {%- for source in checked_sources -%}
        {%- do source.update({'used': healing_tables._used_columns(source, spec.attributes, spec.causes),
            'first_sent': healing_tables._first_sent_columns(source, spec.attributes)}) -%}
    {%- endfor -%}
    {{- return(spec) -}}
{%- endmacro %}

{#- Whether NULL in a key column is a value like others. It is not where all key columns are NULL. -#}
{% macro _has_null_keys(null_keys, key_columns) -%}
    {{- return(null_keys == 'keep' and key_columns | length > 1) -}}
{%- endmacro %}

{#- The operator that compares two key columns. `of`: a map that has `has_null_keys`. -#}
{% macro _key_operator(of) -%} {{ return(' <=> ' if of.get('has_null_keys') else ' = ') }} {%- endmacro %}

{#-
    The spec of a step: rows keep their moments; no versions, no hashes. `generated`: the columns that it adds.
    A step shows every attribute as it is in the slice, whatever its SCD type.
-#}
{% macro _step_spec(macro_name, sources, key_columns, attributes, generated, valid_to_current=none, exists_in=none) -%}
    {%- set names = {'key_hash': none, 'row_hash': none, 'last_updated': none, 'change_reason': none,
        'change_source': none} -%}
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
{% macro _spec_key_columns(mistakes, key_columns, sources) -%}
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

{#- Dates stay dates if every moment is a date; one timestamp makes all of them timestamps. -#}
{% macro _common_moment_type(sources) -%}
    {%- set types = [] -%}
    {%- for source in sources -%}
        {%- do types.extend(source.moment_types) -%}
    {%- endfor -%}
    {%- if 'timestamp' in types or 'timestamp_ntz' in types -%} {{ return('timestamp') }} {%- endif -%}
    {%- if none in types -%} {{ return(none) }} {%- endif -%}
    {{- return('date') -}}
{%- endmacro %}

{% macro _check_moments(mistakes, spec) -%}
    {%- for option in ['valid_to_current', 'valid_from_first'] if spec[option] is not none -%}
        {%- if healing_tables._parse_instant(spec[option]) is none -%}
            {%- do healing_tables._mistake(
                mistakes, option, "a moment in UTC such as '9999-12-31 00:00:00'", spec[option], 'correct the text') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for option in ['current_values', 'deleted_values'] -%}
        {%- do healing_tables._check_two_values(mistakes, option, spec[option]) -%}
    {%- endfor -%}
{%- endmacro %}

{#- The columns of a source that attributes and causes read, by name in code point order: [{column, quoted, type}]. -#}
{% macro _used_columns(source, attributes, causes) -%}
    {%- set used = {} -%}
    {%- for name in causes -%}
        {%- do used.update({name: {'column': name, 'quoted': healing_tables._quoted(name), 'type': 'string'}}) -%}
    {%- endfor -%}
    {%- for attribute in attributes -%}
        {%- for entry in attribute.from if entry.source == source.name -%}
            {%- do used.update({entry.column: {'column': entry.column, 'quoted': entry.quoted,
                'type': source.types.get(entry.column | string | lower)}}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(used.values() | sort(attribute='column', case_sensitive=true)) -}}
{%- endmacro %}

{#- The metadata of a model that does not call dimension(). `others`: see _generated_names(). -#}
{% macro _configured_metadata(mistakes, others=[]) -%}
    {%- set names = healing_tables._generated_names(mistakes, healing_tables._option('column_names', none, {}), others)
        -%}
    {%- set surrogate_key = healing_tables._surrogate_key(mistakes, healing_tables._option('surrogate_key', none)) -%}
    {{- return({
        'key_columns': healing_tables._as_list(healing_tables._option('key_columns', none))
        or healing_tables._unique_key(),
        'names': names, 'versioned': healing_tables._as_list(healing_tables._option('tracked_columns',
            none, [names.row_hash])),
        'valid_to_current': healing_tables._valid_to_current(),
        'current_value': healing_tables._option('current_values', none, [true, false])[0],
        'sequence': healing_tables._sequence_name(surrogate_key), 'can_delete': true, 'has_gaps': true,
        'scans': []}) -}}
{%- endmacro %}
