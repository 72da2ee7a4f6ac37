{#-
    Copy a Hive table that merges refuse (a managed one, or one whose partitions each have a location) to an external
    one of the same name; the old one is kept under another name. The library does it: src/healing_tables/targets/.

    lab.dim_user: copied to an external table; the old one is lab.dim_user__before_20261125180000: drop it ...
-#}
{% macro convert_table(dimension, key_buckets=none, key_columns=none, location=none) -%}
    {%- set relation = healing_tables._operation_table('convert_table', dimension).relation -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._check_can_merge(mistakes) -%}
    {%- do healing_tables._raise_mistakes('convert_table', mistakes) -%}
    {%- set kept = adapter.healing_tables_convert(
        relation | string, key_buckets, healing_tables._as_list(key_columns), location) -%}
    {%- do healing_tables._report('convert_table', relation, 'copied to an external table; the old one is ' ~ kept
        ~ ': drop it once you have checked the new one') -%}
{%- endmacro %}
