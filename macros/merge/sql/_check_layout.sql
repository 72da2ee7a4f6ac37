{#- What a layout cannot have: names, types, stored moments. -#}

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
    {%- set own = healing_tables._log_of_changes_columns() + (layout.causes + layout.flags) | map(attribute='name')
        | list -%}
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

{#- Options for versions: type 4 has none in the dimension. -#}
{% macro _check_options_of_versions(mistakes, spec, layout, stored_columns) -%}
    {%- for option, is_set in {'deleted_rows': spec.get('deleted_rows') is sameas true,
        'valid_from_first.batch': layout.has_first_starts}.items() if is_set and healing_tables._has_history(layout) -%}
        {%- do healing_tables._mistake(mistakes, option, 'attributes of types 0, 1, 2, 3 and 6', 'type 4',
            'leave this option out, or give the attributes type 2') -%}
    {%- endfor -%}
    {%- if spec.get('deleted_rows') is sameas true -%}
        {%- do healing_tables._mistake(mistakes, 'deleted_rows', 'this option, or current_while_deleted', 'both',
            'remove current_while_deleted: the row of a deleted key is current')
            if spec.get('current_while_deleted') is sameas true -%}
        {%- do healing_tables._mistake(mistakes, 'deleted_rows', 'a column ' ~ (layout.names.is_deleted or 'is_deleted')
            ~ ' in the stored table', 'a table without it',
            'run once with --full-refresh, which computes the dimension from its change log')
            if stored_columns and (layout.names.is_deleted is none
                or healing_tables._find_column(layout.names.is_deleted, stored_columns) is none) -%}
        {%- do healing_tables._mistake(mistakes, 'column_names.is_deleted', 'a name: with deleted_rows, only this '
            'column tells a deleted key', 'none', 'leave it out, or name it')
            if not stored_columns and layout.names.is_deleted is none and not healing_tables._has_history(layout) -%}
    {%- endif -%}
{%- endmacro %}

{#- The moments of a stored dimension: their type, and the columns without which versions cannot be distinguished. -#}
{% macro _check_stored_moments(mistakes, spec, layout, stored_columns) -%}
    {%- set names = layout.names -%}
    {%- for name in ['valid_from', 'valid_to'] -%}
        {%- if (layout.attributes | selectattr('options.scd_type', 'in', [2, 6]) | list
            or layout.names.get('is_deleted') is not none)
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
