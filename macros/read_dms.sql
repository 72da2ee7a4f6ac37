{#-
    Files or tables of AWS DMS as a change log. Rows of a full load, which have no operation, come before any other row
    of the same moment and sequence. `key_columns`: with the columns of before images, a changed key is a deletion and
    an insertion.

    Op | TIMESTAMP  | id | city | BI_id      id | city | _changed_at | _is_deleted
    U  | 2024-01-01 | 2  | Oslo | 1      ->  1  | Oslo | 2024-01-01  | true
                                             2  | Oslo | 2024-01-01  | false
-#}
{% macro read_dms(relation, changed_at, op='Op', sequence=[], key_columns=[], before='BI_', columns=none,
    column_names={}) -%}
{%- set instead = healing_tables._placeholder_select('read_dms', {'relation': relation}) -%}
{%- if instead is not none -%} {{ return(instead) }} {%- endif -%}
{%- set mistakes, keys, sequence = [], healing_tables._as_list(key_columns), healing_tables._as_list(sequence) -%}
{%- set images, replaced, changes = [], {}, [] -%}
{%- for key in keys -%}
    {%- do images.append(before ~ key) -%}
    {%- set image = healing_tables._quoted(before ~ key) -%}
    {%- do replaced.update({key | lower: 'if(is_after, ' ~ healing_tables._quoted(key) ~ ', ' ~ image ~ ')'}) -%}
    {%- do changes.append(healing_tables._quoted(key) ~ ' <> ' ~ image) -%}
{%- endfor -%}
{%- set needed = [op, changed_at] + sequence + images -%}
{%- set found = healing_tables._columns_of_feed(mistakes, relation, columns, needed) -%}
{%- set operation, part = 'upper(trim(' ~ healing_tables._quoted(op) ~ '))', 'if(is_after, 2, 1)' if keys else '1' -%}
{%- set part = 'if(coalesce(' ~ operation ~ ", '') = '', 0, " ~ part ~ ') as part' -%}
{{ healing_tables._read_feed('read_dms', mistakes, relation, found, columns, column_names, {
    'needed': needed, 'hidden': (modules.re.escape(before | lower) ~ '.*') if before else none,
    'at': healing_tables._quoted(changed_at), 'replaced': replaced,
    'is_deleted': 'coalesce(' ~ operation ~ " = 'D', false)" ~ (' or not is_after' if keys else ''),
    'sequence': 'struct(' ~ ((healing_tables._quoted_list(sequence) or [healing_tables._quoted(changed_at)]) + [part])
        | join(', ') ~ ')',
    'pieces': 'lateral view explode(if(' ~ operation ~ " = 'U' and (" ~ changes | join(' or ')
        ~ '), array(true, false), array(true))) pieces as is_after' if keys else none}) }}
{%- endmacro %}
