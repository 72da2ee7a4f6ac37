{#- A first build looks at the deletions of its sources: what is odd there is a mistake in a condition, or in the order
    of rows, more often than in the data. -#}

{#-
    Warnings of deletions before the first row of their key, and of values that differ from those in a condition by case
    or blanks only.

    source | what                | number | example
    crm    | early               | 12     | id = 7
    crm    | op differs from 'd' | 3      | 'D', 'D '
-#}
{% macro _odd_deletions(run) -%}
    {%- set call, queries, warnings = run.settings.call, [], [] -%}
    {%- set ctes = healing_tables._ctes_before(call) if call is not none else none -%}
    {%- for scan in run.settings.metadata.scans if scan.get('deletion') and (scan.parts is not none or ctes is not none)
        and (ctes is not none or not scan.has_subquery) -%}
        {%- do queries.append(healing_tables._early_deletions(run, scan)) -%}
        {%- for text in scan.deletion.conditions -%}
            {%- set compared = healing_tables._compared_values(text) -%}
            {%- do queries.append(healing_tables._near_values(scan, compared)) if compared is not none -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for row in (run_query((ctes or '') ~ (queries | join(' union all '))).rows if queries else [])
        if row['number'] > 0 -%}
        {%- set rows = healing_tables._counted(row['number'], 'key' if row['what'] == 'early' else 'row') -%}
        {%- do warnings.append(run.target ~ ': ' ~ rows ~ ' of source ' ~ row['source']
            ~ (' deleted before the first row, for example ' if row['what'] == 'early'
                else ' where ' ~ row['what'] ~ ' only by case or blanks: ') ~ row['example']) -%}
    {%- endfor -%}
    {{- return(warnings) -}}
{%- endmacro %}

{% macro _early_deletions(run, scan) -%}
    {%- set keys = healing_tables._key_names(scan['keys']) -%}
    {{- return('select ' ~ healing_tables._string_literal(scan.name)
        ~ " as source, 'early' as what, count(*) as number, min(concat("
        ~ healing_tables._key_text(run.settings.key_columns) ~ ')) as example from (select ' ~ keys
        ~ ' from (select ' ~ healing_tables._keys_of_scan(scan) ~ ', ' ~ scan.deletion.place ~ ' as place, '
        ~ scan.deletion.is_deletion ~ ' as is_deletion from ' ~ scan.relation ~ ' where ' ~ scan.deletion.where
        ~ ') group by ' ~ keys ~ ' having min_by(is_deletion, struct(place, is_deletion)))') -}}
{%- endmacro %}

{#- {column (SQL), values (literals)} of `column = 'x'` or `column in ('x', 'y')`; none for any other condition. -#}
{% macro _compared_values(condition) -%}
    {%- set text = "'[^'\\\\]*'" -%}
    {%- set found = modules.re.match('(?is)^\\s*(\\w+|`[^`]+`)\\s*(?:=\\s*(' ~ text ~ ')|in\\s*\\(\\s*(' ~ text
        ~ '(?:\\s*,\\s*' ~ text ~ ')*)\\s*\\))\\s*$', condition) -%}
    {%- if found is none -%} {{ return(none) }} {%- endif -%}
    {{- return({'column': found.group(1), 'values': modules.re.findall(text, found.group(2) or found.group(3))}) -}}
{%- endmacro %}

{% macro _near_values(scan, compared) -%}
    {%- set near, listed = [], compared['values'] | join(', ') -%}
    {%- for value in compared['values'] -%} {%- do near.append('lower(trim(' ~ value ~ '))') -%} {%- endfor -%}
    {%- set column = 'cast(' ~ compared.column ~ ' as string)' -%}
    {%- set what = compared.column ~ ' differs from ' ~ listed -%}
    {{- return('select ' ~ healing_tables._string_literal(scan.name) ~ ', ' ~ healing_tables._string_literal(what)
        ~ ', count(*), array_join(slice(sort_array(collect_set(concat(char(39), ' ~ column
        ~ ", char(39)))), 1, 5), ', ') from " ~ scan.relation ~ ' where '
        ~ (scan.filter ~ ' and ' if scan.filter is not none else '') ~ 'lower(trim(' ~ column ~ ')) in ('
        ~ (near | join(', ')) ~ ') and ' ~ column ~ ' not in (' ~ listed ~ ')') -}}
{%- endmacro %}
