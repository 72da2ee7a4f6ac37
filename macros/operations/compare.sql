{#-
    Print how a stored dimension differs from what its model returns now. Nothing is written.

    stored  id | valid_from | name      rebuilt  id | valid_from | name
            1  | 2024-01-01 | Ann                1  | 2024-01-01 | Anne
            1  | 2024-02-01 | Bea

    how         | id | valid_from | column | stored | rebuilt
    superfluous | 1  | 2024-02-01 |        |        |
    different   | 1  | 2024-01-01 | name   | Ann    | Anne
-#}
{% macro compare(dimension=none, against=none, fail=false, markdown=false) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set node = healing_tables._defer('compare', healing_tables._find_sql_model('compare', dimension)) -%}
    {%- set rendering = healing_tables._render_model(node) -%}
    {%- set existing = healing_tables._stored_table('compare', rendering) -%}
    {%- set other = healing_tables._other_table(against) -%}
    {%- set inputs = healing_tables._row_report_inputs(rendering, existing, other) -%}
    {%- set found = healing_tables._row_report(inputs) -%}
    {%- do found.update({'facts': healing_tables._facts_that_move(node, existing, inputs.rows, inputs.columns)
        if found.rows else []}) -%}
    {%- set compared = existing ~ ' against ' ~ ('a rebuild by model ' ~ node.name if other is none else other) -%}
    {%- if markdown -%} {%- do print(healing_tables._markdown_differences(compared, inputs, found)) -%}
    {%- else -%} {%- do healing_tables._print_differences(compared, inputs, found) -%}
    {%- endif -%}
    {%- if fail and (found.rows or inputs.other_shape) -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'fail', 'no difference', 'the differences above',
            'dbt run --select ' ~ node.name ~ ' publishes the difference' if other is none
            else 'find out which of the two is right; explain shows where a value comes from') -%}
        {%- do healing_tables._raise_error(
            'healing_tables compare: ' ~ existing ~ ' differs in ' ~ healing_tables._counted(found.rows, 'row')
            ~ (' and in its columns' if inputs.other_shape) ~ '.', mistakes) -%}
    {%- endif -%}
{%- endmacro %}

{#- The table to compare with, quoted; none for a rebuild. -#}
{% macro _other_table(against) -%}
    {%- if against is none -%} {{ return(none) }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set found = healing_tables._resolve_relation(mistakes, 'against', against | string) -%}
    {%- do healing_tables._raise_mistakes('compare', mistakes) -%}
    {{- return(found.quote(database=true, schema=true, identifier=true)) -}}
{%- endmacro %}

{#- Print the counts, the number of differing rows per column, and examples. -#}
{% macro _print_differences(compared, inputs, found) -%}
    {%- do healing_tables._print('healing_tables compare: ' ~ compared ~ ': '
        ~ healing_tables._counted(found.stored, 'row') ~ ' stored, '
        ~ healing_tables._counted(found.other, 'row') ~ ' ' ~ inputs.called ~ ', '
        ~ (found.missing ~ ' missing, ' ~ found.superfluous ~ ' superfluous, ' ~ found.different ~ ' different'
            if found.rows else 'no difference')) -%}
    {%- for side, text in inputs.left_out.items() -%}
        {%- do healing_tables._print('  not compared, ' ~ side ~ ': ' ~ text) -%}
    {%- endfor -%}
    {%- if not found.rows -%} {{ return(none) }} {%- endif -%}
    {%- if found.columns -%}
        {%- set rows = [] -%}
        {%- for name, count in found.columns.items() -%} {%- do rows.append([name, count]) -%} {%- endfor -%}
        {%- do healing_tables._print('') -%}
        {%- do healing_tables._print_table(['column', 'rows that differ'], rows) -%}
    {%- endif -%}
    {%- do healing_tables._print('') -%}
    {%- do healing_tables._print_table(*healing_tables._table_of_examples(inputs, found)) -%}
    {%- if found.facts -%}
        {%- do healing_tables._print('') -%}
        {%- do healing_tables._print_table(*healing_tables._table_of_facts(found.facts)) -%}
    {%- endif -%}
{%- endmacro %}

{#- Header and rows: the keys in facts that rekey_facts would change after a build. -#}
{% macro _table_of_facts(rows) -%}
    {{- return([['facts'] + healing_tables._rekey_kinds(), rows]) -}}
{%- endmacro %}

{#- Header and rows. -#}
{% macro _table_of_examples(inputs, found) -%}
    {%- set rows = [] -%}
    {%- for example in found.examples -%}
        {%- for cell in example.differing or [{'column': '', 'stored': '', 'other': ''}] -%}
            {%- do rows.append([example.how] + example.key + [example.start, cell.column, cell.stored, cell.other]) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return([['how'] + inputs.key_columns + [inputs.start_name or 'start', 'column', 'stored', inputs.called],
        rows]) -}}
{%- endmacro %}

{#- The same as Markdown, for a comment on a pull request. -#}
{% macro _markdown_differences(compared, inputs, found) -%}
    {%- set parts = ['### ' ~ compared, healing_tables._markdown_table(
        ['stored', inputs.called, 'missing', 'superfluous', 'different', 'keys'],
        [[found.stored, found.other, found.missing, found.superfluous, found.different, found['keys']]])] -%}
    {%- for side, text in inputs.left_out.items() -%} {%- do parts.append('Not compared, ' ~ side ~ ': ' ~ text) -%}
    {%- endfor -%}
    {%- if found.columns -%}
        {%- do parts.append(healing_tables._markdown_table(['column', 'rows that differ'],
            found.columns.items() | list)) -%}
    {%- endif -%}
    {%- if found.rows -%}
        {%- do parts.append(healing_tables._markdown_table(*healing_tables._table_of_examples(inputs, found))) -%}
    {%- endif -%}
    {%- if found.facts -%}
        {%- do parts.append(healing_tables._markdown_table(*healing_tables._table_of_facts(found.facts))) -%}
    {%- endif -%}
    {{- return(parts | join('\n\n')) -}}
{%- endmacro %}
