{#-
    After history has moved: gives facts the key of the version that was in force at their moment, in one commit.

    facts                                dimension                          facts
    play | id | played_at  | player_sk   sk | id | valid_from | valid_to    play | player_sk
    1    | P1 | 2026-01-20 | 1           1  | P1 | 2026-01-05 | 2026-02-10  1    | 1
    2    | P1 | 2026-02-11 | 1           3  | P1 | 2026-02-10 | (open)   -> 2    | 3
    3    | P3 | 2026-02-12 | -1          4  | P3 | 2026-02-12 | (open)      3    | 4

    Facts that store what they should are not touched; with nothing to change there is no commit.
-#}
{% macro rekey_facts(facts, dimension, key_columns, at, columns, unknown=none, where=none, keys=none, since_version=none, valid_from='valid_from', valid_to='valid_to', valid_to_current='(not given)', versions_per_key='many') -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set fact_table = healing_tables._relation_named(mistakes, 'facts', facts) -%}
    {%- set dimension_table = healing_tables._relation_named(mistakes, 'dimension', dimension) -%}
    {%- set details = healing_tables._details(fact_table) -%}
    {%- if fact_table is not none and details.get('provider') != 'delta' -%}
        {%- do healing_tables._mistake(
            mistakes, 'facts', 'a Delta table, so that it is one commit', fact_table ~ ' (' ~ details.get('provider', 'a view') ~ ')',
            'build it with file_format: delta') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('rekey_facts', mistakes) -%}
    {%- if healing_tables._is_partial_run() -%}
        {%- do healing_tables._rekey_told(fact_table, 'left out under --empty and --sample') -%}
        {{- return('') -}}
    {%- endif -%}
    {%- do healing_tables._not_looked_up('rekey_facts', {}, [{'argument': 'where', 'relation': fact_table, 'condition': where}], mistakes) -%}
    {%- set moved = healing_tables._moved_keys(mistakes, fact_table, dimension_table, key_columns, keys, since_version) -%}
    {%- set about = healing_tables._as_of_about(
        fact_table, dimension_table, key_columns, at, columns, unknown, valid_from, valid_to, valid_to_current,
        versions_per_key, 'rekey_facts', mistakes) -%}
    {%- do healing_tables._rekey_scope(fact_table, about, moved, where) -%}
    {%- do healing_tables._rekey(fact_table, about, moved, where) -%}
    {{- return('') -}}
{%- endmacro %}
