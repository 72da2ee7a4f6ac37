{#-
    The options of a source for change data capture, checked:

    ignore_nulls     true, or the lower-case names of columns: a NULL was not sent
    unchanged_value  {lower-case column: SQL}: this value was not sent
    sequence_by      columns that order the rows of a key, whatever their moments
    truncated_when   a condition: the row ends all keys
    has_cdc_rules    whether there is one of them
    partial_when     the rows that may leave values out, or none: all (of a merge: those that were logged as such)
-#}
{% macro _cdc_options(mistakes, at, given, source) -%}
    {%- set nulls = given.get('ignore_nulls') or [] -%}
    {%- set unchanged, marks = given.get('unchanged_value') or {}, {} -%}
    {%- if unchanged is not mapping -%}
        {%- do healing_tables._mistake(mistakes, at ~ '.unchanged_value', 'a map from column to value',
            healing_tables._display_value(unchanged), "write {'doc': '__debezium_unavailable_value'}") -%}
        {%- set unchanged = {} -%}
    {%- endif -%}
    {%- set names = [] if nulls is sameas true else healing_tables._as_list(nulls) -%}
    {%- set sequence_by = healing_tables._as_list(given.get('sequence_by')) -%}
    {%- for option, columns in {'ignore_nulls': names, 'unchanged_value': unchanged | list,
        'sequence_by': sequence_by}.items() -%}
        {%- do healing_tables._check_columns(mistakes, at ~ '.' ~ option, columns, source.relation, source.columns) -%}
    {%- endfor -%}
    {%- for column, value in unchanged.items() -%}
        {%- do marks.update({column | lower: healing_tables._mark_literal(mistakes, at ~ '.unchanged_value.' ~ column,
            value, healing_tables._source_column_type(source, column))}) -%}
    {%- endfor -%}
    {%- do healing_tables._check_sortable(mistakes, at ~ '.sequence_by', source, sequence_by) -%}
    {%- do healing_tables._mistake(mistakes, at ~ '.sequence_by', 'this option, or tie_break_by',
        'both', 'remove tie_break_by: sequence_by orders rows of one moment, too')
        if sequence_by and source.tie_break_by -%}
    {%- set truncated_when = healing_tables._close_line_comment(given.get('truncated_when')) -%}
    {{- return({
        'ignore_nulls': true if nulls is sameas true else names | map('lower') | list, 'unchanged_value': marks,
        'sequence_by': sequence_by, 'truncated_when': truncated_when, 'first_sent': [],
        'has_cdc_rules': true if nulls or marks or sequence_by or truncated_when else false}) -}}
{%- endmacro %}

{#- A mark of a value that was not sent; for an array, a list. -#}
{% macro _mark_literal(mistakes, argument, value, type) -%}
    {%- if type is not none and type.startswith('array<') and value is sequence and value is not string -%}
        {%- set items = [] -%}
        {%- for item in value -%}
            {%- do items.append(healing_tables._mark_literal(mistakes, argument, item, type[6:-1])) -%}
        {%- endfor -%}
        {{- return('cast(array(' ~ (items | join(', ')) ~ ') as ' ~ type ~ ')') -}}
    {%- endif -%}
    {%- if type == 'binary' and value is string -%}
        {{- return('cast(' ~ healing_tables._string_literal(value) ~ ' as binary)') -}}
    {%- endif -%}
    {{- return(healing_tables._typed_literal(mistakes, argument, value, type)) -}}
{%- endmacro %}

{% macro _check_sortable(mistakes, argument, source, names) -%}
    {%- for name in names -%}
        {%- set type = healing_tables._source_column_type(source, name) -%}
        {%- if type is not none and healing_tables._has_no_equality(type) -%}
            {%- do healing_tables._mistake(mistakes, argument ~ ': ' ~ name, 'a column that can be sorted', type,
                'name another column, or a field of it in the source') -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Whether a row is a truncation, as SQL; NULL is not true. -#}
{% macro _is_truncation(source) -%} {{ return('coalesce((' ~ source.truncated_when ~ '), false)') }} {%- endmacro %}

{#- The field of a state that says whether a column was ever sent; of those that type 0 reads. -#}
{% macro _sent_flag(column) -%} {{ return(healing_tables._quoted(column ~ ' healing_tables sent')) }} {%- endmacro %}

{#- The columns that type 0 reads and that may not have been sent: its value is the first one sent. -#}
{% macro _first_sent_columns(source, attributes) -%}
    {%- set columns = [] -%}
    {%- for attribute in attributes if attribute.scd_type == 0 -%}
        {%- for entry in attribute.from if entry.source == source.name and (source.ignore_nulls is sameas true
            or entry.column | lower in source.ignore_nulls or entry.column | lower in source.unchanged_value) -%}
            {%- do columns.append(entry.column) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}
