{#-
    One source of a call, checked: a map of name, relation (SQL text), parts (see _relation_parts), alias (its name),
    kind ('changes', 'snapshots', 'periods'), key_columns [{column, type}], moment, until (column or none),
    moment_types, columns {name: type} or none, spellings of them (see _spellings), types {lower-case name: type}
    (looked up, or declared in column_types), usable and nameable (see _usable_columns), used (see _used_columns),
    first_sent (see _first_sent_columns), opened_by (its column in valid_from_first, or none), those of _cdc_options,
    has_end (its rows can have an end), has_tie (it has a rule for ties), cut_from and cut_to (see _source_window),
    open_end (see _apply_snapshot_columns), and the options. none if its mistakes leave nothing to check further.
-#}
{% macro _source(mistakes, name, given, key_columns, column_types, opened_by=none) -%}
    {%- set at = 'sources.' ~ name -%}
    {#- a relation also tests as a mapping -#}
    {%- if given is not mapping or given.identifier is defined -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'a map with relation and a moment', healing_tables._display_value(given),
            "write {'relation': ref('...'), 'changed_at': '...'}") -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._check_options(mistakes, at, given, [
        'relation', 'changed_at', 'snapshot_at', 'valid_from', 'valid_to', 'key_columns', 'columns', 'exclude_columns',
        'tie_break_by', 'deleted_when', 'on_absence', 'calendar', 'where', 'on_tie', 'loaded_at',
        'since', 'until', 'dbt_snapshot', 'within', 'ignore_nulls', 'unchanged_value', 'sequence_by', 'truncated_when'])
        -%}
    {%- if not given.get('relation') -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.relation', 'a ref, a source or the name of a CTE', 'none', 'name the relation') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- if healing_tables._is_forgotten_ref(given.relation) -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.relation', 'a ref, a source or the name of a CTE of this model',
            'the text ' ~ given.relation ~ ', which is a model', "write ref('" ~ given.relation ~ "')") -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set snapshot = healing_tables._dbt_snapshot(mistakes, at, given) -%}
    {%- if snapshot is not none -%} {%- set given = dict(given, **snapshot.moments) -%} {%- endif -%}
    {%- set kind = healing_tables._source_kind(mistakes, at, given) -%}
    {%- set per_source = column_types.get(name) if column_types.get(name) is mapping else none -%}
    {%- set columns = healing_tables._columns_of(given.relation) -%}
    {%- if columns is none and per_source is not none -%}
        {%- set columns = {} -%}
        {%- for column, type in per_source.items() -%}
            {%- do columns.update({column: healing_tables._type_name(type)}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- if columns is not none and not columns -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.relation', 'a table or view that exists', given.relation | string,
            'build it first, or correct the name') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set spellings = healing_tables._spellings(columns or {}) -%}
    {%- if spellings | length < (columns or {}) | length -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.relation', 'columns whose names differ by more than their case', columns | join(', '),
            'rename columns in a view') -%}
    {%- endif -%}
    {%- set source = {
        'name': name, 'relation': given.relation | string, 'parts': healing_tables._relation_parts(given.relation),
        'alias': given.relation.identifier if given.relation is not string else given.relation
        if modules.re.fullmatch('\\w+', given.relation) else none,
        'kind': kind, 'columns': columns, 'spellings': spellings,
        'types': healing_tables._source_types(columns, column_types),
        'moment': given.get('changed_at') or given.get('snapshot_at') or given.get('valid_from'),
        'until': given.get('valid_to'),
        'where': healing_tables._close_line_comment(given.get('where')),
        'deleted_when': healing_tables._close_line_comment(given.get('deleted_when')),
        'tie_break_by': healing_tables._as_list(given.get('tie_break_by')), 'loaded_at': given.get('loaded_at'),
        'on_tie': healing_tables._option('on_tie', given.get('on_tie'), 'error'),
        'on_absence': healing_tables._option('on_absence', given.get('on_absence'), 'delete'),
        'calendar': given.get('calendar'), 'within': healing_tables._as_list(given.get('within')),
        'only': given.get('columns'),
        'exclude': healing_tables._as_list(given.get('exclude_columns')), 'opened_by': opened_by,
    } -%}
    {%- do healing_tables._check_source(mistakes, at, source, given) -%}
    {%- do source.update(healing_tables._cdc_options(mistakes, at, given, source)) -%}
    {%- do source.update(healing_tables._source_window(mistakes, at, given)) -%}
    {%- if snapshot is not none -%} {%- do healing_tables._apply_snapshot_columns(source, snapshot) -%} {%- endif -%}
    {%- do source.update({
        'on_tie': 'error' if kind == 'periods' else source.on_tie,
        'has_end': kind == 'periods' or healing_tables._has_absence_deletes(source) or source.cut_to is not none,
        'has_tie': kind != 'periods' and (
            source.tie_break_by | length > 0 or source.on_tie == 'greatest'
            or healing_tables._is_clamped_to_since(source) or (source.cut_from is not none and source.within)
            or source.has_cdc_rules),
    }) -%}
    {%- do source.update({'key_columns': healing_tables._source_keys(mistakes, at, source, given.get('key_columns'),
        key_columns)}) -%}
    {%- do source.update({'moment_types': healing_tables._moment_types(mistakes, at, source)}) -%}
    {%- do source.update({'usable': healing_tables._usable_columns(source),
        'nameable': healing_tables._usable_columns(source, is_named=true)}) -%}
    {{- return(source if kind is not none else none) -}}
{%- endmacro %}

{#- The types of a source's columns by their lower-case names: as looked up, else as declared in column_types. -#}
{% macro _source_types(columns, declared) -%}
    {%- set types = {} -%}
    {%- for lower, name in healing_tables._spellings(declared if columns is none else columns).items() -%}
        {#- looked-up types are spelled already; a type with members is read letter by letter for that -#}
        {%- if columns is not none -%} {%- do types.update({lower: columns[name]}) -%}
        {%- elif declared[name] is string -%}
            {%- do types.update({lower: healing_tables._type_name(declared[name])}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(types) -}}
{%- endmacro %}

{#-
    The usable columns of a source, {lower-case name: name}: all except its keys, moments, tie breakers, sequence_by,
    within, loaded_at, that of valid_from_first, and those in deleted_when and truncated_when. Its `columns` may list
    them from the tie breakers on, and an attribute that is named (`is_named`) may be any of them. none if they are not
    known.
-#}
{% macro _usable_columns(source, is_named=false) -%}
    {%- if source.only is none and source.columns is none -%} {{ return(none) }} {%- endif -%}
    {%- set excluded = source.exclude -%}
    {%- if not is_named -%}
        {%- set excluded = excluded + (source.key_columns | map(attribute='column') | list) + ([source.moment,
            source.until] | select | list) -%}
    {%- endif -%}
    {%- set is_all = source.only is none and not is_named -%}
    {%- if is_all -%}
        {%- set excluded = excluded + source.tie_break_by + source.sequence_by + source.within
            + ([source.loaded_at, source.opened_by] | select | list) -%}
    {%- endif -%}
    {%- set excluded = healing_tables._spellings(excluded) -%}
    {%- set conditions = [source.deleted_when, source.truncated_when] | select | join(' ') -%}
    {%- set usable = {} -%}
    {%- for lower, name in (source.spellings if source.only is none
        else healing_tables._spellings(healing_tables._as_list(source.only))).items() if lower not in excluded -%}
        {%- if not (is_all and conditions and healing_tables._mentions_column(conditions, name)) -%}
            {%- do usable.update({lower: name}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(usable) -}}
{%- endmacro %}

{% macro _source_kind(mistakes, at, given) -%}
    {%- set kinds = [] -%}
    {%- if given.get('changed_at') -%} {%- do kinds.append('changes') -%} {%- endif -%}
    {%- if given.get('snapshot_at') -%} {%- do kinds.append('snapshots') -%} {%- endif -%}
    {%- if given.get('valid_from') or given.get('valid_to') -%} {%- do kinds.append('periods') -%} {%- endif -%}
    {%- if kinds | length != 1 -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'one of changed_at, snapshot_at, valid_from with valid_to, or dbt_snapshot',
            kinds | join(' and ') or 'no moment',
            'set the option for the kind of history of this source') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- if kinds == ['periods'] and not (given.get('valid_from') and given.get('valid_to')) -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'valid_from and valid_to', 'only one of them', 'name both columns') -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return(kinds[0]) -}}
{%- endmacro %}

{#- Check for options that do not apply to this kind of source, unknown values, and missing columns. -#}
{% macro _check_source(mistakes, at, source, given) -%}
    {%- set allowed = {
        'deleted_when': ['changes'], 'on_absence': ['snapshots'], 'calendar': ['snapshots'],
        'tie_break_by': ['changes', 'snapshots'], 'on_tie': ['changes', 'snapshots'],
        'ignore_nulls': ['changes'], 'unchanged_value': ['changes'], 'sequence_by': ['changes'],
        'truncated_when': ['changes'], 'within': ['snapshots']
    } -%}
    {%- for option, kinds in allowed.items() if given.get(option) and source.kind and source.kind not in kinds -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.' ~ option, 'an option of a source of ' ~ (kinds | join(' or ')),
            'a source of ' ~ source.kind,
            'use where to exclude rows' if option == 'deleted_when' else 'remove it') -%}
    {%- endfor -%}
    {%- for option, values in {'on_tie': ['error', 'greatest'], 'on_absence': ['delete', 'ignore']}.items() -%}
        {%- do healing_tables._check_choice(mistakes, at ~ '.' ~ option, source[option], values) -%}
    {%- endfor -%}
    {%- set wanted = {
        'changed_at': [given.get('changed_at')], 'snapshot_at': [given.get('snapshot_at')],
        'valid_from': [given.get('valid_from')], 'valid_to': [given.get('valid_to')], 'loaded_at': [source.loaded_at],
        'tie_break_by': source.tie_break_by, 'within': source.within, 'columns': healing_tables._as_list(source.only),
        'exclude_columns': source.exclude
    } -%}
    {%- if source.opened_by is not none -%}
        {%- do healing_tables._check_columns(mistakes, 'valid_from_first.' ~ source.name, [source.opened_by],
            source.relation, source.columns) -%}
        {%- set type = healing_tables._source_column_type(source, source.opened_by) -%}
        {%- do healing_tables._mistake(mistakes, 'valid_from_first.' ~ source.name, 'a date or a timestamp', type,
            'cast it in the source') if type is not none and type not in ['date', 'timestamp', 'timestamp_ntz'] -%}
    {%- endif -%}
    {%- for option, names in wanted.items() -%}
        {%- do healing_tables._check_columns(mistakes, at ~ '.' ~ option, names | select | list, source.relation,
            source.columns) -%}
    {%- endfor -%}
    {%- for option in ['tie_break_by', 'within'] -%}
        {%- do healing_tables._check_sortable(mistakes, at ~ '.' ~ option, source, source.get(option)) -%}
    {%- endfor -%}
    {%- do healing_tables._mistake(mistakes, at ~ '.within', 'snapshots in which an absent key is deleted',
        'on_absence: ignore', 'remove one of the two') if source.within and source.on_absence == 'ignore' -%}
{%- endmacro %}

{#- Key columns of the source in the order of the dimension's: same names, or renamed by a map. -#}
{% macro _source_keys(mistakes, at, source, renamed, key_columns) -%}
    {%- set names = [] -%}
    {%- if renamed is mapping -%}
        {%- do healing_tables._check_options(mistakes, at ~ '.key_columns', renamed, key_columns) -%}
        {%- for name in key_columns -%} {%- do names.append(renamed.get(name, name)) -%} {%- endfor -%}
    {%- else -%}
        {%- do names.extend(healing_tables._as_list(renamed) or key_columns) -%}
        {%- if names | length != key_columns | length -%}
            {%- do healing_tables._mistake(
                mistakes, at ~ '.key_columns', (key_columns | length) ~ ' columns for ' ~ (key_columns | join(', ')),
                names | join(', '), "write a map such as {'" ~ (key_columns | first) ~ "': 'cust_no'}") -%}
        {%- endif -%}
    {%- endif -%}
    {%- for name in names -%}
        {%- do healing_tables._check_columns(mistakes, at ~ '.key_columns', [name], source.relation, source.columns,
            "name the column of this source: 'key_columns': {'" ~ key_columns[loop.index0] ~ "': '<column>'}; ") -%}
    {%- endfor -%}
    {%- set keys = [] -%}
    {%- for name in names -%}
        {#- column_types may use the dimension's name of a key -#}
        {%- set type = healing_tables._source_column_type(source, name)
            or healing_tables._source_column_type(source, key_columns[loop.index0]) -%}
        {%- do keys.append({'column': name, 'type': type}) -%}
    {%- endfor -%}
    {{- return(keys) -}}
{%- endmacro %}

{% macro _moment_types(mistakes, at, source) -%}
    {%- set types = [] -%}
    {%- for column in [source.moment, source.until] | select -%}
        {%- set type = healing_tables._source_column_type(source, column) -%}
        {%- if type is not none and type not in ['date', 'timestamp', 'timestamp_ntz'] -%}
            {%- do healing_tables._mistake(
                mistakes, at ~ ': moment column ' ~ column, 'a date or a timestamp', type, 'cast it in the source') -%}
        {%- endif -%}
        {%- do types.append(type) -%}
    {%- endfor -%}
    {%- if healing_tables._window_splits_a_day(source) -%} {%- do types.append('timestamp') -%} {%- endif -%}
    {%- if source.calendar and source.kind == 'snapshots' -%}
        {%- set columns = healing_tables._columns_of(source.calendar) -%}
        {%- do healing_tables._check_columns(mistakes, at ~ '.calendar', [source.moment] + source.within,
            source.calendar | string, columns) -%}
        {%- set found = healing_tables._find_column(source.moment, columns or {}) -%}
        {%- do source.update({'calendar_type': columns[found] if found is not none else none}) -%}
        {%- if source.calendar_type is not none and source.calendar_type not in ['date', 'timestamp',
            'timestamp_ntz'] -%}
            {%- do healing_tables._mistake(
                mistakes, at ~ '.calendar: moment column ' ~ source.moment, 'a date or a timestamp',
                source.calendar_type,
                'cast it in the calendar') -%}
        {%- endif -%}
        {%- if columns is not none -%} {%- do types.append(source.calendar_type) -%} {%- endif -%}
    {%- endif -%}
    {{- return(types) -}}
{%- endmacro %}

{#- Whether a relation is given as the name of a model, in code that has no CTE. -#}
{% macro _is_forgotten_ref(relation) -%}
    {%- set model = healing_tables._current_model() -%}
    {%- set code = model.get('raw_code') if model is not none -%}
    {{- return(relation is string and code and healing_tables._find_node(relation) is not none
        and not modules.re.search('(?i)\\bwith\\b', code)) -}}
{%- endmacro %}
