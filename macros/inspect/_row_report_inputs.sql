{#-
    Both sides of a comparison, for a rebuild (`other` none) or another table: `inputs`, with

    stored_rows, rows   SQL for a `from`
    stored, other       the select lists over them: key_1.., start, and `compared`, the columns that both have in the
                        same type
    key_columns, key_names ('key_1, key_2'), columns (those in `compared`)
    types {column: type}, key_types, start_text (SQL), start_name, called (what the other side is called)
    left_out            {reason: column names}; other_shape: the reasons for which a rebuild has other columns than the
                        table
-#}
{% macro _row_report_inputs(rendering, existing, other=none, filter=none) -%}
    {%- set settings = rendering.settings -%}
    {%- if other is none -%}
        {%- set stored_rows = existing | string -%}
        {%- set rows = rendering.sql -%}
        {%- set stored_columns = healing_tables._columns_of(existing) -%}
    {%- else -%}
        {%- set stored = healing_tables._compared_columns(settings, healing_tables._columns_of(existing)) -%}
        {%- set others = healing_tables._compared_columns(settings,
            healing_tables._described_columns(other)) -%}
        {%- set stored_rows = '(\n' ~ healing_tables._with_same_open_end(settings, existing, stored, others) ~ '\n)' -%}
        {%- set rows = healing_tables._with_same_open_end(settings, other, others, stored) -%}
        {%- set stored_columns = healing_tables._query_columns('select * from ' ~ stored_rows) -%}
    {%- endif -%}
    {%- set other_columns = healing_tables._query_columns(rows) -%}
    {%- if filter -%}
        {%- set stored_rows = '(select * from ' ~ stored_rows ~ ' where ' ~ filter ~ ')' -%}
        {%- set rows = 'select * from (\n' ~ rows ~ '\n) where ' ~ filter -%}
    {%- endif -%}
    {%- do healing_tables._check_compared_columns(rendering, existing, other, stored_columns, other_columns) -%}
    {%- set inputs = healing_tables._row_report_inputs_of(settings, stored_rows, rows, stored_columns, other_columns,
        'rebuilt' if other is none else 'other') -%}
    {{- return(dict(inputs, other_shape=[] if other is not none
        else inputs.left_out.keys() | reject('in', ['integer keys, which only a build assigns',
            'of a type without equality']) | list)) -}}
{%- endmacro %}

{#- The `inputs` of two selects, without other_shape. -#}
{% macro _row_report_inputs_of(settings, stored_rows, rows, stored_columns, other_columns, called) -%}
    {%- set inputs = healing_tables._compared_selects(settings, stored_rows, rows, stored_columns, other_columns) -%}
    {%- set key_types = [] -%}
    {%- for key in settings.key_columns -%}
        {%- do key_types.append(healing_tables._comparable_column(key, stored_columns, other_columns).type) -%}
    {%- endfor -%}
    {%- set start_text = 'cast(start as string)' -%}
    {%- if settings.valid_from is not none -%}
        {%- set type = healing_tables._comparable_column(settings.valid_from, stored_columns, other_columns).type -%}
        {%- set start_text = healing_tables._as_text(*(['timestamp_micros(start)', 'timestamp'] if type == 'micros'
            else ['start', type])) -%}
    {%- endif -%}
    {%- set left_out = healing_tables._uncompared_columns(settings, inputs, stored_columns, other_columns, called) -%}
    {{- return(dict(
        inputs, types=stored_columns, key_types=key_types, start_text=start_text, start_name=settings.valid_from,
        called=called, left_out=left_out)) -}}
{%- endmacro %}

{#- How both sides are read for the comparison: the first fields of `inputs`. -#}
{% macro _compared_selects(settings, stored_rows, rows, stored_columns, other_columns) -%}
    {%- set shared = [] -%}
    {%- set compared = [] -%}
    {%- set lists = {'stored': [], 'candidate': []} -%}
    {%- for name, type in other_columns.items() if stored_columns.get(name) == type
        and not healing_tables._has_no_equality(type) -%}
        {%- do shared.append(name) -%}
        {%- do compared.append(healing_tables._normalized_value(healing_tables._quoted(name), type) ~ ' as '
            ~ healing_tables._quoted(name)) -%}
    {%- endfor -%}
    {%- for side, parts in lists.items() -%}
        {%- for key in settings.key_columns -%}
            {%- do parts.append(healing_tables._comparable_column(key, stored_columns, other_columns)[side] ~ ' as key_'
                ~ loop.index) -%}
        {%- endfor -%}
        {%- do parts.append(('cast(null as bigint)' if settings.valid_from is none
            else healing_tables._comparable_column(settings.valid_from, stored_columns, other_columns)[side])
            ~ ' as start') -%}
        {%- do parts.append('struct(' ~ (compared | join(', ') or 'true as nothing') ~ ') as compared') -%}
    {%- endfor -%}
    {{- return({
        'stored_rows': stored_rows, 'rows': '(\n' ~ rows ~ '\n)', 'stored': lists.stored | join(', '),
        'other': lists.candidate | join(', '), 'key_columns': settings.key_columns,
        'key_names': healing_tables._key_names(settings.key_columns), 'columns': shared}) -}}
{%- endmacro %}

{#- The table that the model has built. -#}
{% macro _stored_table(macro_name, rendering) -%}
    {%- set existing = load_relation(rendering.relation) -%}
    {%- if existing is none -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a table that has been built', rendering.relation ~ ', which does not exist',
            'dbt run --select ' ~ rendering.node.name) -%}
        {%- do healing_tables._raise_mistakes(macro_name, mistakes) -%}
    {%- endif -%}
    {{- return(existing) -}}
{%- endmacro %}

{#- Which columns are not compared, and why. -#}
{% macro _uncompared_columns(settings, inputs, stored_columns, other_columns, called) -%}
    {%- set found = {
        'integer keys, which only a build assigns': [], 'only stored': [], 'only ' ~ called: [], 'of another type': [],
        'of a type without equality': []} -%}
    {%- for name, type in stored_columns.items() if name not in inputs.columns -%}
        {%- if name == settings.get('sequence') and name not in other_columns -%} {%- set which,
            what = 'integer keys, which only a build assigns', name -%}
        {%- elif name not in other_columns -%} {%- set which, what = 'only stored', name -%}
        {%- elif other_columns[name] != type -%}
            {%- set which, what = 'of another type', name ~ ' (' ~ type ~ ' stored, ' ~ other_columns[name] ~ ' '
                ~ called ~ ')' -%}
        {%- else -%} {%- set which, what = 'of a type without equality', name ~ ' (' ~ type ~ ')' -%}
        {%- endif -%}
        {%- do found[which].append(what) -%}
    {%- endfor -%}
    {%- for name in other_columns if name not in stored_columns -%}
        {%- do found['only ' ~ called].append(name) -%}
    {%- endfor -%}
    {%- set left_out = {} -%}
    {%- for which, names in found.items() if names -%}
        {%- do left_out.update({which: names | join(', ')}) -%}
    {%- endfor -%}
    {{- return(left_out) -}}
{%- endmacro %}

{#- Rows are matched by key and start: both sides must have these columns. -#}
{% macro _check_compared_columns(rendering, existing, other, stored_columns, other_columns) -%}
    {%- set mistakes = [] -%}
    {%- set wanted = rendering.settings.key_columns + ([rendering.settings.valid_from]
        if rendering.settings.valid_from is not none else []) -%}
    {%- for relation, columns in [(existing | string, stored_columns), ((other or 'the model') | string,
        other_columns)] -%}
        {%- for name in wanted if name not in columns -%}
            {%- do healing_tables._mistake(
                mistakes, relation, 'the column ' ~ name ~ ', by which rows are matched',
                'columns ' ~ (columns | join(', ')),
                'compare with a view that has it under this name') -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes('compare', mistakes) -%}
{%- endmacro %}

{#-
    The columns of a table as [{column, name, type}], with the dimension's names for them. A table of a dbt snapshot is
    recognized by its own column names.
-#}
{% macro _compared_columns(settings, columns) -%}
    {%- set names = {} -%}
    {%- if 'dbt_valid_from' in columns and 'dbt_valid_to' in columns and settings.valid_from not in columns -%}
        {%- do names.update({'dbt_valid_from': settings.valid_from, 'dbt_valid_to': settings.valid_to}) -%}
    {%- endif -%}
    {%- set found = [] -%}
    {%- for column, type in columns.items() -%}
        {%- do found.append({'column': column, 'name': names.get(column, column), 'type': type}) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#-
    A table with its moments converted to match the other one: open ends become that of the dimension, since two tables
    may use different ones; if one side has dates and the other timestamps, a date becomes midnight UTC. A snapshot row
    that only marks a deletion is not a version.
-#}
{% macro _with_same_open_end(settings, relation, columns, others) -%}
    {%- set parts = [] -%}
    {%- set moments = ['date', 'timestamp', 'timestamp_ntz'] -%}
    {%- for column in columns -%}
        {%- set expression = healing_tables._quoted(column.column) -%}
        {%- set type = column.type -%}
        {%- if column.name in [settings.valid_from, settings.valid_to] and type in moments -%}
            {%- set opposite = others | selectattr('name', 'equalto', column.name) | list -%}
            {%- if opposite and opposite[0].type != type and opposite[0].type in moments -%}
                {%- set expression = healing_tables._cast(expression, type, 'timestamp') -%}
                {%- set type = 'timestamp' -%}
            {%- endif -%}
            {%- if column.name == settings.valid_to and type != 'timestamp_ntz' -%}
                {%- set expression = 'if(' ~ expression ~ ' is null or ' ~ healing_tables._to_micros(expression, type)
                    ~ ' >= '
                    ~ healing_tables._end_of_time(settings.valid_to_current) ~ ', '
                    ~ healing_tables._open_end(settings.valid_to_current, type) ~ ', ' ~ expression ~ ')' -%}
            {%- endif -%}
        {%- endif -%}
        {%- do parts.append(expression ~ ' as ' ~ healing_tables._quoted(column.name)) -%}
    {%- endfor -%}
    {%- set column_names = columns | map(attribute='column') | list -%}
    {%- if 'dbt_valid_to' in column_names and settings.is_current not in column_names
        and settings.is_current is not none and settings.current_value is sameas true -%}
        {%- do parts.append('dbt_valid_to is null as ' ~ healing_tables._quoted(settings.is_current)) -%}
    {%- endif -%}
    {{- return(
        'select ' ~ (parts | join(', ')) ~ ' from ' ~ relation
        ~ (" where not coalesce(lower(dbt_is_deleted) = 'true', false)" if 'dbt_is_deleted' in column_names
            and 'dbt_valid_from' in column_names)) -}}
{%- endmacro %}
