{#-
    Prove an erasure: look for keys that were erased in the current rows of the tables of a dimension, and in all of
    their files, and count the entries of their logs that may name their values. Rows that are still there are an
    error.

    table         | what      | rows | in all files | entries of the log
    dim           | dimension | 0    | 2            | 5
    dim_audit     | audit     | 0    | 0            | 0
-#}
{% macro erased(dimension) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set mistakes, table = [], healing_tables._operation_table('erased', dimension) -%}
    {%- set erased = healing_tables._erased(mistakes, table.relation) -%}
    {%- do healing_tables._mistake(mistakes, 'dimension', 'a dimension with erased keys', table.relation
        ~ ', which has none', 'erase keys first') if erased is none -%}
    {%- do healing_tables._raise_mistakes('erased', mistakes) -%}
    {%- set found = healing_tables._erase_subjects(mistakes, 'erased', dimension, none) -%}
    {%- set listed, left = [], [] -%}
    {%- set subjects = healing_tables._with_texts(found.subjects, erased.secret) -%}
    {%- for subject in subjects[1:] + subjects[:1] -%}
        {%- do healing_tables._be_model(subject.node, subject.relation) if subject.node is not none -%}
        {%- for place in healing_tables._places_to_prove(mistakes, subject) -%}
            {%- set rows = run_query('select count(*) as n from ' ~ place.rows).rows[0]['n'] | int -%}
            {%- set past = run_query('select count(*) as n from ' ~ place.all).rows[0]['n'] | int
                if place.all is not none else none -%}
            {%- do listed.append([place.table, place.what, rows, 'not known' if past is none else past,
                '' if place.log is none else place.log]) -%}
            {%- do left.append(place.table ~ ': ' ~ healing_tables._counted(rows, 'row')) if rows > 0 -%}
            {%- do healing_tables._report('erased', table.relation, place.past) if past != 0 or place.log -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do healing_tables._print_table(['table', 'what', 'rows', 'in all files', 'entries of the log'], listed) -%}
    {%- if left -%}
        {%- do healing_tables._mistake(mistakes, 'dimension', 'no row of an erased key', left | join(', '),
            'run erase again, while no build, merge or capture runs') -%}
        {%- do healing_tables._raise_error('healing_tables.erased ' ~ table.relation ~ ': not erased.', mistakes) -%}
    {%- endif -%}
    {%- do healing_tables._report('erased', table.relation, 'no current row has an erased key') -%}
    {{- return('') -}}
{%- endmacro %}
