{#-
    Report the faults of a stored table of versions, by kind, with counts and examples, and what repair would do. It
    reads the table once and writes nothing.

    id | valid_from | valid_to | is_current      kind            | found   | keys such as | repair
    1  | 2024-01-01 | (open)   | true        ->  overlap         | 1 pairs | id = 1       | the earlier row ends ...
    1  | 2024-03-01 | (open)   | true            several_current | 1 key   | id = 1       | the latest start stays open
       ...
-#}
{% macro diagnose(dimension, key_columns=none, valid_from='(not given)', valid_to='(not given)',
    is_current='(not given)', version='(not given)', tracked_columns='(not given)', current_values=none,
    valid_to_current='(not given)', fail=false, ignore=[]) -%}
    {%- set table = healing_tables._operation_table('diagnose', dimension) -%}
    {%- set stored_table = healing_tables._stored_dimension('diagnose', table, {
        'key_columns': key_columns, 'valid_from': valid_from, 'valid_to': valid_to, 'is_current': is_current,
        'version': version,
        'tracked_columns': tracked_columns, 'current_values': current_values, 'valid_to_current': valid_to_current}) -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._check_options(
        mistakes, 'ignore', healing_tables._as_list(ignore), healing_tables._damage_kinds(stored_table)
        | map(attribute='kind') | list) -%}
    {%- do healing_tables._raise_mistakes('diagnose', mistakes) -%}
    {%- set found = healing_tables._read_figures(healing_tables._diagnosis(stored_table)) -%}
    {%- set kinds = healing_tables._print_diagnosis('diagnose', stored_table, found) -%}
    {%- do healing_tables._report('diagnose', stored_table.relation, ('found: ' ~ (kinds | join(', '))) if kinds
        else 'nothing found') -%}
    {%- set failing = kinds | reject('in', healing_tables._as_list(ignore)) | list -%}
    {%- if fail and failing -%}
        {%- do healing_tables._mistake(
            mistakes, 'fail', 'no findings, since fail is true', 'the table above',
            'build the dimension again, or run healing_tables.repair; ignore: [...] leaves kinds out') -%}
        {%- do healing_tables._raise_error('healing_tables.diagnose ' ~ stored_table.relation ~ ': '
            ~ (failing | join(', ')), mistakes) -%}
    {%- endif -%}
    {{- return(found) -}}
{%- endmacro %}
