{#-
    Let keys that were erased in again: their rows after a moment. What was erased stays away.

    dim__erased  key_hash | event   | readmitted_after
                 5d0c...  | erase   | NULL
                 5d0c...  | readmit | 2024-08-15
-#}
{% macro readmit(dimension, keys, after) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set secret = healing_tables._erasure_secret(mistakes) -%}
    {%- set found = healing_tables._erase_subjects(mistakes, 'readmit', dimension, keys) -%}
    {%- set target = found.subjects[0].relation -%}
    {%- do healing_tables._mistake(mistakes, 'after', "a moment in UTC such as '2024-01-01'", after, 'correct the text')
        if healing_tables._parse_instant(after) is none -%}
    {%- do healing_tables._raise_mistakes('readmit', mistakes) -%}
    {%- do healing_tables._mistake(mistakes, 'dimension', 'a dimension with erased keys', target ~ ', which has none',
        'nothing is left out of it') if healing_tables._erased(mistakes, target) is none -%}
    {%- do healing_tables._raise_mistakes('readmit', mistakes) -%}
    {%- set started_at = healing_tables._utc_now() -%}
    {%- do found.update({'subjects': healing_tables._with_texts(found.subjects, secret)}) -%}
    {%- for subject in found.subjects -%}
        {%- do healing_tables._register(subject, secret, 'readmit', after)
            if load_relation(healing_tables._erased_relation(subject.relation)) is not none -%}
    {%- endfor -%}
    {%- do healing_tables._report('readmit', target, 'rows of ' ~ healing_tables._counted(
        found.subjects[0]['keys'] | length, 'key') ~ ' after ' ~ after
        ~ ' are in again; the next build is a rebuild') -%}
    {%- do healing_tables._end_erasure(found.subjects[0], 'readmit', started_at, 0) -%}
    {{- return('') -}}
{%- endmacro %}
