{#-
    The rules of change data capture in a merge. Their rows are filled, moved and ended by the source of the call (see
    timeline/_cdc_rows.sql); the change log keeps them as they were sent, each different row of a key and moment.

    `rules` of a layout:

    has_rules         whether there is one, besides within
    ignore_nulls, unchanged_value   as of a source (see spec/_cdc_options.sql), for the attributes
    marks             the values of unchanged_value as they were given {attribute: value}
    has_sequence      the ties are those of sequence_by
    has_truncations   a row without a key ends all keys
-#}
{% macro _add_rules_of_batch(mistakes, spec, layout) -%}
    {%- set rules = {'ignore_nulls': [], 'unchanged_value': {}, 'marks': {}, 'has_truncations':
        spec.get('truncated_when') is not none, 'has_sequence': healing_tables._as_list(spec.get('sequence_by')) != []}
        -%}
    {%- set nulls = spec.get('ignore_nulls') or [] -%}
    {%- set names = layout.attributes | map(attribute='name') | list if nulls is sameas true
        else healing_tables._attributes_of_rule(mistakes, 'ignore_nulls', nulls, layout) -%}
    {%- do rules.ignore_nulls.extend(names | map('lower')) -%}
    {%- set unchanged = spec.get('unchanged_value') or {} -%}
    {%- if unchanged is not mapping -%}
        {%- do healing_tables._mistake(mistakes, 'unchanged_value', 'a map from column to value',
            healing_tables._display_value(unchanged), "write {'doc': '__debezium_unavailable_value'}") -%}
        {%- set unchanged = {} -%}
    {%- endif -%}
    {%- for column, value in unchanged.items() -%}
        {%- for name in healing_tables._attributes_of_rule(mistakes, 'unchanged_value', [column], layout) -%}
            {%- set attribute = layout.attributes | selectattr('name', 'equalto', name) | first -%}
            {%- do rules.marks.update({name: value}) -%}
            {%- do rules.unchanged_value.update({name | lower: healing_tables._mark_literal(mistakes,
                'unchanged_value.' ~ column, value, attribute.type)}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do healing_tables._mistake(mistakes, 'sequence_by', 'this option, or tie_break_by', 'both',
        'remove tie_break_by: sequence_by orders rows of one moment, too')
        if rules.has_sequence and spec.get('tie_break_by') -%}
    {%- do healing_tables._mistake(mistakes, 'full_batch', 'this option, or sequence_by', 'both',
        'merge the extract with the deletions as rows (deleted_when): a key that is missing has no place in a sequence')
        if rules.has_sequence and spec.get('full_batch') is sameas true -%}
    {%- set is_partial = rules.ignore_nulls or rules.unchanged_value -%}
    {%- do layout.update({'rules': dict(rules, has_rules=true if is_partial or rules.has_sequence
        or rules.has_truncations else false)}) -%}
    {#- rows that were logged without it are complete -#}
    {%- do layout.flags.append({'name': 'is_partial', 'quoted': 'is_partial', 'column': 'true', 'type': 'boolean'})
        if is_partial -%}
    {%- do healing_tables._add_parts_of_batch(mistakes, spec, layout) if spec.get('within') -%}
    {%- do healing_tables._add_first_starts(mistakes, spec, layout) if spec.get('valid_from_first') is mapping -%}
{%- endmacro %}

{#- The column of the log for `valid_from_first: {batch: column}`: from when on a row says that its key exists. -#}
{% macro _add_first_starts(mistakes, spec, layout) -%}
    {%- do healing_tables._check_options(mistakes, 'valid_from_first', spec.valid_from_first, ['batch']) -%}
    {%- set column = healing_tables._batch_column(mistakes, 'valid_from_first.batch', spec.valid_from_first.get('batch')
        | string, layout.given, {}) -%}
    {%- if column is none -%} {{ return(none) }} {%- endif -%}
    {%- do healing_tables._mistake(mistakes, 'valid_from_first.batch', 'a date or a timestamp', column.given,
        'cast it in the batch') if column.given not in ['date', 'timestamp', 'timestamp_ntz'] -%}
    {%- do layout.flags.append({'name': 'valid_from_first', 'quoted': 'valid_from_first', 'type': 'timestamp',
        'column': 'timestamp_micros(' ~ healing_tables._to_micros(column.column, column.given) ~ ')'}) -%}
    {%- do layout.update({'has_first_starts': true}) -%}
{%- endmacro %}

{#- The column of the log for `within`: the values of a row, or those for which a full batch is complete, as JSON.
    `layout.part`: SQL for it over the log, where rows of earlier merges may have NULL in this column. -#}
{% macro _add_parts_of_batch(mistakes, spec, layout) -%}
    {%- set given, stored = [], [] -%}
    {%- for name in healing_tables._as_list(spec.within) -%}
        {%- set known = namespace(column=none) -%}
        {%- for column in layout['keys'] + layout.attributes if column.given_name | lower == name | lower -%}
            {%- set known.column = column -%}
        {%- endfor -%}
        {%- set column = known.column or healing_tables._batch_column(mistakes, 'within', name, layout.given, {}) -%}
        {%- do given.append(healing_tables._value_in_batch(column) ~ ' as w' ~ loop.index) if column is not none -%}
        {%- do stored.append(known.column.quoted ~ ' as w' ~ loop.index) if known.column is not none -%}
    {%- endfor -%}
    {%- set text = ', ' ~ healing_tables._json_options() ~ ')' -%}
    {%- do layout.flags.append({'name': 'within_values', 'quoted': 'within_values', 'type': 'string',
        'column': 'to_json(struct(' ~ (given | join(', ')) ~ ')' ~ text}) -%}
    {%- do layout.update({'part': 'coalesce(within_values, to_json(struct(' ~ (stored | join(', ')) ~ ')' ~ text ~ ')'
        if stored | length == given | length else 'within_values'}) -%}
{%- endmacro %}

{#- The attributes that a rule names; other columns of the batch are not kept. -#}
{% macro _attributes_of_rule(mistakes, option, names, layout) -%}
    {%- set found, attributes = [], {} -%}
    {%- for attribute in layout.attributes -%}
        {%- do attributes.update({attribute.given_name | lower: attribute.name}) -%}
    {%- endfor -%}
    {%- for name in healing_tables._as_list(names) -%}
        {%- if name | lower in attributes -%} {%- do found.append(attributes[name | lower]) -%}
        {%- else -%} {%- do healing_tables._batch_column(mistakes, option, name, layout.given, {}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- Whether a row of the batch says something of an attribute, as SQL; none if every row does. -#}
{% macro _is_sent(layout, attribute, prefix) -%}
    {{- return(healing_tables._sent_condition(layout.rules, {'column': attribute.name,
        'quoted': prefix ~ attribute.quoted, 'type': attribute.type})) -}}
{%- endmacro %}

{#- The options of the source for these rules. -#}
{% macro _rules_of_source(layout) -%}
    {%- set rules, ties = layout.rules, layout.ties | map(attribute='name') | list -%}
    {{- return({
        'ignore_nulls': rules.ignore_nulls, 'unchanged_value': rules.marks,
        'sequence_by': ties + [healing_tables._moment_without_sequence()] if rules.has_sequence else [],
        'tie_break_by': ties if not rules.has_sequence else [],
        'truncated_when': healing_tables._has_no_key(layout) if rules.has_truncations else none}) -}}
{%- endmacro %}

{#- Stored versions, and rows that were logged before the option was set, have no sequence: their moments order them,
    before all rows that have one. -#}
{% macro _moment_without_sequence() -%} {{ return('healing_tables_moment') }} {%- endmacro %}

{#- That moment, as SQL over a row of the log; NULL if the row has a sequence. `ties`: its columns. -#}
{% macro _moment_if_unsequenced(ties) -%}
    {{- return('if(' ~ (ties | join(' is null and ')) ~ ' is null, changed_at, null)') -}}
{%- endmacro %}
