{#-
    The work of rekey_facts. The facts that store another key than they should are looked up once, into a small table of
    this run's own, from which the report and the MERGE are made.

    A row of it is a tuple (keys, moment, stored): facts that are equal in these get the same key, so a fact needs no
    key of its own. A fact that someone else has changed in the meantime is met by no row.
-#}
{% macro _rekey(facts, format, as_of_request, moved, where) -%}
    {%- set staged = healing_tables._staging_relation(facts, 'rekey') -%}
    {%- set before = healing_tables._base_version(format, facts) -%}
    {%- do healing_tables._run('create table ' ~ staged ~ ' using ' ~ format.staging_format ~ ' as\n'
        ~ healing_tables._facts_to_rekey(as_of_request)) -%}
    {%- set figures = run_query(healing_tables._rekey_figures(staged)).rows[0] -%}
    {%- set version = '' -%}
    {%- if figures.changed > 0 -%}
        {%- do healing_tables._run(healing_tables._rekey_merge(
            format.commits.begin(facts, before), staged, as_of_request, where)) -%}
        {%- do healing_tables._check_not_overtaken('rekey_facts', facts, format.commits.end(facts, before)) -%}
        {%- set version = ' in one commit, version ' ~ format.commits.newest_version(facts) -%}
    {%- endif -%}
    {%- for table in [staged, moved.get('staged')] if table is not none -%}
        {%- do healing_tables._run('drop table if exists ' ~ table) -%}
    {%- endfor -%}
    {%- do healing_tables._report_rekey(facts,
        healing_tables._counted(figures.changed, 'fact') ~ ' changed' ~ version if figures.changed > 0
        else 'unchanged, nothing to commit') -%}
    {%- for name in healing_tables._rekey_kinds() if figures.changed > 0 -%}
        {%- do healing_tables._report_rekey(facts, '    ' ~ '%-24s' | format(name) ~ ' | ' ~ figures[loop.index]) -%}
    {%- endfor -%}
    {%- if moved.version is not none -%}
        {%- do healing_tables._report_rekey(facts, 'the dimension is at version ' ~ moved.version
            ~ ', the next since_version') -%}
    {%- endif -%}
{%- endmacro %}

{#- A name of this run's own next to the facts. What another run has left there is reported: it may
    still be active. -#}
{% macro _staging_relation(facts, what) -%}
    {%- for name in healing_tables._tables_of_other_runs(facts, healing_tables._tables_beside(facts), what) -%}
        {%- do healing_tables._report_rekey(facts, 'another run writes ' ~ name
            ~ ', or has failed and left it; then drop it') -%}
    {%- endfor -%}
    {%- set table = api.Relation.create(
        database=facts.database, schema=facts.schema, type='table',
        identifier=facts.identifier ~ '__' ~ what ~ '_' ~ invocation_id | replace('-', '')) -%}
    {%- do healing_tables._run('drop table if exists ' ~ table) -%}
    {{- return(table) -}}
{%- endmacro %}

{% macro _report_rekey(facts, text) -%}
    {%- do log(healing_tables._plain_names('healing_tables.rekey_facts ' ~ facts ~ ': ' ~ text), info=true) -%}
{%- endmacro %}

{% macro _facts_to_rekey(as_of_request) -%}
{%- set tuple = ['fact_at', 'has_version', 'was_unknown'] -%}
{%- for key in as_of_request.key_columns -%} {%- do tuple.append('fact_key_' ~ loop.index) -%} {%- endfor -%}
{%- for column in as_of_request.columns -%}
    {%- do tuple.extend(['stored_' ~ loop.index, 'wanted_' ~ loop.index]) -%}
{%- endfor -%}
select {{ tuple | join(', ') }}, count(*) as facts
from (
{{ healing_tables._stored_and_expected(as_of_request) }}
)
where {{ healing_tables._key_differs(as_of_request) }}
group by {{ tuple | join(', ') }}
{%- endmacro %}

{#- What the figures of _rekey_figures() are called, without the sum of them. -#}
{% macro _rekey_kinds() -%}
    {{- return(['moved to another version', 'resolved from unknown', 'became unknown']) -}}
{%- endmacro %}

{% macro _rekey_figures(staged) -%}
select
    cast(coalesce(sum(facts), 0) as bigint) as changed,
    cast(coalesce(sum(facts) filter (where has_version and not was_unknown), 0) as bigint) as moved,
    cast(coalesce(sum(facts) filter (where has_version and was_unknown), 0) as bigint) as resolved,
    cast(coalesce(sum(facts) filter (where not has_version), 0) as bigint) as became_unknown
from {{ staged }}
{%- endmacro %}

{% macro _rekey_merge(facts, staged, as_of_request, where) -%}
{%- set conditions = ['fact.' ~ healing_tables._quoted(as_of_request.at_column) ~ ' <=> moved.fact_at'] -%}
{%- set assignments = [] -%}
{%- for key in as_of_request.key_columns -%}
    {%- do conditions.append(
        healing_tables._normalized_value('fact.' ~ healing_tables._quoted(key.fact_column), key.fact_type)
        ~ ' <=> moved.fact_key_' ~ loop.index) -%}
{%- endfor -%}
{%- for column in as_of_request.columns -%}
    {%- set name = 'fact.' ~ healing_tables._quoted(column.name) -%}
    {%- do conditions.append(healing_tables._normalized_value(name, column.stored_type) ~ ' <=> moved.stored_'
        ~ loop.index) -%}
    {%- do assignments.append(name ~ ' = moved.wanted_' ~ loop.index) -%}
{%- endfor -%}
{%- if where is not none -%} {%- do conditions.append('(' ~ where ~ ')') -%} {%- endif -%}
merge into {{ facts }} as fact
using {{ staged }} as moved
on {{ conditions | join('\n    and ') }}
when matched then update set {{ assignments | join(', ') }}
{%- endmacro %}
