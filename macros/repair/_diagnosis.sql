{#-
    The kinds of damage, in the order of the report: {kind, unit, count (SQL, of a row of `repaired`), repair}.
    count is none for a kind that cannot occur because the table lacks a column.
-#}
{% macro _damage_kinds(stored_table) -%}
    {%- set fit = 'unfit is null and not is_copy' -%}
    {%- set keyed = "not unfit <=> 'null_key'" -%}
    {%- set disordered = healing_tables._is_violated(stored_table, 'valid_order', {}) -%}
    {%- set kinds = [] -%}
    {%- for kind, unit, condition, repair in [
        ('null_key', 'rows', "fate <=> 'null_key'", 'set aside'),
        ('bad_start', 'rows', "fate <=> 'bad_start'", 'set aside'),
        ('inverted', 'rows', "fate <=> 'inverted'", 'set aside'),
        ('null_end', 'rows', fit ~ ' and valid_to is null and ' ~ disordered,
            'ends where the next row starts, or gets the open end'),
        ('exact_duplicate', 'rows', 'is_copy', 'one row is kept'),
        ('same_start', 'rows', "fate <=> 'same_start'",
            'one row is kept: flagged, open, the latest end, the highest version, the greatest values; the others are '
            'set aside'),
        ('overlap', 'pairs', keyed ~ ' and ' ~ healing_tables._is_violated(stored_table, 'no_overlaps', {}),
            'the earlier row ends where the next one starts'),
        ('several_current', 'keys', keyed ~ ' and ' ~ healing_tables._is_violated(stored_table,
            'single_current', {'at_most_one': true}),
            'the row with the latest start stays open; the others end where the next row starts'),
        ('no_current', 'keys', 'fate is null and will_be_current and current_rows = 0', 'the last version is flagged'),
        ('wrong_flag', 'rows', fit ~ ' and (' ~ healing_tables._lacks_flag(stored_table)
            ~ ' or (not is_current <=> is_open and if(is_open, next_start is null, '
            ~ ('number < last_number' if stored_table.current_while_deleted else 'true') ~ ')))',
            'the flag is set according to the end'),
        ('wrong_version', 'rows', 'fate is null and not after.version <=> row.'
            ~ healing_tables._quoted(stored_table.version or ''), 'numbered by start'),
        ('repeat', 'rows', keyed ~ ' and ' ~ healing_tables._is_violated(stored_table, 'no_consecutive_duplicates', {}),
            'the row before is extended to its end, and it is set aside' if healing_tables._merges_repeats(stored_table)
            else 'nothing, as asked'),
        ('wrong_key_hash', 'rows', healing_tables._has_other_hash(stored_table.key_hash, stored_table.key_hash_sql),
            'nothing: either the key or its hash can be wrong'),
        ('wrong_row_hash', 'rows', healing_tables._has_other_hash(stored_table.row_hash, stored_table.row_hash_sql),
            'nothing: either a value or the hash can be wrong; a build from the sources corrects it'),
        ('gap', 'gaps', keyed ~ ' and ' ~ healing_tables._is_violated(stored_table, 'no_gaps', {}),
            'nothing: the key may have been deleted')] -%}
        {%- set absent = (kind in ['no_current', 'wrong_flag'] and stored_table.is_current is none)
            or (kind == 'wrong_version' and stored_table.version is none)
            or (kind == 'wrong_key_hash' and stored_table.key_hash_sql is none)
            or (kind == 'wrong_row_hash' and stored_table.row_hash_sql is none)
            or (kind == 'repeat' and not stored_table.tracked) -%}
        {%- do kinds.append({'kind': kind, 'unit': unit, 'repair': repair, 'count': none if absent
            else 'if(' ~ condition ~ ', ' ~ ('size(' ~ healing_tables._earlier_rows() ~ ')' if kind == 'overlap'
                else 1) ~ ', 0)'}) -%}
    {%- endfor -%}
    {{- return(kinds) -}}
{%- endmacro %}

{#- Whether the stored hash of a row differs from the hash of its columns: one of them was changed by hand. -#}
{% macro _has_other_hash(column, hash) -%}
    {{- return('not row.' ~ healing_tables._quoted(column or '') ~ ' <=> ' ~ (hash or 'null') ~ ' and row.'
        ~ healing_tables._quoted(column or '') ~ ' is not null') -}}
{%- endmacro %}

{#-
    A single row: for each kind the number and up to five keys; and what the repair would do. Each bucket of keys
    provides one example, so that few strings are collected even if many keys are damaged.
-#}
{% macro _diagnosis(stored_table) -%}
{%- set keys = healing_tables._key_names(stored_table.key_columns) -%}
{%- set kinds = healing_tables._damage_kinds(stored_table) | rejectattr('count', 'none') | list -%}
{%- set figures = ['versions', 'rows_changed', 'rows_removed', 'rows_set_aside', 'keys_affected', 'keys',
    'current_keys', 'keys_ended'] -%}
{%- set key_text = [] -%}
{%- for key in stored_table.key_columns -%}
    {%- do key_text.append(healing_tables._string_literal((', ' if not loop.first else '') ~ key ~ ' = ')
        ~ ", coalesce(cast(key_" ~ loop.index ~ " as string), 'NULL')") -%}
{%- endfor -%}
{{ healing_tables._repair_plan(stored_table) }},
by_key as (
    select {{ keys }},
        {%- for kind in kinds %}
        sum({{ kind.count }}) as {{ kind.kind }},
        {%- endfor %}
        count(*) as versions,
        count_if(is_changed) as rows_changed,
        count_if(fate is not null) as rows_removed,
        count_if(fate <> 'exact_duplicate') as rows_set_aside,
        if(bool_or(is_changed or fate is not null), 1, 0) as keys_affected,
        if(bool_or(unfit <=> 'null_key'), 0, 1) as keys,
        if(max(current_rows) > 0 and not bool_or(unfit <=> 'null_key'), 1, 0) as current_keys,
        if(max(current_rows) > 0 and not bool_or(unfit <=> 'null_key')
            and not bool_or(fate is null and will_be_current), 1, 0) as keys_ended
    from repaired
    group by {{ keys }}
),
by_bucket as (
    select pmod(xxhash64({{ keys }}), 4096) as bucket
        {%- for kind in kinds + [{'kind': 'keys_ended'}] %},
        min(if({{ kind.kind }} > 0, concat({{ key_text | join(', ') }}), null)) as {{ kind.kind }}_keys
        {%- endfor %}
        {%- for kind in kinds %},
        sum({{ kind.kind }}) as {{ kind.kind }}
        {%- endfor %}
        {%- for figure in figures %},
        sum({{ figure }}) as {{ figure }}
        {%- endfor %}
    from by_key
    group by pmod(xxhash64({{ keys }}), 4096)
)
select
    {%- for kind in kinds %}
    coalesce(sum({{ kind.kind }}), 0) as {{ kind.kind }},
    {%- endfor %}
    {%- for kind in kinds + [{'kind': 'keys_ended'}] %}
    array_join(slice(sort_array(collect_set({{ kind.kind }}_keys)), 1, 5), '; ') as {{ kind.kind }}_keys,
    {%- endfor %}
    {%- for figure in figures %}
    coalesce(sum({{ figure }}), 0) as {{ figure }}{{ ',' if not loop.last }}
    {%- endfor %}
from by_bucket
{%- endmacro %}

{#- Print the findings. Returns the kinds that were found. -#}
{% macro _print_diagnosis(operation, stored_table, found) -%}
    {%- set named = [] -%}
    {%- for column in ['valid_from', 'valid_to', 'is_current', 'version'] if stored_table[column] is not none -%}
        {%- do named.append(column ~ (' ' ~ stored_table[column] if stored_table[column] != column)
            ~ (' (' ~ stored_table.current_value ~ ')' if column == 'is_current')) -%}
    {%- endfor -%}
    {%- do healing_tables._report(operation, stored_table.relation, healing_tables._counted(found['keys'], 'key')
        ~ ', ' ~ healing_tables._counted(found.versions, 'row') ~ '; key '
        ~ (stored_table.key_columns | join(', ')) ~ '; ' ~ (named | join(', ')) ~ '; open end '
        ~ (stored_table.valid_to_current or 'NULL')
        ~ '; tracked ' ~ (stored_table.tracked | join(', ') or 'not known')) -%}
    {%- set rows = [] -%}
    {%- set kinds = [] -%}
    {%- set clean = [] -%}
    {%- set unknown = [] -%}
    {%- for kind in healing_tables._damage_kinds(stored_table) -%}
        {%- if kind.count is none -%} {%- do unknown.append(kind.kind) -%}
        {%- elif found[kind.kind] == 0 -%} {%- do clean.append(kind.kind) -%}
        {%- else -%}
            {%- do kinds.append(kind.kind) -%}
            {%- do rows.append([kind.kind, healing_tables._counted(found[kind.kind], kind.unit[:-1]),
                found[kind.kind ~ '_keys'],
                kind.repair]) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if rows -%}
        {%- do healing_tables._print_table(['kind', 'found', 'keys such as', 'repair'], rows, 200) -%}
    {%- endif -%}
    {%- if clean -%}
        {%- do healing_tables._report(operation, stored_table.relation, 'none of ' ~ (clean | join(', '))) -%}
    {%- endif -%}
    {%- if unknown -%}
        {%- do healing_tables._report(operation, stored_table.relation,
            'not checked, since the columns are missing or not named: ' ~ (unknown | join(', '))) -%}
    {%- endif -%}
    {{- return(kinds) -}}
{%- endmacro %}
