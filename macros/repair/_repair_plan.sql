{#-
    What a repair does with each stored row, as CTEs that end in `repaired`. fate: NULL for a row that is kept, else why
    it is removed. In a row that is kept, only the columns of `after` change: starts, keys, hashes and surrogate keys do
    not.

    id | valid_from | valid_to   | is_current        row | fate       | valid_to   | is_current
    1  | 2024-01-01 | (open)     | true         ->   1   | NULL       | 2024-03-01 | false
    1  | 2024-03-01 | (open)     | true              2   | NULL       | (open)     | true
    1  | 2024-05-01 | 2024-04-01 | false             3   | inverted   |            |

    Every step uses only the rows of one key, so there is one shuffle. Rows with equal sort keys are equal in every
    column: the plan does not depend on the order in which rows are read.
-#}
{% macro _repair_plan(stored_table) -%}
{%- set keys = healing_tables._key_names(stored_table.key_columns) -%}
{%- set from_type = stored_table.columns[healing_tables._find_column(stored_table.valid_from, stored_table.columns)] -%}
{{ healing_tables._checked_rows(stored_table) }},
judged as (
    select *,
        {{ healing_tables._row_content('row.', stored_table.columns) }} as content,
        {{ healing_tables._current_condition(dict(stored_table, is_current=none, valid_to='valid_to')) }} as is_open,
        case
            when {% for key in stored_table.key_columns %}key_{{ loop.index }} is null{{
                (' and ' if stored_table.has_null_keys else ' or ') if not loop.last }}{% endfor %} then 'null_key'
            when valid_from is null or {{ healing_tables._to_micros('valid_from',
                from_type) }} >= {{ healing_tables._end_of_time(stored_table.valid_to_current) }} then 'bad_start'
            when valid_to is not null and {{ healing_tables._is_violated(stored_table, 'valid_order', {}) }}
            then 'inverted'
        end as unfit
    from checked
),
in_line as (
    select *,
        lead(content) over by_start <=> content as is_copy,
        lead(valid_from) over by_start as next_start
    from judged
    window by_start as (
        partition by {{ keys }}
        {#- of rows with the same start, the last one is kept #}
        order by unfit is null, valid_from, is_current, is_open, valid_to{{ ', row.'
            ~ healing_tables._quoted(stored_table.version) if stored_table.version is not none }}, content
    )
),
cut as (
    select *,
        case
            when is_copy then 'exact_duplicate'
            when unfit is not null then unfit
            when next_start <=> valid_from then 'same_start'
        end as lost_as,
        case
            when valid_to is null then coalesce(next_start, {{ stored_table.open_end }})
            when next_start < valid_to then next_start
            else valid_to
        end as cut_to
    from in_line
),
joined as (
    select *,
        {{ healing_tables._is_repeat(stored_table.tracked, 'kept.cut_to', 'kept.row')
            if healing_tables._merges_repeats(stored_table) else 'false' }} as is_joined
    from (
        select *, lag(struct(cut_to, row)) over (partition by {{ keys }}, lost_as order by valid_from) as kept
        from cut
    )
),
numbered as (
    select *, sum(if(is_joined, 0, 1)) over (partition by {{ keys }}, lost_as order by valid_from) as number
    from joined
),
ended as (
    select *,
        coalesce(lost_as, if(is_joined, 'repeat', null)) as fate,
        max_by(cut_to, valid_from) over whole as until,
        max(number) over (partition by {{ keys }}, lost_as) as last_number
        {%- for column in healing_tables._carried_columns(stored_table) %},
        {{ column.sql }} over whole as {{ column.alias }}
        {%- endfor %}
    from numbered
    window whole as (partition by {{ keys }}, lost_as, number)
),
flagged as (
    select *,
        {{ healing_tables._current_condition(dict(stored_table, is_current=none, valid_to='until')) }}{{ ' or (number '
            '= last_number and is_current)' if stored_table.current_while_deleted }} as will_be_current
    from ended
),
repaired as (
    select *, fate is null and not (after <=> struct(
        {%- for column in healing_tables._repaired_columns(stored_table) %}row.{{ healing_tables._quoted(
            column.name) }} as {{ column.alias }}{{ ', ' if not loop.last }}{% endfor %})) as is_changed
    from (
        select *, struct({% for column in healing_tables._repaired_columns(
            stored_table) %}{{ column.sql }} as {{ column.alias }}{{ ', ' if not loop.last }}{% endfor %}) as after
        from flagged
    )
)
{%- endmacro %}

{#- A row in a form that can be compared: types without equality as text. `numbered`: the columns are named c1, c2,
    ... -#}
{% macro _row_content(prefix, columns, numbered=false) -%}
    {%- set fields = [] -%}
    {%- for name, type in columns.items() -%}
        {%- set column = prefix ~ ('c' ~ loop.index if numbered else healing_tables._quoted(name)) -%}
        {%- do fields.append(
            ('to_json(' ~ column ~ ')' if healing_tables._has_no_equality(type) else column) ~ ' as c' ~ loop.index) -%}
    {%- endfor -%}
    {{- return('struct(' ~ (fields | join(', ')) ~ ')') -}}
{%- endmacro %}

{#- Whether touching rows with equal values are combined: only if the tracked columns are known. -#}
{% macro _merges_repeats(stored_table) -%}
    {{- return(stored_table.tracked | length > 0 and not stored_table.get('keep_repeats')) -}}
{%- endmacro %}

{#- Columns that also aggregate the rows that are joined to a row. -#}
{% macro _carried_columns(stored_table) -%}
    {%- set columns = [] -%}
    {%- for column, sql in {
        'compressed_row_count': 'sum({})', 'ended_by_delete': 'max_by({}, valid_from)',
        'last_updated': 'max({})'}.items()
        if stored_table[column] is not none and healing_tables._merges_repeats(stored_table) -%}
        {%- do columns.append({
            'name': stored_table[column], 'alias': 'carried_' ~ column,
            'sql': sql | replace('{}', 'row.' ~ healing_tables._quoted(stored_table[column]))}) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- NULL is a wrong flag, unless it is the flag of closed rows. -#}
{% macro _lacks_flag(stored_table) -%}
    {{- return('(row.' ~ healing_tables._quoted(stored_table.is_current) ~ ' is null and '
        ~ stored_table.get('closed_sql', 'null') ~ ' is not null)') -}}
{%- endmacro %}

{#- The columns that a repair writes: name in the table, alias in `after`, SQL over the CTE `flagged`. -#}
{% macro _repaired_columns(stored_table) -%}
    {%- set columns = [{'name': stored_table.valid_to, 'alias': 'valid_to', 'sql': 'until'}] -%}
    {%- if stored_table.is_current is not none -%}
        {%- do columns.append({
            'name': stored_table.is_current, 'alias': 'is_current',
            'sql': 'if(is_current = will_be_current and not ' ~ healing_tables._lacks_flag(stored_table) ~ ', row.'
                ~ healing_tables._quoted(stored_table.is_current) ~ ', if(will_be_current, ' ~ stored_table.current_sql
                ~ ', ' ~ stored_table.closed_sql ~ '))'}) -%}
    {%- endif -%}
    {%- if stored_table.version is not none -%}
        {%- do columns.append({
            'name': stored_table.version, 'alias': 'version', 'sql': 'cast(number as '
            ~ stored_table.columns[stored_table.version] ~ ')'}) -%}
    {%- endif -%}
    {%- for column in healing_tables._carried_columns(stored_table) -%}
        {%- do columns.append({
            'name': column.name, 'alias': column.alias, 'sql': 'cast(' ~ column.alias ~ ' as '
            ~ stored_table.columns[column.name] ~ ')'}) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The columns of the plan that are stored: the keys, the row, `after` and `fate`. The columns of the row are named by
    number, so that any format can store them. -#}
{% macro _plan_columns(stored_table) -%}
    {%- set fields = [] -%}
    {%- for name in stored_table.columns -%}
        {%- do fields.append('row.' ~ healing_tables._quoted(name) ~ ' as c' ~ loop.index) -%}
    {%- endfor -%}
    {{- return(healing_tables._key_names(stored_table.key_columns) ~ ', struct(' ~ (fields | join(', '))
        ~ ') as row, after, fate') -}}
{%- endmacro %}

{#- The columns of the table, from the stored plan: name, before and after (SQL). -#}
{% macro _kept_columns(stored_table) -%}
    {%- set written = {} -%}
    {%- for column in healing_tables._repaired_columns(stored_table) -%}
        {%- do written.update({column.name: 'after.' ~ column.alias}) -%}
    {%- endfor -%}
    {%- set columns = [] -%}
    {%- for name in stored_table.columns -%}
        {%- do columns.append({'name': name, 'before': 'row.c' ~ loop.index,
            'after': written.get(name, 'row.c' ~ loop.index)}) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}
