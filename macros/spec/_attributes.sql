{#-
    The attributes of a call, checked, in output order: [{name, quoted (the name in SQL), rule, scd_type, type,
    changed_at, companions (names of the columns that its SCD type adds), first_column (of type 0: its column of
    `slices`), from: [{source, column, quoted, type, change (with a rule most_recent_*: see _number_changes)}]}].
    '*' stands for every column that is not named; without `attributes` it is the whole list.
-#}
{% macro _attributes(mistakes, given, sources) -%}
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
            {%- do attributes.extend(healing_tables._other_attributes(mistakes, options, wanted, sources)) -%}
        {%- else -%}
            {%- do attributes.append(healing_tables._attribute(name, options,
                healing_tables._attribute_origins(mistakes, name, options, sources))) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._set_attribute_types(mistakes, attributes, sources) -%}
    {%- for attribute in attributes | selectattr('scd_type', 'equalto', 0) -%}
        {%- do attribute.update({'first_column': 'first_' ~ loop.index}) -%}
    {%- endfor -%}
    {%- do healing_tables._number_changes(attributes) -%}
    {{- return(attributes) -}}
{%- endmacro %}

{#- Number the changes that the rules most_recent_row (of a source) and most_recent_value (of a column) watch. -#}
{% macro _number_changes(attributes) -%}
    {%- set numbers = {} -%}
    {%- for attribute in attributes if attribute.rule.startswith('most_recent') and attribute.from | length > 1 -%}
        {%- for entry in attribute.from -%}
            {%- set id = [entry.source, entry.column if attribute.rule == 'most_recent_value' else none] | string -%}
            {%- do numbers.update({id: numbers | length + 1}) if id not in numbers -%}
            {%- do entry.update({'change': numbers[id]}) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}

{#- A bare number is the SCD type. `types`: those that are possible. -#}
{% macro _attribute_options(mistakes, name, value, types=[0, 1, 2, 3, 6]) -%}
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
    {%- if options.scd_type is not number or options.scd_type not in types -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.scd_type', 'one of the numbers ' ~ (types | join(', ')),
            healing_tables._display_value(options.scd_type),
            'type 4 is a pair of tables, not a select' if options.scd_type == 4 else 'choose one of them') -%}
        {%- do options.update({'scd_type': 2}) -%}
    {%- endif -%}
    {%- do options.update({'type': healing_tables._type_name(options.type)}) -%}
    {%- set rules = ['first_non_null', 'first_present', 'most_recent_row', 'most_recent_value'] -%}
    {%- do healing_tables._check_choice(mistakes, at ~ '.rule', options.rule, rules) if options.rule is not none -%}
    {%- if options.changed_at and options.scd_type not in [1, 3] -%}
        {%- do healing_tables._mistake(
            mistakes, at ~ '.changed_at', 'an attribute of type 1 or 3', 'type ' ~ options.scd_type,
            'remove it: valid_from is the moment at which a versioned value starts') -%}
    {%- endif -%}
    {{- return(options) -}}
{%- endmacro %}

{#- An attribute before its types are known. -#}
{% macro _attribute(name, options, from) -%}
    {%- set attribute = dict(options, name=name, quoted=healing_tables._quoted(name),
        rule=options.rule or 'first_non_null', from=from) -%}
    {%- for entry in from -%}
        {%- do entry.update({'quoted': attribute.quoted if entry.column == name
            else healing_tables._quoted(entry.column)}) -%}
    {%- endfor -%}
    {%- do attribute.update({'companions': healing_tables._companion_columns(attribute)}) -%}
    {{- return(attribute) -}}
{%- endmacro %}

{#- Columns that an SCD type adds. -#}
{% macro _companion_columns(attribute) -%}
    {%- set extra = [] -%}
    {%- if attribute.scd_type == 6 -%} {%- do extra.append('current_' ~ attribute.name) -%} {%- endif -%}
    {%- if attribute.scd_type in [3, 6] -%} {%- do extra.append('previous_' ~ attribute.name) -%} {%- endif -%}
    {%- if attribute.changed_at -%} {%- do extra.append(attribute.name ~ '_changed_at') -%} {%- endif -%}
    {{- return(extra) -}}
{%- endmacro %}

{#- The columns that an attribute is read from: entries of `from`. -#}
{% macro _attribute_origins(mistakes, name, options, sources) -%}
    {%- set at, from = 'attributes.' ~ name, [] -%}
    {%- if options.from -%}
        {%- for entry in ([options.from] if options.from is mapping else healing_tables._as_list(options.from)) -%}
            {%- do from.append(healing_tables._attribute_origin(mistakes, at, entry, name, sources)) -%}
        {%- endfor -%}
        {{- return(from | select | list) -}}
    {%- endif -%}
    {#- a column that '*' leaves out can still be named -#}
    {%- do from.extend(healing_tables._sources_of(name, sources, 'usable')
        or healing_tables._sources_of(name, sources, 'nameable')) -%}
    {%- if not from -%}
        {%- set columns = healing_tables._columns_of_sources(sources) -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'a column of ' ~ (sources | map(attribute='relation') | join(', ')), name,
            (healing_tables._did_you_mean(name, columns) or 'correct the name, or set from') ~ '; the columns are '
            ~ (columns | join(', '))) -%}
    {%- elif from | length > 1 and options.rule is none -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'a rule: the column is in ' ~ (from | map(attribute='source') | join(' and ')), 'none',
            "set {'from': [...], 'rule': ...}") -%}
    {%- endif -%}
    {{- return(from) -}}
{%- endmacro %}

{#- The sources that have a column of this name among those that are `usable` or `nameable`: entries of `from`. -#}
{% macro _sources_of(name, sources, which) -%}
    {%- set found = [] -%}
    {%- for source in sources -%}
        {%- set column = name if source[which] is none and sources | length == 1
            else (source[which] or {}).get(name | string | lower) -%}
        {%- if column is not none -%} {%- do found.append({'source': source.name, 'column': column}) -%} {%- endif -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{% macro _columns_of_sources(sources) -%}
    {%- set columns = [] -%}
    {%- for source in sources -%} {%- do columns.extend(source.columns or []) -%} {%- endfor -%}
    {{- return(columns | unique | list) -}}
{%- endmacro %}

{#- Set the types of the columns that attributes are read from, and those of the attributes. Columns of the same types
    are checked once. -#}
{% macro _set_attribute_types(mistakes, attributes, sources) -%}
    {%- set types_of, checked = {}, {} -%}
    {%- for source in sources -%} {%- do types_of.update({source.name: source.types}) -%} {%- endfor -%}
    {%- for attribute in attributes -%}
        {%- set types = [] -%}
        {%- for entry in attribute.from -%}
            {%- do types.append(types_of[entry.source].get(entry.column | string | lower)
                or types_of[entry.source].get(attribute.name | string | lower)) -%}
        {%- endfor -%}
        {%- set id = [types, attribute.type] | string -%}
        {%- do checked.update({id: healing_tables._checked_types(types, attribute.type)}) if id not in checked -%}
        {%- for entry in attribute.from -%}
            {%- do entry.update({'type': checked[id].types[loop.index0]}) -%}
        {%- endfor -%}
        {%- do attribute.update({'type': checked[id].common}) -%}
        {%- for mistake in checked[id].mistakes -%}
            {%- do mistakes.append(dict(mistake, argument='attributes.' ~ attribute.name ~ mistake.argument)) -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro %}

{#- The types of an attribute's source columns, checked: {types (as the package reads them), common (the type of the
    attribute), mistakes (their argument follows the name of the attribute)}. `wanted`: the option `type`, or none. -#}
{% macro _checked_types(types, wanted) -%}
    {%- set plain, mistakes = [], [] -%}
    {%- for type in types -%}
        {%- do plain.append(healing_tables._plain_type(type)) -%}
        {%- do healing_tables._check_attribute_type(mistakes, '', plain[-1], wanted) -%}
    {%- endfor -%}
    {%- set common = (wanted or healing_tables._common_type(plain)) if plain else none -%}
    {%- if common == 'mixed' -%}
        {%- do healing_tables._mistake(
            mistakes, '', 'one type over all sources', plain | join(', '),
            "add 'type', or cast the columns in the sources") -%}
    {%- endif -%}
    {{- return({'types': plain, 'common': common, 'mistakes': mistakes}) -}}
{%- endmacro %}

{% macro _check_attribute_type(mistakes, at, from_type, type) -%}
    {%- if from_type is not none and healing_tables._has_no_equality(from_type) -%}
        {%- do healing_tables._mistake(
            mistakes, at, 'a type with equality', from_type,
            'convert it to text, an array or a struct without maps; a geometry with st_asbinary') -%}
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
    {%- set source, column = found[0].source, found[0].column -%}
    {%- set spelled = source.spellings.get(column | string | lower) -%}
    {%- do healing_tables._check_columns(mistakes, at ~ '.from', [column], source.relation, source.columns)
        if spelled is none -%}
    {{- return({'source': source.name, 'column': spelled or column}) -}}
{%- endmacro %}

{#- The attributes that '*' stands for. -#}
{% macro _other_attributes(mistakes, options, wanted, sources) -%}
    {%- set named = healing_tables._spellings(wanted.keys() | reject('equalto', '*')) -%}
    {%- set found = {} -%}
    {%- for source in sources -%}
        {%- set explicit = healing_tables._spellings(healing_tables._explicit_columns(source, wanted)) -%}
        {%- if source.usable is none -%}
            {%- do healing_tables._mistake(
                mistakes, 'attributes', 'the columns of ' ~ source.relation,
                'a relation whose columns cannot be looked up',
                'name them in attributes, in columns of the source, or in column_types.' ~ source.name) -%}
        {%- endif -%}
        {%- for lower, column in (source.usable or {}).items() if lower not in named and lower not in explicit -%}
            {%- if lower in found and options.rule is none -%}
                {%- do healing_tables._mistake(
                    mistakes, 'attributes.' ~ column, 'a rule: the column is in ' ~ found[lower].from[0].source
                    ~ ' and ' ~ source.name, 'none',
                    "set {'from': [...], 'rule': ...}, or exclude it from one of them") -%}
            {%- else -%}
                {%- do found.update({lower: {'name': column, 'from': [
                    {'source': source.name, 'column': source.spellings.get(lower, column)}]}}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set attributes = [] -%}
    {%- for column in found.values() -%}
        {%- do attributes.append(healing_tables._attribute(column.name, options, column.from if options.rule is none
            else healing_tables._attribute_origins(mistakes, column.name, dict(options, **{'from': none}),
            sources))) -%}
    {%- endfor -%}
    {{- return(attributes) -}}
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
