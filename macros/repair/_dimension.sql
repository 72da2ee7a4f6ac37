{#- The input of diagnose and repair: a stored table of versions, whichever program wrote it. -#}

{#-
    The `check_request` of a stored table, and more: columns (name to type), model (the name of the one that can rebuild
    it, or none), current_sql, closed_sql, open_end (SQL), version, sequence, current_while_deleted, and the fields of
    _stored_hashes(). `given`: the arguments. Missing ones come from the model (its call of dimension() first), then
    from the project, then from the defaults.
-#}
{% macro _stored_dimension(operation, table, given) -%}
    {%- set mistakes = [] -%}
    {%- set relation = table.relation -%}
    {%- set columns = healing_tables._columns_of(relation) -%}
    {%- set spec = healing_tables._spec_of_model(table.node) or {} -%}
    {%- set names = healing_tables._stored_names(mistakes, table, spec, given, columns) -%}
    {%- set stored_table = dict(names, relation=relation | string, columns=columns, checks={},
        model=table.node.name if spec else none) -%}
    {%- do stored_table.update({
        'key_columns': healing_tables._stored_keys(spec, given),
        'sequence': healing_tables._stored_sequence(spec),
        'has_null_keys': spec.get('has_null_keys') or healing_tables._has_null_keys(
            healing_tables._option('null_keys', none), healing_tables._stored_keys(spec, given)),
        'current_while_deleted': healing_tables._option('current_while_deleted', none, false) is sameas true}) -%}
    {%- if not stored_table.key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'key_columns', 'at least one column', 'none',
            "add key_columns to --args, e.g. 'key_columns: [customer_id]'") -%}
    {%- endif -%}
    {%- do healing_tables._check_columns(mistakes, 'key_columns', stored_table.key_columns, relation | string,
        columns) -%}
    {%- set end = healing_tables._named_end(table, spec, given) -%}
    {%- set period = healing_tables._period(mistakes, relation, columns, stored_table.valid_from,
        stored_table.valid_to, none if end == '(not given)' else end) -%}
    {%- if period.from_type != period.to_type and period.from_type is not none and period.to_type is not none -%}
        {%- do healing_tables._mistake(
            mistakes, 'valid_to', 'the type of ' ~ stored_table.valid_from ~ ', ' ~ period.from_type, period.to_type,
            'cast one of them in a view') -%}
    {%- endif -%}
    {%- do healing_tables._check_columns(mistakes, 'tracked_columns', stored_table.tracked, relation | string,
        columns) -%}
    {%- do stored_table.update(healing_tables._stored_ends(mistakes, stored_table, end,
        healing_tables._named_flags(spec, given))) -%}
    {%- do healing_tables._stored_values(mistakes, stored_table) -%}
    {%- do stored_table.update(healing_tables._stored_hashes(table, spec, stored_table)) -%}
    {%- do healing_tables._raise_mistakes(operation, mistakes) -%}
    {{- return(stored_table) -}}
{%- endmacro %}

{#- The names of the columns, in the table's spelling; none for one that was not requested and does not exist. -#}
{% macro _stored_names(mistakes, table, spec, given, columns) -%}
    {%- set names = spec.get('names')
        or healing_tables._generated_names(mistakes, healing_tables._option('column_names', none, {}), none) -%}
    {%- if table.node is not none and table.node.resource_type == 'snapshot' -%}
        {%- set names = {} -%}
        {%- do names.update({'valid_from': 'dbt_valid_from', 'valid_to': 'dbt_valid_to'}) -%}
        {%- for column, name in (table.node.config.get('snapshot_meta_column_names') or {}).items() if name -%}
            {%- do names.update({column | replace('dbt_', ''): name}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set found = {} -%}
    {%- for column in ['valid_from', 'valid_to', 'is_current', 'version', 'compressed_row_count', 'ended_by_delete',
        'last_updated'] -%}
        {%- set asked = given.get(column, '(not given)') -%}
        {%- set name = names.get(column) if asked == '(not given)' else asked -%}
        {%- if asked not in [none, '(not given)'] and column not in ['valid_from', 'valid_to'] -%}
            {%- do healing_tables._check_columns(mistakes, column, [asked], table.relation | string, columns) -%}
        {%- endif -%}
        {%- set spelled = healing_tables._find_column(name, columns) if name is not none else none -%}
        {%- set is_bound = column in ['valid_from', 'valid_to'] -%}
        {%- do found.update({column: spelled or ((name or column) if is_bound else none)}) -%}
    {%- endfor -%}
    {%- for column in ['version', 'compressed_row_count'] -%}
        {%- if found[column] is not none -%}
            {%- if healing_tables._type_family(columns[found[column]]) != 'integer' -%}
                {%- if column in given and given[column] == found[column] -%}
                    {%- do healing_tables._mistake(mistakes, column, 'a column of integers', columns[found[column]],
                        'name another one, or null') -%}
                {%- endif -%}
                {%- do found.update({column: none}) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set tracked = given.get('tracked_columns', '(not given)') -%}
    {%- if tracked == '(not given)' -%}
        {%- set hash = healing_tables._find_column(names.get('row_hash') or '', columns) -%}
        {%- set tracked = spec.get('versioned') or healing_tables._option('tracked_columns', none, [hash]
            if hash is not none else []) -%}
    {%- endif -%}
    {%- do found.update({'tracked': healing_tables._as_list(tracked)}) -%}
    {{- return(found) -}}
{%- endmacro %}

{% macro _stored_keys(spec, given) -%}
    {{- return(
        healing_tables._as_list(given.get('key_columns')) or spec.get('key_columns')
        or healing_tables._as_list(healing_tables._option('key_columns', none)) or healing_tables._unique_key()) -}}
{%- endmacro %}

{#-
    The columns key_hash and row_hash with their expected values, as SQL over a row of `repaired`; none if not known.
    Only this package's models have these hashes. A merge does not update the hash of a stored row when an attribute is
    new, so row_hash is checked only if a build has written all rows.
-#}
{% macro _stored_hashes(table, spec, stored_table) -%}
    {%- set hashes = {'key_hash': none, 'row_hash': none, 'key_hash_sql': none, 'row_hash_sql': none} -%}
    {%- if not spec and (table.node is none or table.node.config.materialized != 'healing_merge') -%}
        {{- return(hashes) -}}
    {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set names = spec.get('names')
        or healing_tables._generated_names(mistakes, healing_tables._option('column_names', none, {}), none) -%}
    {%- for hash, columns in {'key_hash': stored_table.key_columns, 'row_hash': spec.get('versioned') or []}.items()
        if names.get(hash) is not none -%}
        {%- set typed = [] -%}
        {%- for column in (columns | sort(case_sensitive=true) if hash == 'row_hash' else columns) -%}
            {%- set found = healing_tables._find_column(column, stored_table.columns) -%}
            {%- if found is not none and not healing_tables._has_no_equality(stored_table.columns[found]) -%}
                {%- do typed.append({'expression': 'row.' ~ healing_tables._quoted(found),
                    'type': stored_table.columns[found]}) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- set stored = healing_tables._find_column(names[hash], stored_table.columns) -%}
        {%- if stored is not none and typed and typed | length == columns | length -%}
            {%- do hashes.update({hash: stored, hash ~ '_sql': healing_tables._hash(typed)}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(hashes) -}}
{%- endmacro %}

{#- The column of integer surrogate keys, or none. -#}
{% macro _stored_sequence(spec) -%}
    {%- set key = healing_tables._option('surrogate_key', none) -%}
    {{- return(spec.get('sequence') or (key.get('name') if key is mapping and key.get('strategy') == 'sequence'
        else none)) -}}
{%- endmacro %}

{#- The open end that is given; none means NULL, and '(not given)' that no argument, model or project names it. -#}
{% macro _named_end(table, spec, given) -%}
    {%- set asked = given.get('valid_to_current', '(not given)') -%}
    {%- if asked == '(not given)' and 'valid_to_current' in spec -%}
        {%- set asked = spec.valid_to_current -%}
    {%- endif -%}
    {%- if asked == '(not given)' and table.node is not none and table.node.resource_type == 'snapshot' -%}
        {#- dbt's own option is SQL: a quoted moment can be parsed, another expression cannot -#}
        {%- set text = modules.re.search('[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9:. ]*',
            table.node.config.get('dbt_valid_to_current') or '') -%}
        {%- set asked = text.group(0) | trim if text else none -%}
    {%- endif -%}
    {%- set end = healing_tables._option('valid_to_current', asked, '(not given)') -%}
    {{- return(none if end is none else end | string) -}}
{%- endmacro %}

{#- The values of the flag that are given, or none. -#}
{% macro _named_flags(spec, given) -%}
    {%- set values = given.get('current_values') or healing_tables._option('current_values', none, none) -%}
    {%- if values is none and 'current_value' in spec -%}
        {%- set current = spec.current_value -%}
        {%- set closed = {'Y': 'N', 'y': 'n', 'T': 'F', 't': 'f', '1': '0', 'true': 'false', 'yes': 'no'} -%}
        {%- set values = [current, not current if current is boolean else 0 if current == 1
            else closed.get(current, '(not known)')] -%}
    {%- endif -%}
    {{- return(values) -}}
{%- endmacro %}

{#- valid_to_current and current_values: from the rows, if `end` is '(not given)' and `flags` none; other ones than
    the rows have are a mistake. -#}
{% macro _stored_ends(mistakes, stored_table, end, flags) -%}
    {%- set columns = stored_table.columns -%}
    {%- set given = {
        'relation': stored_table.relation, 'valid_to': stored_table.valid_to,
        'to_type': healing_tables._type_of_column(columns, stored_table.valid_to),
        'is_current': stored_table.is_current,
        'flag_type': none if stored_table.is_current is none else columns[stored_table.is_current],
        'end': end, 'flags': flags, 'while_deleted': stored_table.current_while_deleted} -%}
    {%- set found = healing_tables._ends_and_flags(mistakes, given, true) -%}
    {{- return({
        'valid_to_current': healing_tables._valid_to_current() if found.end == '(not given)' else found.end,
        'current_values': [true, false] if found.flags is none else found.flags}) -}}
{%- endmacro %}

{#- The values that a repair writes, each in the type of its column. -#}
{% macro _stored_values(mistakes, stored_table) -%}
    {%- set values = stored_table.current_values -%}
    {%- if values | length != 2 or values is string or '(not known)' in values -%}
        {%- do healing_tables._mistake(
            mistakes, 'current_values', 'two values: of a current row, and of the others', values | string,
            "write e.g. current_values: ['Y', 'N']") -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do stored_table.update({'current_value': values[0]}) -%}
    {%- if stored_table.is_current is not none -%}
        {%- set type = stored_table.columns[stored_table.is_current] -%}
        {%- do stored_table.update({
            'current_sql': healing_tables._typed_literal(mistakes, 'current_values', values[0], type),
            'closed_sql': healing_tables._typed_literal(mistakes, 'current_values', values[1], type)}) -%}
    {%- endif -%}
    {%- set type = healing_tables._type_of_column(stored_table.columns, stored_table.valid_to) -%}
    {%- if type is not none and type in ['date', 'timestamp', 'timestamp_ntz'] -%}
        {%- do stored_table.update({'open_end': healing_tables._typed_literal(mistakes, 'valid_to_current',
            stored_table.valid_to_current, type)}) -%}
    {%- endif -%}
{%- endmacro %}
