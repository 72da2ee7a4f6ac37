{#- What was known of a dimension: each version that was published, from its audit. The library reads audits in the same
    way (src/healing_tables/as_of/known_versions.py). -#}

{#-
    Each version that was published, with known_from and known_to (NULL while it is known), as a select.

    Each row of the audit tells which row it found (side 0) and which it left (side 1). A row that is in the table now
    (side 2) counts if the audit does not have it. The clock of a publish may be behind that of the one before.
-#}
{% macro _select_known(known) -%}
{%- set names, identity = healing_tables._quoted_list(known.columns), [] -%}
{%- for name in known.key_columns -%}
    {%- do identity.append('row.' ~ healing_tables._quoted(healing_tables._find_column(name, known.columns))) -%}
{%- endfor -%}
{%- do identity.append('row.' ~ healing_tables._quoted(healing_tables._find_column(known.valid_from, known.columns)))
    if known.valid_from is not none -%}
{%- if not known.key_columns -%}
select {{ names | join(', ') }}, now() as known_from, cast(null as timestamp) as known_to
from {{ known.relation }}
{%- else -%}
select
    row.{{ names | join(',\n    row.') }},
    if(side = 1, at, since) as known_from,
    until as known_to
from (
    select
        row,
        side,
        at,
        lag(side) over of_row is null as is_first,
        if(side = 0, at, lead(at) over of_row) as until
    from (
        select publish_no, side, at, {{ healing_tables._row_of_texts(known) }} as row
        from (
            select *, {{ healing_tables._end_of_row_text() }} as text_end, {{ healing_tables._read_texts(known) }}
            from (
                select publish_no, at,
                    inline(array(struct(0 as side, old_values as text), struct(1 as side, new_values as text)))
                from {{ known.audit }}
                join (
                    select publish_no, max(max(published_at)) over (order by publish_no) as at
                    from {{ known.audit }}
                    where publish_no is not null
                    group by publish_no
                ) using (publish_no)
            )
            where text is not null{{ ' and false' if flags.EMPTY }}
        )
        union all
        select 9223372036854775807, 2, null, {{ healing_tables._stored_as_known(known) }}
        from {{ known.relation }}
    )
    window of_row as (partition by {{ identity | join(', ') }} order by publish_no, side)
)
cross join (select min(published_at) as since from {{ known.audit }} where publish_no is not null)
where side = 1 or (is_first and (until is null or since < until))
{%- endif -%}
{%- endmacro %}

{#- Of the columns that all texts name alike, a struct `read`. -#}
{% macro _read_texts(known) -%}
    {%- set columns = {} -%}
    {%- for texts in known.texts.values() if texts | length == 1 -%}
        {%- do columns.update({texts[0].name: texts[0].type}) -%}
    {%- endfor -%}
    {{- return(healing_tables._parsed_row('text', columns) ~ ' as read') -}}
{%- endmacro %}

{#- The row of a text, from these. -#}
{% macro _row_of_texts(known) -%}
    {%- set fields = [] -%}
    {%- for name, texts in known.texts.items() -%}
        {%- set values, type = [], known.columns[name] -%}
        {%- for text in texts -%}
            {%- set read = 'read' if texts | length == 1
                else healing_tables._parsed_row('text', {text.name: text.type}) -%}
            {%- set value = healing_tables._as_json(read ~ '.' ~ healing_tables._quoted(text.name), text.type,
                back=true) -%}
            {%- do values.append({'ends': text.ends, 'value': value if text.type == type
                else 'cast(' ~ value ~ ' as ' ~ type ~ ')'}) -%}
        {%- endfor -%}
        {%- do fields.append(healing_tables._string_literal(name) ~ ', '
            ~ healing_tables._value_by_end(values, type)) -%}
    {%- endfor -%}
    {{- return('named_struct(' ~ (fields | join(', ')) ~ ')') -}}
{%- endmacro %}

{#- One of several values [{ends, value}], by the end of the text. -#}
{% macro _value_by_end(values, type) -%}
    {%- if not values -%} {{ return('cast(null as ' ~ type ~ ')') }} {%- endif -%}
    {%- if values | length == 1 -%} {{ return(values[0].value) }} {%- endif -%}
    {%- set cases = [] -%}
    {%- for one in values -%}
        {%- set ends = [] -%}
        {%- for end in one.ends -%} {%- do ends.append(healing_tables._string_literal(end)) -%} {%- endfor -%}
        {%- do cases.append(' when text_end in (' ~ (ends | join(', ')) ~ ') then ' ~ one.value) -%}
    {%- endfor -%}
    {{- return('case' ~ (cases | join) ~ ' end') -}}
{%- endmacro %}

{#- A row of the table in the columns of `known`. -#}
{% macro _stored_as_known(known) -%}
    {%- set fields = [] -%}
    {%- for name, type in known.columns.items() -%}
        {%- set value = healing_tables._quoted(name) if name in known.stored else 'null' -%}
        {%- do fields.append(healing_tables._string_literal(name) ~ ', ' ~ (value if known.stored.get(name) == type
            else 'cast(' ~ value ~ ' as ' ~ type ~ ')')) -%}
    {%- endfor -%}
    {{- return('named_struct(' ~ (fields | join(', ')) ~ ')') -}}
{%- endmacro %}

{#- The rows that were known at a moment, as SQL for a `from`. -#}
{% macro _known_at(known, moment) -%}
(
    select {{ healing_tables._quoted_list(known.columns) | join(', ') }}
    from (
{{ healing_tables._select_known(known) }}
    )
    where {{ healing_tables._compare_instant('known_from', 'timestamp', '<=', moment) }}
        and (known_to is null or {{ healing_tables._compare_instant('known_to', 'timestamp', '>', moment) }})
)
{%- endmacro %}

{#- The rows of a table, as SQL for a `from`, and their columns (none if they cannot be looked up): as they are, or
    as they were known. -#}
{% macro _versions_known_at(mistakes, argument, relation, valid_from, known_at, audit) -%}
    {%- if known_at is none -%}
        {%- do healing_tables._mistake(mistakes, 'audit', 'known_at beside it', 'none',
            'name a moment, or leave it out') if audit is not none -%}
        {{- return({'rows': relation | string,
            'columns': healing_tables._columns_of_existing(mistakes, argument, relation)}) -}}
    {%- endif -%}
    {%- set known = healing_tables._known(mistakes, argument, relation, valid_from, audit, known_at) -%}
    {{- return({'rows': healing_tables._known_at(known, known_at) if not mistakes else relation | string,
        'columns': known.columns if known is not none else none}) -}}
{%- endmacro %}
