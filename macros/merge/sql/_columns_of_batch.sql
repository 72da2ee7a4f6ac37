{#- What the options of a merge find in its batch: keys, attributes, causes, generated columns. -#}

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

{#- A value of the batch as it is stored. -#}
{% macro _value_in_batch(column) -%}
    {{- return('cast(' ~ healing_tables._normalized_value(column.column, column.given) ~ ' as ' ~ column.type ~ ')') -}}
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
    those that deleted_when and truncated_when name; if columns may be missing, also for other stored columns. -#}
{% macro _merged_attributes(mistakes, spec, given, stored_columns) -%}
    {%- set wanted = spec.get('attributes') -%}
    {%- if wanted is none or wanted is undefined -%} {%- set wanted = {'*': 2} -%}
    {%- elif wanted is not mapping -%}
        {%- set named = {} -%}
        {%- for name in healing_tables._as_list(wanted) -%} {%- do named.update({name: 2}) -%} {%- endfor -%}
        {%- set wanted = named -%}
    {%- endif -%}
    {%- set used = spec.key_columns + healing_tables._as_list(spec.get('tie_break_by'))
        + healing_tables._as_list(spec.get('sequence_by')) + healing_tables._as_list(spec.get('within')) -%}
    {%- set conditions = [spec.get('deleted_when'), spec.get('truncated_when')] | select | join(' ') -%}
    {%- for option in ['changed_at'] + healing_tables._cause_options() if spec.get(option) -%}
        {%- do used.append(spec[option]) -%}
    {%- endfor -%}
    {%- do used.append(spec.valid_from_first.get('batch') | string) if spec.get('valid_from_first') is mapping -%}
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
                and not (conditions and healing_tables._mentions_column(conditions, column)) -%}
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
    {%- for name, by_default in healing_tables._generated_names([], {}, none,
        spec.get('deleted_rows') is sameas true).items() if name not in given -%}
        {%- do names.update({name: healing_tables._find_column(name, stored_columns) if stored_columns
            else name if spec.get(name) is not none else none if name == 'compressed_row_count'
            else by_default if 4 not in healing_tables._scd_types(spec)
            else name if name == 'last_updated' else none}) -%}
    {%- endfor -%}
    {{- return(names) -}}
{%- endmacro %}
