{#-
    The `layout` of a merge: which columns of the batch are what, in which types they are stored. The library has the
    same rules in definition/resolve_layout.py and stored_layout.py.

    given               the columns of the batch {name: type}
    keys, attributes    [{name, quoted (of the dimension), type (as it is stored), given_name, column (of the batch, as
                        text and as SQL), given (its type)}]; attributes also have options (see _attribute_options),
                        and is_missing if the batch lacks them
    ties                the same of the tie breakers; extra_ties: those that are neither keys nor attributes
    causes              the same of the causes of a row, under the names of their options: those that the batch or the
                        stored table has
    carried             attributes, extra_ties and causes: what a row of the log has besides its key
    moment              the same of changed_at, or none; moment_type: date or timestamp
    names               generated column to its name or none: column_names of dimension()
-#}
{% macro _merge_layout(mistakes, format, spec, given, stored_columns, at, logged_columns={}) -%}
    {%- set layout = {'given': given, 'keys': [], 'attributes': [], 'ties': [], 'extra_ties': [], 'causes': [],
        'moment': none,
        'moment_type': 'date' if at is not none and at | string | trim | length == 10 else 'timestamp'} -%}
    {%- do healing_tables._check_names_of_batch(mistakes, given) -%}
    {%- for name in spec.key_columns -%}
        {%- do layout['keys'].append(healing_tables._batch_column(mistakes, 'key_columns', name, given,
            stored_columns or logged_columns)) -%}
    {%- endfor -%}
    {%- if spec.get('changed_at') -%}
        {%- set moment = healing_tables._batch_column(mistakes, 'changed_at', spec.changed_at, given, {}) -%}
        {%- if moment is not none and moment.given not in ['date', 'timestamp', 'timestamp_ntz'] -%}
            {%- do healing_tables._mistake(mistakes, 'changed_at (' ~ moment.name ~ ')', 'a date or a timestamp',
                moment.given, 'cast it in the batch') -%}
        {%- endif -%}
        {%- do layout.update({'moment': moment, 'moment_type': 'date' if (moment or {}).given == 'date'
            else 'timestamp'}) -%}
    {%- endif -%}
    {%- for name in healing_tables._as_list(spec.get('tie_break_by')) -%}
        {%- set tie = healing_tables._batch_column(mistakes, 'tie_break_by', name, given, {}) -%}
        {%- if tie is not none and healing_tables._has_no_equality(tie.given) -%}
            {%- do healing_tables._mistake(mistakes, 'tie_break_by: ' ~ name, 'a column that can be sorted', tie.given,
                'name another column, or a field of it in the batch') -%}
        {%- endif -%}
        {%- do layout.ties.append(tie) -%}
    {%- endfor -%}
    {%- set appends = config.get('on_schema_change') in ['append_new_columns', 'sync_all_columns'] -%}
    {%- for name, options in healing_tables._merged_attributes(mistakes, spec, given, stored_columns).items()
        if not (appends and healing_tables._find_column(name, given) is none
            and healing_tables._find_column(name, stored_columns) is none) -%}
        {%- set attribute = healing_tables._missing_column(spec, name, given, stored_columns)
            or healing_tables._batch_column(mistakes, 'attributes', name, given, stored_columns or logged_columns) -%}
        {%- do layout.attributes.append(dict(attribute, options=options)) if attribute is not none -%}
    {%- endfor -%}
    {%- for attribute in layout.attributes if attribute.options.scd_type in [1, 3] -%}
        {%- set moment = attribute.name ~ '_changed_at' -%}
        {%- set moment = healing_tables._find_column(
            (spec.get('column_names') or {}).get(moment) or moment, stored_columns) -%}
        {#- a column of that name may be an attribute itself -#}
        {%- do attribute.update({'options': dict(attribute.options, changed_at=true)}) if moment is not none
            and moment | lower not in layout.attributes | map(attribute='name') | map('lower') | list -%}
    {%- endfor -%}
    {%- do layout.update({'keys': layout['keys'] | reject('none') | list,
        'ties': layout.ties | reject('none') | list,
        'names': healing_tables._merged_names(spec, stored_columns)}) -%}
    {%- for attribute in layout.attributes -%}
        {%- for added in healing_tables._companion_columns(dict(attribute.options, name=attribute.name)) -%}
            {%- set stored = healing_tables._find_column(layout.names.get(added) or added, stored_columns) -%}
            {%- do layout.names.update({added: stored}) if stored is not none -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do layout.causes.extend(healing_tables._causes_of_batch(mistakes, spec, layout.names, given)) -%}
    {%- set taken = (layout['keys'] + layout.attributes) | map(attribute='name') | map('lower') | list -%}
    {%- for tie in layout.ties if tie.name | lower not in taken -%} {%- do layout.extra_ties.append(tie) -%}
    {%- endfor -%}
    {%- do layout.update({'carried': layout.attributes + layout.extra_ties + layout.causes}) -%}
    {%- do healing_tables._check_types_of_batch(mistakes, format, layout, stored_columns) -%}
    {%- do healing_tables._check_type_4(mistakes, layout) if healing_tables._has_history(layout) -%}
    {%- do healing_tables._check_stored_moments(mistakes, spec, layout, stored_columns) if stored_columns -%}
    {{- return(layout) -}}
{%- endmacro %}

{#- A column of the batch; none, and a mistake, if it has none of this name. A column that the dimension stores has its
    spelling and type there. -#}
{% macro _batch_column(mistakes, option, name, given, stored_columns) -%}
    {%- set column = healing_tables._find_column(name, given) -%}
    {%- if column is none -%}
        {%- do healing_tables._mistake(mistakes, option ~ ': ' ~ name,
            'a column of the batch, which has ' ~ (given | join(', ')), 'no such column',
            healing_tables._did_you_mean(name, given) or 'add it to the batch, or correct the name') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set stored = healing_tables._find_column(name, stored_columns) -%}
    {%- set type = healing_tables._plain_type(given[column]) -%}
    {%- set name = stored or (column if option == 'attributes' else name) -%}
    {{- return({'name': name, 'quoted': healing_tables._quoted(name), 'given_name': column,
        'column': healing_tables._quoted(column), 'given': given[column],
        'type': stored_columns[stored] if stored is not none else type}) -}}
{%- endmacro %}

{#- Without an option for it, a cause is NULL in the rows of the batch. It is a column nevertheless, if the dimension
    has it: the log keeps the causes of stored versions. -#}
{% macro _causes_of_batch(mistakes, spec, names, given) -%}
    {%- set causes = [] -%}
    {%- for name in healing_tables._cause_options() -%}
        {%- if spec.get(name) is not none -%}
            {%- set column = healing_tables._batch_column(mistakes, name, spec[name], given, {}) -%}
            {%- do causes.append(dict(column, name=name, quoted=name, type='string')) if column is not none -%}
        {%- elif names.get(name) is not none -%}
            {%- do causes.append({'name': name, 'quoted': name, 'column': 'null', 'type': 'string'}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(causes) -}}
{%- endmacro %}

{#- An attribute that the batch lacks and may lack; none for others. -#}
{% macro _missing_column(spec, name, given, stored_columns) -%}
    {%- set stored = healing_tables._find_column(name, stored_columns) -%}
    {%- if spec.get('missing_columns') not in ['keep', 'null'] or stored is none
        or healing_tables._find_column(name, given) is not none -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return({'name': stored, 'quoted': healing_tables._quoted(stored), 'given_name': stored, 'column': 'null',
        'given': 'void', 'type': stored_columns[stored], 'is_missing': true}) -}}
{%- endmacro %}

{#- {attribute: options}, in the order of the options. '*' stands for all columns but keys, moments, tie breakers and
    those that deleted_when names; if columns may be missing, also for other stored columns. -#}
{% macro _merged_attributes(mistakes, spec, given, stored_columns) -%}
    {%- set wanted = spec.get('attributes') -%}
    {%- if wanted is none or wanted is undefined -%} {%- set wanted = {'*': 2} -%}
    {%- elif wanted is not mapping -%}
        {%- set named = {} -%}
        {%- for name in healing_tables._as_list(wanted) -%} {%- do named.update({name: 2}) -%} {%- endfor -%}
        {%- set wanted = named -%}
    {%- endif -%}
    {%- set used = spec.key_columns + healing_tables._as_list(spec.get('tie_break_by')) -%}
    {%- for option in ['changed_at'] + healing_tables._cause_options() if spec.get(option) -%}
        {%- do used.append(spec[option]) -%}
    {%- endfor -%}
    {%- set used = used | map('lower') | list -%}
    {%- set named = wanted | map('lower') | list -%}
    {%- set found = {} -%}
    {%- for name, value in wanted.items() -%}
        {%- set options = healing_tables._attribute_options(mistakes, name, value, [0, 1, 2, 3, 4, 6]) -%}
        {%- for option in ['from', 'rule', 'type'] if value is mapping and option in value -%}
            {%- do healing_tables._mistake(mistakes, 'attributes.' ~ name ~ '.' ~ option, 'scd_type or changed_at',
                option, 'remove it: a batch has one source') -%}
        {%- endfor -%}
        {%- if name != '*' -%}
            {%- do found.update({name: options}) -%}
        {%- else -%}
            {%- for column in given if column | lower not in used and column | lower not in named
                and not (spec.get('deleted_when') and healing_tables._mentions_column(spec.deleted_when, column)) -%}
                {%- do found.update({column: options}) -%}
            {%- endfor -%}
            {%- do found.update(healing_tables._other_stored_columns(spec, options, wanted, found, stored_columns))
                if spec.get('missing_columns') in ['keep', 'null'] -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name in spec.key_columns if name | lower in named -%}
        {%- do healing_tables._mistake(mistakes, 'attributes.' ~ name, 'a column that is not a key', 'a key column',
            'remove it from one of the two') -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- Stored columns that are neither keys, nor generated, nor those of the attributes found so far. -#}
{% macro _other_stored_columns(spec, options, wanted, found, stored_columns) -%}
    {%- set surrogate = spec.get('surrogate_key') -%}
    {%- set taken = spec.key_columns + (healing_tables._merged_names(spec, stored_columns).values() | reject('none')
        | list) + ([surrogate if surrogate is string else surrogate.name] if surrogate else []) -%}
    {%- for name in (wanted | list + found | list) | unique if name != '*' -%}
        {%- set own = healing_tables._attribute_options([], name, wanted.get(name), [0, 1, 2, 3, 4, 6])
            if name in wanted else options -%}
        {%- do taken.append(name) -%}
        {%- for added in healing_tables._companion_columns(dict(own, name=name)) + [name ~ '_changed_at'] -%}
            {%- do taken.append((spec.get('column_names') or {}).get(added) or added) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set others = {} -%}
    {%- for name in stored_columns -%}
        {%- if name | lower not in taken | map('lower') -%}
            {%- do others.update({name: options}) -%}
            {%- for added in healing_tables._companion_columns(dict(options, name=name)) -%}
                {%- do taken.append((spec.get('column_names') or {}).get(added) or added) -%}
            {%- endfor -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(others) -}}
{%- endmacro %}

{#- The generated columns: those that the stored table has; in a new one those that a merge makes. -#}
{% macro _merged_names(spec, stored_columns) -%}
    {%- set given = spec.get('column_names') or {} -%}
    {%- set names = dict(given) -%}
    {%- for name, by_default in healing_tables._generated_names([], {}).items() if name not in given -%}
        {%- do names.update({name: healing_tables._find_column(name, stored_columns) if stored_columns
            else name if spec.get(name) is not none else none if name == 'compressed_row_count'
            else by_default if 4 not in healing_tables._scd_types(spec)
            else name if name == 'last_updated' else none}) -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}

{% macro _check_names_of_batch(mistakes, given) -%}
    {%- set seen = [] -%}
    {%- for name in given -%}
        {%- if name | lower in seen -%}
            {%- do healing_tables._mistake(mistakes, name, 'each column of the batch once', 'a name that occurs twice',
                'rename one') -%}
        {%- endif -%}
        {%- do seen.append(name | lower) -%}
    {%- endfor -%}
{%- endmacro %}

{#- Types that a dimension cannot have, and types of the batch that the stored columns cannot hold. -#}
{% macro _check_types_of_batch(mistakes, format, layout, stored_columns) -%}
    {%- for column in layout['keys'] + layout.attributes -%}
        {%- if healing_tables._has_no_equality(column.given) -%}
            {%- do healing_tables._mistake(mistakes, column.name, 'a type with equality', column.given,
                'convert it to text, an array or a struct without maps; a geometry with st_asbinary') -%}
        {%- elif column.type.startswith('char(') -%}
            {%- do healing_tables._mistake(mistakes, column.name, 'text of any length', column.type,
                'make it string or varchar') -%}
        {%- elif column.given == 'void' and column.name not in stored_columns -%}
            {%- do healing_tables._mistake(mistakes, column.name, 'a column with a type, since the table keeps it',
                column.given, 'cast it in the batch, for example cast(null as string)') -%}
        {%- else -%} {%- do healing_tables._check_stored_type(mistakes, column, column in layout['keys'], format) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set own = healing_tables._log_of_changes_columns() + layout.causes | map(attribute='name') | list -%}
    {%- for column in layout['keys'] + layout.attributes + layout.extra_ties -%}
        {%- if column.name | lower in own -%}
            {%- do healing_tables._mistake(mistakes, column.name, "a name other than the change log's own: "
                ~ (own | join(', ')), 'a column of the batch', 'rename it in the batch') -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- What type 4 cannot go together with. -#}
{% macro _check_type_4(mistakes, layout) -%}
    {%- set others = layout.attributes | map(attribute='options.scd_type') | select('in', [2, 3, 6]) | unique | sort
        | list -%}
    {%- if others -%}
        {%- do healing_tables._mistake(mistakes, 'attributes', 'type 4 alone, or with types 0 and 1',
            'type 4 with type ' ~ (others | join(', ')),
            'the history of type 4 is a separate table: choose 4 or the others') -%}
    {%- endif -%}
    {%- set own = ['valid_from', 'valid_to', 'history_id', 'change_reason'] -%}
    {%- for column in layout['keys'] + layout.attributes if column.name | lower in own -%}
        {%- do healing_tables._mistake(mistakes, column.name, "a name other than the history's own: "
            ~ (own | join(', ')), 'a name that is taken',
            'rename it in the batch, or leave it out of attributes') -%}
    {%- endfor -%}
{%- endmacro %}

{#- The moments of a stored dimension: their type, and the columns without which versions cannot be distinguished. -#}
{% macro _check_stored_moments(mistakes, spec, layout, stored_columns) -%}
    {%- set names = layout.names -%}
    {%- for name in ['valid_from', 'valid_to'] -%}
        {%- if layout.attributes | selectattr('options.scd_type', 'in', [2, 6]) | list
            and (names[name] is none or healing_tables._find_column(names[name], stored_columns) is none) -%}
            {%- do healing_tables._mistake(mistakes, name, 'a column of the stored table, since attributes of '
                'type 2 or 6 have versions', 'none', 'name it in column_names.' ~ name) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if healing_tables._has_history(layout) and names.last_updated is none -%}
        {%- do healing_tables._mistake(mistakes, 'last_updated',
            'a column of the stored table, since type 4 needs the start of a row', 'none',
            'name it in column_names.last_updated') -%}
    {%- endif -%}
    {%- set types = [] -%}
    {%- for name in ['valid_from', 'last_updated'] if names[name] is not none -%}
        {%- do types.append(healing_tables._type_of_column(stored_columns, names[name])) -%}
    {%- endfor -%}
    {%- set type = types | select('in', ['date', 'timestamp', 'timestamp_ntz']) | first -%}
    {%- if type == 'date' and layout.moment is not none and layout.moment_type != 'date' -%}
        {%- do healing_tables._mistake(mistakes, 'changed_at (' ~ layout.moment.name ~ ')',
            'a date, as the stored dimension has them', 'a timestamp', 'cast it in the batch') -%}
    {%- elif type == 'timestamp_ntz' -%}
        {%- do healing_tables._mistake(mistakes, names.valid_from or names.last_updated,
            'a date or a timestamp, for a merge as SQL', type, 'cast the column, or merge with the library') -%}
    {%- elif type -%} {%- do layout.update({'moment_type': type}) -%}
    {%- endif -%}
    {%- set known = healing_tables._columns_of_layout(spec, layout) | map('lower') | list -%}
    {%- for name, kind in stored_columns.items() if name | lower not in known -%}
        {%- do healing_tables._mistake(mistakes, name, 'a column of the spec',
            'a stored column of type ' ~ kind ~ ' that the batch and the spec do not have',
            'add it to the batch and to attributes; if it was renamed in the source, use the old name; '
            'if the source has lost it, set missing_columns: keep, or null') -%}
    {%- endfor -%}
    {%- for column in layout.attributes if config.get('on_schema_change') not in ['append_new_columns',
        'sync_all_columns']
        and healing_tables._find_column(column.name, stored_columns) is none -%}
        {%- do healing_tables._mistake(mistakes, column.name, 'a column of the stored table, which has '
            ~ (stored_columns | join(', ')), 'a column that is new in the batch',
            'leave it out, or set on_schema_change: append_new_columns') -%}
    {%- endfor -%}
{%- endmacro %}

{#- The names of all columns of the dimension. -#}
{% macro _columns_of_layout(spec, layout) -%}
    {%- set names = layout['keys'] | map(attribute='name') | list + layout.names.values() | reject('none') | list -%}
    {%- set surrogate = spec.get('surrogate_key') -%}
    {%- do names.append(surrogate if surrogate is string else surrogate.name) if surrogate -%}
    {%- for attribute in layout.attributes -%}
        {%- do names.append(attribute.name) -%}
        {%- for added in healing_tables._companion_columns(dict(attribute.options, name=attribute.name)) -%}
            {%- do names.append(layout.names.get(added) or added) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}
