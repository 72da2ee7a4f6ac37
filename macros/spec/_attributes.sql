{#-
    The attributes of a call, checked: [{name, rule, scd_type, type, changed_at, from: [{source, column, type}]}] in
    output order. '*' stands for every column that is not named; without `attributes` it is the whole list.
-#}
{% macro _attributes(mistakes, given, spec) -%}
    {%- set wanted = {} -%}
    {%- if given is none -%}
        {%- do wanted.update({'*': {}}) -%}
    {%- elif given is mapping -%}
        {%- do wanted.update(given) -%}
    {%- else -%}
        {%- for name in healing_tables._as_list(given) -%} {%- do wanted.update({name: {}}) -%} {%- endfor -%}
    {%- endif -%}
    {%- set attributes = [] -%}
    {%- for name, value in wanted.items() -%}
        {%- set options = healing_tables._attribute_options(mistakes, name, value) -%}
        {%- if name == '*' -%}
            {%- do attributes.extend(healing_tables._other_attributes(mistakes, options, wanted, spec)) -%}
        {%- else -%}
            {%- do attributes.append(healing_tables._attribute(mistakes, name, options, spec)) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(attributes) -}}
{%- endmacro %}

{#- A bare number is the SCD type. -#}
{% macro _attribute_options(mistakes, name, value) -%}
    {%- set at = 'attributes.' ~ name -%}
    {%- set options = {'rule': none, 'scd_type': 2, 'type': none, 'changed_at': false, 'from': none} -%}
    {%- if value is mapping -%}
        {%- do healing_tables._check_options(mistakes, at, value, options) -%}
        {%- do options.update(value) -%}
    {%- elif value is number and value is not boolean -%}
        {%- do options.update({'scd_type': value}) -%}
    {%- elif value is not none -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'an SCD type or a map', healing_tables._display_value(value),
            "write 2 or {'from': [...], 'rule': ..., 'scd_type': 2}") -%}
    {%- endif -%}
    {%- if options.scd_type is not number or options.scd_type not in [0, 1, 2, 3, 6] -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.scd_type', 'one of the numbers 0, 1, 2, 3, 6',
            healing_tables._display_value(options.scd_type),
            'type 4 is a pair of tables, not a select' if options.scd_type == 4 else 'choose one of them') -%}
        {%- do options.update({'scd_type': 2}) -%}
    {%- endif -%}
    {%- set rules = ['first_non_null', 'first_present', 'most_recent_row', 'most_recent_value'] -%}
    {%- do healing_tables._check_choice(mistakes, at ~ '.rule', options.rule, rules) if options.rule is not none -%}
    {%- if options.changed_at and options.scd_type not in [1, 3] -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.changed_at', 'an attribute of type 1 or 3', 'type ' ~ options.scd_type,
            'remove it: valid_from is the moment at which a versioned value starts') -%}
    {%- endif -%}
    {{- return(options) -}}
{%- endmacro %}

{% macro _attribute(mistakes, name, options, spec) -%}
    {%- set at = 'attributes.' ~ name -%}
    {%- set from = [] -%}
    {%- if options.from -%}
        {%- for entry in ([options.from] if options.from is mapping else healing_tables._as_list(options.from)) -%}
            {%- do from.append(healing_tables._attribute_origin(mistakes, at, entry, name, spec.sources)) -%}
        {%- endfor -%}
    {%- else -%}
        {#- a column that '*' leaves out can still be named -#}
        {%- do from.extend(healing_tables._sources_of(name, spec, false)
            or healing_tables._sources_of(name, spec, true)) -%}
        {%- if not from -%}
            {%- set columns = healing_tables._columns_of_sources(spec.sources) -%}
            {%- do healing_tables._mistake(
                mistakes, at, 'a column of ' ~ (spec.sources | map(attribute='relation') | join(', ')), name,
                (healing_tables._did_you_mean(name, columns) or 'correct the name, or set from') ~ '; the columns are '
                ~ (columns | join(', '))) -%}
        {%- elif from | length > 1 and options.rule is none -%}
            {%- do healing_tables._mistake(
                mistakes, at, 'a rule: the column is in ' ~ (from | map(attribute='source') | join(' and ')), 'none',
                "set {'from': [...], 'rule': ...}") -%}
        {%- endif -%}
    {%- endif -%}
    {%- set from = from | select | list -%}
    {%- set type = healing_tables._type_name(options.type) -%}
    {%- set types = [] -%}
    {%- for entry in from -%}
        {%- set source = spec.sources | selectattr('name', 'equalto', entry.source) | first -%}
        {%- do entry.update({'type': healing_tables._plain_type(
            healing_tables._source_column_type(source, entry.column)
            or healing_tables._source_column_type(source, name))}) -%}
        {%- do types.append(entry.type) -%}
        {%- do healing_tables._check_attribute_type(mistakes, at, entry.type, type) -%}
    {%- endfor -%}
    {%- set common = (type or healing_tables._common_type(types)) if types else none -%}
    {%- if common == 'mixed' -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'one type over all sources', types | join(', '),
            "add 'type', or cast the columns in the sources") -%}
    {%- endif -%}
    {{- return({
        'name': name, 'rule': options.rule or 'first_non_null', 'scd_type': options.scd_type, 'type': common,
        'changed_at': options.changed_at, 'from': from}) -}}
{%- endmacro %}

{#- The sources that have a column of this name: entries of `from`. -#}
{% macro _sources_of(name, spec, is_named) -%}
    {%- set found = [] -%}
    {%- for source in spec.sources -%}
        {%- set usable = healing_tables._usable_columns(source, [], is_named) -%}
        {%- set column = name if usable is none and spec.sources | length == 1
            else healing_tables._find_column(name, usable or []) -%}
        {%- if column is not none -%} {%- do found.append({'source': source.name, 'column': column}) -%} {%- endif -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{% macro _columns_of_sources(sources) -%}
    {%- set columns = [] -%}
    {%- for source in sources -%} {%- do columns.extend(source.columns or []) -%} {%- endfor -%}
    {{- return(columns | unique | list) -}}
{%- endmacro %}

{% macro _check_attribute_type(mistakes, at, from_type, type) -%}
    {%- if from_type is not none and healing_tables._has_no_equality(from_type) -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'a type with equality', from_type,
            'convert it to text, an array or a struct without maps') -%}
    {%- elif type is not none and not healing_tables._can_cast(from_type, type) -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.type', 'a type that ' ~ from_type ~ ' converts to in the same way everywhere', type,
            'cast the column in the source') -%}
    {%- endif -%}
{%- endmacro %}

{#- One entry of `from`: 'source', 'source.column' or {source, column}. -#}
{% macro _attribute_origin(mistakes, at, entry, name, sources) -%}
    {%- set found = [] -%}
    {%- for source in sources -%}
        {%- if entry is mapping and entry.get('source') == source.name -%}
            {%- do found.append({'source': source, 'column': entry.get('column') or name}) -%}
        {%- elif entry is string and entry == source.name -%}
            {%- do found.append({'source': source, 'column': name}) -%}
        {%- elif entry is string and entry.startswith(source.name ~ '.') -%}
            {%- do found.append({'source': source, 'column': entry[source.name | length + 1:]}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if not found -%}
        {%- set names = sources | map(attribute='name') | list -%}
        {%- set given = entry.get('source') if entry is mapping else (entry | string).split('.')[0] -%}
        {%- do healing_tables._mistake(mistakes, at ~ '.from', 'a source: ' ~ (names | join(', ')), entry | string,
            healing_tables._did_you_mean(given, names) or 'correct the name') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set source = found[0].source -%}
    {%- do healing_tables._check_columns(mistakes, at ~ '.from', [found[0].column], source.relation, source.columns) -%}
    {{- return({'source': source.name, 'column': healing_tables._find_column(found[0].column, source.columns or [])
        or found[0].column}) -}}
{%- endmacro %}

{#- The attributes that '*' stands for. -#}
{% macro _other_attributes(mistakes, options, wanted, spec) -%}
    {%- set named = wanted.keys() | reject('equalto', '*') | map('lower') | list -%}
    {%- set attributes = {} -%}
    {%- for source in spec.sources -%}
        {%- set usable = healing_tables._usable_columns(source, healing_tables._explicit_columns(source, wanted)) -%}
        {%- if usable is none -%}
            {%- do healing_tables._mistake(
                mistakes, 'attributes', 'the columns of ' ~ source.relation,
                'a relation whose columns cannot be looked up',
                'name them in attributes, in columns of the source, or in column_types.' ~ source.name) -%}
        {%- endif -%}
        {%- for column in usable or [] if column | lower not in named -%}
            {%- if column | lower in attributes and options.rule is none -%}
                {%- do healing_tables._mistake(
                    mistakes, 'attributes.' ~ column, 'a rule: the column is in '
                    ~ attributes[column | lower].from[0].source
                    ~ ' and ' ~ source.name, 'none',
                    "set {'from': [...], 'rule': ...}, or exclude it from one of them") -%}
            {%- else -%}
                {%- do attributes.update({column | lower: healing_tables._attribute(
                    mistakes, column,
                    dict(options, **{'from': none if options.rule is not none
                        else {'source': source.name, 'column': column}}),
                    spec)}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(attributes.values() | list) -}}
{%- endmacro %}

{#- Columns of a source that any attribute names in its `from`. -#}
{% macro _explicit_columns(source, wanted) -%}
    {%- set columns = [] -%}
    {%- for name, value in wanted.items() if value is mapping and value.get('from') -%}
        {%- for entry in ([value.from] if value.from is mapping else healing_tables._as_list(value.from)) -%}
            {%- if entry is mapping and entry.get('source') == source.name and entry.get('column') -%}
                {%- do columns.append(entry.column) -%}
            {%- elif entry is string and entry.startswith(source.name ~ '.') -%}
                {%- do columns.append(entry[source.name | length + 1:]) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#-
    The usable columns of a source: all except its keys, moments, tie breakers, loaded_at and those in deleted_when. Its
    `columns` may list the last three, and an attribute that is named may be any of them.
-#}
{% macro _usable_columns(source, also_excluded, is_named=false) -%}
    {%- if source.only is none and source.columns is none -%} {{ return(none) }} {%- endif -%}
    {%- set excluded = source.exclude + also_excluded -%}
    {%- if not is_named -%}
        {%- set excluded = excluded + (source.key_columns | map(attribute='column') | list) + ([source.moment,
            source.until] | select | list) -%}
    {%- endif -%}
    {%- set is_all = source.only is none and not is_named -%}
    {%- if is_all -%}
        {%- set excluded = excluded + source.tie_break_by + ([source.loaded_at] | select | list) -%}
    {%- endif -%}
    {%- set lowered = excluded | map('lower') | list -%}
    {%- set usable = [] -%}
    {%- for column in (source.columns if source.only is none else healing_tables._as_list(source.only))
        if column | lower not in lowered -%}
        {%- if not (is_all and healing_tables._mentions_column(source.deleted_when, column)) -%}
            {%- do usable.append(column) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(usable) -}}
{%- endmacro %}
