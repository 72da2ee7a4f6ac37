{#-
    The `layout` of a merge: which columns of the batch are what, in which types they are stored. The library has the
    same rules in definition/resolve_layout.py and stored_layout.py.

    given               the columns of the batch {name: type}
    keys, attributes    [{name, quoted (of the dimension), type (as it is stored), given_name, column (of the batch, as
                        text and as SQL), given (its type)}]; attributes also have options (see _attribute_options),
                        and is_missing if the batch lacks them
    ties                the same of the tie breakers, or of sequence_by; extra_ties: those that are neither keys nor
                        attributes
    causes              the same of the causes of a row, under the names of their options: those that the batch or the
                        stored table has
    rules               of change data capture, see _rules_of_batch.sql; flags: the columns that the log has for them
    part                what a row of the log is a part of (within), as SQL; none without this option
    has_first_starts    the log has a column valid_from_first
    has_null_keys       NULL in one of several key columns is a value
    carried             attributes, extra_ties, causes and flags: what a row of the log has besides its key
    moment              the same of changed_at, or none; moment_type: date or timestamp
    names               generated column to its name or none: column_names of dimension()
-#}
{% macro _merge_layout(mistakes, format, spec, given, stored_columns, at, logged_columns={}) -%}
    {%- set layout = {'given': given, 'keys': [], 'attributes': [], 'ties': [], 'extra_ties': [], 'causes': [],
        'flags': [], 'part': none, 'has_first_starts': false, 'moment': none,
        'has_null_keys': healing_tables._has_null_keys(spec.get('null_keys'), spec.key_columns),
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
    {%- for option in ['tie_break_by', 'sequence_by'] -%}
        {%- for name in healing_tables._as_list(spec.get(option)) -%}
            {%- set tie = healing_tables._batch_column(mistakes, option, name, given, {}) -%}
            {%- if tie is not none and healing_tables._has_no_equality(tie.given) -%}
                {%- do healing_tables._mistake(mistakes, option ~ ': ' ~ name, 'a column that can be sorted', tie.given,
                    'name another column, or a field of it in the batch') -%}
            {%- endif -%}
            {%- do layout.ties.append(tie) -%}
        {%- endfor -%}
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
    {%- do healing_tables._add_rules_of_batch(mistakes, spec, layout) -%}
    {%- do layout.update({'carried': layout.attributes + layout.extra_ties + layout.causes + layout.flags}) -%}
    {%- do healing_tables._check_types_of_batch(mistakes, format, layout, stored_columns) -%}
    {%- do healing_tables._check_type_4(mistakes, layout) if healing_tables._has_history(layout) -%}
    {%- do healing_tables._check_options_of_versions(mistakes, spec, layout, stored_columns) -%}
    {%- do healing_tables._check_stored_moments(mistakes, spec, layout, stored_columns) if stored_columns -%}
    {{- return(layout) -}}
{%- endmacro %}
