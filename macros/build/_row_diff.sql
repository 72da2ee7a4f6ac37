{#-
    How the candidate and the stored table are read for the comparison in _pass.sql, and the MERGE of the rows that
    differ.
-#}

{#- Figures of the stored table over all keys: only a build that removes something needs them. -#}
{% macro _stored_figures(inputs, existing) -%}
select count(distinct if(is_current, struct({{ inputs.key_names }}), null)) as current_keys,
count_if(not is_current) as closed_versions
from (select {{ inputs.stored }} from {{ existing }})
{%- endmacro %}

{#- The bucket number of a key, the same for equal keys: a short list of numbers covers a few keys of any type. -#}
{% macro _key_bucket(keys) -%} pmod(xxhash64({{ keys | join(', ') }}), 65536) {%- endmacro %}

{#-
    The difference as one MERGE. It matches rows by key and start only, so that Delta does not read all columns of the
    target again. A commit of another writer since the comparison makes the build retry (_retry.sql), so what this
    MERGE has overwritten is compared with the sources again.
    If few keys differ, rows of other buckets are filtered out; otherwise the whole target would be shuffled. The list
    begins with ten numbers that no bucket has: Spark writes up to ten values into the code that it generates, and would
    compile that again for each build.
-#}
{% macro _merge_row_diff(build, target, change) -%}
{%- set inputs = change.inputs -%}
{%- set tag = healing_tables._text(healing_tables._commit_tag(build, change.row_count))
    if build.format.has_commit_tags else none -%}
{%- set names = [] -%}
{%- set values = [] -%}
{%- set assignments = [] -%}
{%- set target_keys = [] -%}
{%- for key in inputs.key_columns -%} {%- do target_keys.append('t.' ~ healing_tables._id(key)) -%} {%- endfor -%}
{%- set same_start = [] -%}
{%- for key in target_keys -%} {%- do same_start.append(key ~ ' <=> d.key_' ~ loop.index) -%} {%- endfor -%}
{%- if inputs.valid_from is not none -%}
    {%- do same_start.append('t.' ~ healing_tables._id(inputs.valid_from) ~ ' <=> d.start') -%}
{%- endif -%}
{%- for column in inputs.columns -%}
    {%- set name = healing_tables._id(column) -%}
    {%- do names.append(name) -%}
    {%- do values.append('d.candidate_row.' ~ name) -%}
    {%- do assignments.append('t.' ~ name ~ ' = d.candidate_row.' ~ name) -%}
{%- endfor -%}
merge into {{ target }} as t
using (select *{{ ', ' ~ tag ~ ' as tag' if tag is not none }} from {{ change.staged }} where differs) as d
on {% if change.buckets %}{{ healing_tables._key_bucket(target_keys) }} in ({{ range(-10, 0) | join(', ') }}, {{
    change.buckets }})
and {% endif -%}
{{ same_start | join(' and ') }}
{%- if tag is not none %} and d.tag = {{ tag }}{% endif %}
when matched and d.candidate_row is null then delete
when matched then update set {{ assignments | join(', ') }}
when not matched and d.candidate_row is not null then insert ({{ names | join(', ') }}) values ({{ values
    | join(', ') }})
{%- endmacro %}

{#-
    `inputs`: how both tables are read so that they can be compared.

    stored, candidate   the select lists over the stored table and over `checked` (see _checked_candidate): key_1..,
                        start, is_current; of the stored table also the struct `stored_row`
    stored_rows         SQL for a `from`
    compared_row        SQL over `row` of `checked`: a struct of the same columns of the candidate
    key_columns, valid_from, columns (of the candidate); key_names: 'key_1, key_2'
    changed_keys        the healed keys, as SQL after `in`; none: all keys
    has_buckets         equal keys have equal hashes; false for floats and collated text
    is_versioned        a key can have several rows
    is_unique           no two rows, on either side, have the same key and start
    is_ordered          the rows of the candidate are in the order of _order_column(), by which both sides are joined
-#}
{% macro _diff_inputs(build) -%}
    {%- set settings, columns, stored_columns = build.settings, build.columns, build.stored.columns -%}
    {%- set compared = [] -%}
    {%- for name, type in columns.items() if stored_columns.get(name) == type
        and not healing_tables._has_no_equality(type) and name not in build.hashes -%}
        {%- do compared.append(name) -%}
    {%- endfor -%}
    {%- set has_flag = settings.is_current in columns and stored_columns.get(settings.is_current)
        == columns[settings.is_current] -%}
    {%- set is_current = healing_tables._current_condition(dict(settings, is_current=settings.is_current if has_flag
        else none)) if has_flag or settings.valid_to in stored_columns else 'true' -%}
    {%- set select_lists = {'stored': [], 'candidate': []} -%}
    {%- for key in settings.key_columns -%}
        {%- set pair = healing_tables._comparable_column(key, stored_columns, columns, 'key_' ~ loop.index) -%}
        {%- do select_lists.stored.append(pair.stored ~ ' as key_' ~ loop.index) -%}
        {%- do select_lists.candidate.append(pair.candidate ~ ' as key_' ~ loop.index) -%}
    {%- endfor -%}
    {%- set none_at_all = 'cast(null as bigint)' -%}
    {%- set is_unique = build.is_pure_call and build.is_as_left -%}
    {%- set is_ordered = is_unique and healing_tables._has_order(build) and settings.metadata.is_start_in_order
        and settings.valid_from is not none -%}
    {%- set start = {'stored': none_at_all, 'candidate': none_at_all} if settings.valid_from is none
        else healing_tables._comparable_column(settings.valid_from, stored_columns, columns, 'valid_from') -%}
    {%- do select_lists.stored.extend([start.stored ~ ' as start', is_current ~ ' as is_current']) -%}
    {%- do select_lists.candidate.extend([start.candidate ~ ' as start', 'is_current']) -%}
    {%- do select_lists.stored.append(healing_tables._row_struct(compared) ~ ' as stored_row') -%}
    {%- do select_lists.stored.append(healing_tables._to_micros(healing_tables._id(settings.valid_from),
        stored_columns[settings.valid_from]) ~ ' as ' ~ healing_tables._order_column()) if is_ordered -%}
    {#- if all columns are compared, compare the row itself: building a second struct would cost time -#}
    {%- set compared_row = 'row' if compared == healing_tables._row_columns(build)
        else 'case when row is not null then ' ~ healing_tables._row_struct(compared, 'row.') ~ ' end' -%}
    {%- set stored_keys = [] -%}
    {%- set hashable = [] -%}
    {%- for key in settings.key_columns -%}
        {%- do stored_keys.append(healing_tables._id(key)) -%}
        {%- do hashable.append(key) if stored_columns.get(key) == columns.get(key)
            and (healing_tables._type_family(stored_columns.get(key)) in ['integer', 'decimal', 'date', 'timestamp',
                'timestamp_ntz', 'boolean'] or stored_columns.get(key) == 'string') -%}
    {%- endfor -%}
    {{- return({
        'stored': select_lists.stored | join(', '), 'candidate': select_lists.candidate | join(', '),
        'key_names': healing_tables._key_names(settings.key_columns), 'key_columns': settings.key_columns,
        'valid_from': settings.valid_from, 'columns': columns | list,
        'compared_row': compared_row,
        'changed_keys': build.changed_keys, 'has_buckets': hashable | length == settings.key_columns | length,
        'is_versioned': settings.tracked | select | list | length > 0,
        'is_unique': is_unique, 'is_ordered': is_ordered,
        'stored_rows': build.existing | string if build.changed_keys is none
            else '(select * from ' ~ build.existing ~ ' where ' ~ healing_tables._is_changed_key(stored_keys,
                build.changed_keys) ~ ')'}) -}}
{%- endmacro %}

{#- A column of both tables, converted so that values can be compared: {stored, candidate, type ('micros' for two types
    of moments)}. `made`: the candidate's expression for it, if not its name. -#}
{% macro _comparable_column(column, stored_columns, columns, made=none) -%}
    {%- set name = healing_tables._id(column) -%}
    {%- set names = {'stored': name, 'candidate': made or name} -%}
    {%- set types = {
        'stored': healing_tables._type_of_column(stored_columns, column),
        'candidate': healing_tables._type_of_column(columns, column)} -%}
    {%- for side, type in types.items() if healing_tables._plain_type(type) != type -%}
        {%- do names.update({side: healing_tables._normalized_value(names[side], type)}) -%}
    {%- endfor -%}
    {%- set types = {'stored': healing_tables._plain_type(types.stored),
        'candidate': healing_tables._plain_type(types.candidate)} -%}
    {%- set is_moment = types.values() | reject('in', ['date', 'timestamp', 'timestamp_ntz']) | list | length == 0 -%}
    {%- set common = healing_tables._common_type(types.values() | list) -%}
    {%- set found = {
        'type': types.stored if types.stored == types.candidate else 'micros' if is_moment else 'string'
        if common == 'mixed' else common} -%}
    {%- for side, type in types.items() -%}
        {%- do found.update({side: names[side] if type == found.type
            else healing_tables._to_micros(names[side], type) if is_moment
            else 'cast(' ~ names[side] ~ ' as string)' if common == 'mixed'
            else healing_tables._cast(names[side], type, common)}) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}
