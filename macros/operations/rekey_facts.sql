{#-
    After history has changed: update facts to the key of the version that was valid at their moment, in one commit.

    facts                                dimension                          facts
    play | id | played_at  | player_sk   sk | id | valid_from | valid_to    play | player_sk
    1    | P1 | 2026-01-20 | 1           1  | P1 | 2026-01-05 | 2026-02-10  1    | 1
    2    | P1 | 2026-02-11 | 1           3  | P1 | 2026-02-10 | (open)   -> 2    | 3
    3    | P3 | 2026-02-12 | -1          4  | P3 | 2026-02-12 | (open)      3    | 4

    Facts with the right key are not changed; if all keys are right, there is no commit.
-#}
{% macro rekey_facts(facts, dimension, key_columns, at, columns, unknown=none, where=none, keys=none,
    since_version=none, valid_from='valid_from', valid_to='valid_to', valid_to_current='(not given)',
    versions_per_key=none, null_keys=none) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set fact_table = healing_tables._resolve_relation(mistakes, 'facts', facts) -%}
    {%- set dimension_table = healing_tables._resolve_relation(mistakes, 'dimension', dimension) -%}
    {%- set details = healing_tables._table_details(fact_table) -%}
    {%- set format = healing_tables._stored_format(details) -%}
    {%- if fact_table is not none and (format is none or not format.has_commits) -%}
        {%- do healing_tables._mistake(
            mistakes, 'facts', 'a table in ' ~ (healing_tables._formats_with('has_commits') | join(' or '))
            ~ ', so that it is one commit',
            fact_table ~ ' (' ~ details.get('provider', 'a view') ~ ')', 'build it with such a file_format') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('rekey_facts', mistakes) -%}
    {%- if healing_tables._is_partial_run() -%}
        {%- do healing_tables._report_rekey(fact_table, 'left out under --empty and --sample') -%}
        {{- return('') -}}
    {%- endif -%}
    {%- do healing_tables._placeholder_select('rekey_facts', {},
        [{'argument': 'where', 'relation': fact_table, 'condition': where}], mistakes) -%}
    {%- set moved = healing_tables._moved_keys(mistakes, fact_table, dimension_table, key_columns, keys,
        since_version) -%}
    {%- set as_of_request = healing_tables._as_of_request(
        fact_table, dimension_table, key_columns, at, columns, unknown, valid_from, valid_to, valid_to_current,
        versions_per_key, 'rekey_facts', mistakes, null_keys=null_keys) -%}
    {%- do healing_tables._rekey_scope(fact_table, format, as_of_request, moved, where) -%}
    {%- do healing_tables._rekey(fact_table, format, as_of_request, moved, where) -%}
    {{- return('') -}}
{%- endmacro %}
