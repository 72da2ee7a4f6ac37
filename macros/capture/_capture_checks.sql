{#- What a capture checks before it writes: columns, keys, and the share of deleted keys. -#}

{#- `columns` of a capture: types {name as the log spells it: type}, added (names that the log does not have yet).
    Columns that cannot be logged are refused. -#}
{% macro _capture_columns(run, log_table) -%}
    {%- set settings = run.settings -%}
    {%- set mistakes = [] -%}
    {%- set will = healing_tables._columns_of(run.candidate_table) -%}
    {%- set was = healing_tables._columns_of(log_table) if log_table is not none else {} -%}
    {%- do healing_tables._check_columns(mistakes, 'unique_key', settings.key_columns, 'the select', will) -%}
    {%- do healing_tables._check_columns(mistakes, 'within', settings.within, 'the select', will) -%}
    {%- do healing_tables._check_cluster_columns(mistakes, run.format, 'the log',
        dict(will, **{settings.captured_at: 'timestamp', settings.deleted: 'boolean'})) -%}
    {%- for name in [settings.captured_at, settings.deleted] if healing_tables._find_column(name, will) is not none -%}
        {%- do healing_tables._mistake(
            mistakes, 'column ' ~ name, 'a name used once', 'a column of the select and one that capture adds',
            'rename one of them: meta.healing_tables has captured_at and deleted') -%}
    {%- endfor -%}
    {%- set columns = {} -%}
    {%- set added = [] -%}
    {%- for name, type in will.items() -%}
        {%- set stored = healing_tables._find_column(name, was) -%}
        {%- do columns.update({stored or name: type}) -%}
        {%- if healing_tables._has_no_equality(type) -%}
            {%- do healing_tables._mistake(
                mistakes, 'column ' ~ name, 'a type with equality', type,
                'convert it to text, an array or a struct without maps; a geometry with st_asbinary') -%}
        {%- elif stored is none -%} {%- do added.append(name) -%}
        {%- elif was[stored] != type -%}
            {%- do healing_tables._mistake(
                mistakes, 'column ' ~ name, 'the type in the log, ' ~ was[stored], type, 'cast it in the select') -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name, type in was.items() if name | lower not in [settings.captured_at | lower, settings.deleted | lower]
        and healing_tables._find_column(name, will) is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'column ' ~ name, 'a column of the select, since the log has it', 'none',
            'select cast(null as ' ~ type ~ ') as ' ~ healing_tables._quoted(name)
                ~ ' if the source no longer has it') -%}
    {%- endfor -%}
    {%- if log_table is not none and added and config.get('on_schema_change') == 'fail' -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_schema_change: fail', 'the columns of the log', 'new columns ' ~ (added | join(', ')),
            'leave them out, or set append_new_columns') -%}
    {%- endif -%}
    {%- do healing_tables._refuse(run, mistakes, healing_tables._captured_state(run)) if mistakes -%}
    {{- return({'types': columns, 'added': added}) -}}
{%- endmacro %}

{#- Refuse duplicate keys: their state is ambiguous. Rows without a key are left out; returns how many. -#}
{% macro _check_captured_keys(run) -%}
    {%- set keys = [] -%}
    {%- set text = [] -%}
    {%- for key in run.settings.key_columns -%}
        {%- do keys.append(healing_tables._quoted(key)) -%}
        {%- do text.append(healing_tables._string_literal(key ~ ' = ') ~ ', coalesce(cast('
            ~ healing_tables._quoted(key) ~ " as string), 'NULL')") -%}
    {%- endfor -%}
    {%- set found = run_query(
        'select coalesce(sum(if(is_null, rows, 0)), 0) as nulls, count_if(not is_null and rows > 1) as repeated, '
        ~ "array_join(slice(sort_array(collect_list(if(not is_null and rows > 1, name, null))), 1, 5), '; ') as names "
        "from (select "
        ~ healing_tables._has_no_captured_key(run.settings) ~ ' as is_null, concat(' ~ (text | join(", ', ', "))
        ~ ') as name, count(*) as rows from '
        ~ run.candidate_table ~ ' group by ' ~ (keys | join(', ')) ~ ')').rows[0] -%}
    {%- if found['repeated'] > 0 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'unique_key', 'one row per key',
            healing_tables._counted(found['repeated'], 'key') ~ ' with several rows, such as '
            ~ found['names'],
            'correct the select, or add the column that distinguishes them to unique_key', keys=found['names']) -%}
        {%- do healing_tables._refuse(run, mistakes, healing_tables._captured_state(run)) -%}
    {%- endif -%}
    {%- if found['nulls'] > 0 -%}
        {%- do exceptions.warn(healing_tables._plain_names(run.target) ~ ': '
            ~ healing_tables._counted(found['nulls'], 'row') ~ ' of the select set aside (NULL in '
            ~ ('all key columns)' if run.settings.has_null_keys else 'a key column)')) -%}
    {%- endif -%}
    {{- return(found['nulls'] | int) -}}
{%- endmacro %}

{#- The number of rows to append. An extract in which too many keys are missing is refused. -#}
{% macro _capture_figures(run, changes) -%}
    {%- set figures = {'lost_versions': 0, 'closed_versions': 0} -%}
    {%- set query = changes ~ '
select
    count(new_state) as candidate_versions,
    count(old_state) as current_keys,
    count_if(old_state is null) as appeared,
    count_if(is_change and old_state is not null and new_state is not null) as changed,
    count_if(new_state is null) as ended_keys
from compared' -%}
    {%- for name, value in healing_tables._row_map(run_query(query).rows[0]).items() -%}
        {%- do figures.update({name: value | int}) -%}
    {%- endfor -%}
    {%- do figures.update({'appended': figures.appeared + figures.changed + figures.ended_keys}) -%}
    {%- do healing_tables._check_guards(run, figures, healing_tables._captured_state(run)) -%}
    {{- return(figures) -}}
{%- endmacro %}

{#- The state as a candidate: what a refused capture keeps. -#}
{% macro _captured_state(run) -%}
    {{- return({'table': run.candidate_table, 'query': none, 'changes': none, 'figures': {}}) -}}
{%- endmacro %}
