{#-
    Forget keys: remove every row of them from the tables of a dimension, and keep only a keyed hash, so that no build,
    merge or capture brings them back. Without run: true, only show what would be removed.

    dim  id | name | city     keys: [7], run: true     dim  id | name | city     dim__erased  key_hash | event
         1  | Ann  | Oslo              ->                   1  | Ann  | Oslo                  5d0c...  | erase
         7  | Bea  | Rome
-#}
{% macro erase(dimension, keys, facts=[], run=false) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set secret = healing_tables._erasure_secret(mistakes) -%}
    {%- set found = healing_tables._erase_subjects(mistakes, 'erase', dimension, keys) -%}
    {%- set target = found.subjects[0].relation -%}
    {%- do healing_tables._raise_mistakes('erase', mistakes) -%}
    {%- for subject in found.subjects -%} {%- do healing_tables._erased(mistakes, subject.relation) -%} {%- endfor -%}
    {%- set places = healing_tables._places_of_facts(mistakes, found.subjects[0], facts) -%}
    {#- it would publish the keys again -#}
    {%- for subject in found.subjects -%}
        {%- do healing_tables._check_no_build(mistakes, healing_tables._candidates_of(subject.relation, subject.format,
            12), 12) -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes('erase', mistakes) -%}
    {%- do found.update({'subjects': healing_tables._with_texts(found.subjects, secret)}) -%}
    {%- for subject in found.subjects[1:] + found.subjects[:1] -%}
        {%- do healing_tables._be_model(subject.node, subject.relation) if subject.node is not none -%}
        {%- do places.extend(healing_tables._places_of_subject(subject)) -%}
    {%- endfor -%}
    {%- set places = healing_tables._counted_places(places) -%}
    {%- set rows = places | map(attribute='rows') | sum -%}
    {%- do healing_tables._report('erase', target, healing_tables._counted(found.subjects[0]['keys'] | length, 'key')
        ~ ': ' ~ ('to erase ' if not run) ~ healing_tables._counted(rows, 'row') ~ ' in '
        ~ healing_tables._counted(places | selectattr('rows') | list | length, 'table')) -%}
    {%- do healing_tables._print_places(places) -%}
    {%- do healing_tables._report_other_sources(found, target) -%}
    {%- if not run -%}
        {%- do healing_tables._report('erase', target, 'nothing was written; run: true does it') -%}
        {{- return('') -}}
    {%- endif -%}
    {%- set started_at = healing_tables._utc_now() -%}
    {#- first of all: a run that begins now leaves the keys out -#}
    {%- for subject in found.subjects -%}
        {%- do healing_tables._register(subject, secret, 'erase', none) -%}
    {%- endfor -%}
    {%- for subject in found.subjects -%}
        {%- do healing_tables.drop_candidates(subject.node.name if subject.node is not none
            else subject.relation.schema ~ '.' ~ subject.relation.identifier) -%}
    {%- endfor -%}
    {%- set subject = found.subjects[0] -%}
    {%- do healing_tables._be_model(subject.node, target) if subject.node is not none -%}
    {%- set rows_of_target = places | selectattr('table', 'equalto', target) | map(attribute='rows') | sum -%}
    {%- set audited = healing_tables._begin_audit_of_operation('erase', target, subject.node, subject.details,
        subject.key_columns) if rows_of_target > 0 else none -%}
    {%- for place in places if place.rows > 0 -%} {%- do healing_tables._erase_place(place) -%} {%- endfor -%}
    {%- do healing_tables._note_no_audit(audited) if audited is not none -%}
    {%- do healing_tables._report_past(found.subjects, places) -%}
    {%- do healing_tables._end_erasure(found.subjects[0], 'erase', started_at, rows) -%}
    {{- return('') -}}
{%- endmacro %}
