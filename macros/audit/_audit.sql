{#-
    The audit of a dimension: one row for each row that a publish adds, changes or removes. The library writes the same
    table (src/healing_tables/merge/audit.py); docs/audit.md explains its columns.
-#}

{% macro _audit_columns() -%}
    {{- return({
        'dimension': 'string', 'key': 'string', 'old_surrogate_key': 'string', 'new_surrogate_key': 'string',
        'change_type': 'string', 'change_reason': 'string', 'changed_columns': 'array<string>', 'old_values': 'string',
        'new_values': 'string', 'changed_at': 'timestamp', 'actor': 'string', 'reason': 'string', 'source': 'string',
        'batch_id': 'string', 'row_id': 'string', 'correlation_id': 'string', 'publish_no': 'bigint',
        'published_at': 'timestamp'}) -}}
{%- endmacro %}

{#-
    `audit`: what a run writes its audit with.

    table       the relation
    surrogate, valid_to   these columns of the dimension, or none; moment_type: of valid_from, none without it
    options     actor, reason and source, as they are set
    causes      the names of causes that rows of a batch can have
    row_start, ended   of type 4: the column with the start of a row; the end of each key, {key_1.., ended (in
                microseconds)}, as SQL for a `from`. None of other dimensions: only a late change removes a row
    said        the causes of its rows, {key_1.., causes (a map from a moment to them), newest}, as SQL for a `from`; or
                none
    change_source   of a build: the column with the source of a change, or none
    is_dated    the changes say why and when each version began, as those of a merge do
    is_left_out   this run adds nothing to it: it is a first build, and the option says so
-#}

{% macro _ensure_audit(run, mistakes, audit) -%}
    {%- set columns = healing_tables._audit_columns() -%}
    {#- older audits lack some -#}
    {%- do healing_tables._ensure_table_beside(run.format, mistakes, audit.table, 'audit', columns,
        columns | reject('in', ['correlation_id', 'publish_no', 'published_at']) | list, run.format.properties.audit,
        ['changed_at']) -%}
{%- endmacro %}

{#- Rows of the audit of a publish, which lack its columns, with the next number and the moment of its commit, as SQL
    for a `from`. Their number is joined: in a MERGE, Delta reads no subquery of an expression. -#}
{% macro _as_next_publish(audit, rows, commit) -%}
(
    select healing_tables_rows.*, healing_tables_next.publish_no,
        {{ healing_tables._moment_of_commit(commit) }} as published_at
    from (
{{ rows }}
    ) as healing_tables_rows
    cross join (
        select coalesce(max(publish_no), 0L) + 1 as publish_no
        from {{ audit.table }}
    ) as healing_tables_next
)
{%- endmacro %}

{#- The moment of a commit, as SQL. An adapter may give it in the time zone of the session or in its own: the clock is
    read in the same way, and only the time between the two counts. -#}
{% macro _moment_of_commit(commit) -%}
    {%- set clock = run_query('select now() as now, unix_micros(now()) as micros').rows[0] -%}
    {%- set texts = [] -%}
    {%- for moment in [commit.at, clock['now']] -%}
        {%- do texts.append("timestamp_ntz '" ~ modules.re.match(
            '[0-9-]{10}[ T][0-9:]{8}([.][0-9]+)?', moment | string).group(0) ~ "'") -%}
    {%- endfor -%}
    {{- return('timestamp_micros(' ~ clock['micros'] ~ 'L - timestampdiff(microsecond, ' ~ (texts | join(', ')) ~ '))')
        -}}
{%- endmacro %}

{#- The statement that adds rows of a merge from the outbox of the library. `rows`: SQL for a `from`. -#}
{% macro _deliver_audit(format, audit, rows, commit) -%}
{%- set names = healing_tables._audit_columns() | list -%}
merge into {{ audit.table }} as t
using {{ healing_tables._as_next_publish(
    audit, 'select audit.' ~ (names[:-2] | join(', audit.')) ~ ' from ' ~ rows, commit) }} as s
on t.row_id = s.row_id
{{ healing_tables._insert_missing(format, names) }}
{%- endmacro %}

{#- The id of a publish, which the commit of its audit names. -#}
{% macro _publish_id(invocation, version) -%} {{ return(invocation ~ '/' ~ version) }} {%- endmacro %}

{#- Whether an audit has the rows of a publish. `ids`: of the runs that may have made it, as batch_id begins. An
    operation or a merge of the library may have left no id in its commit: the moment of a `commit` counts, too. -#}
{% macro _has_audit_of(format, audit, ids, version, commit=none) -%}
    {%- if healing_tables._was_written_by(format, audit.table, healing_tables._publish_id(ids[0], version)) -%}
        {{- return(true) -}}
    {%- endif -%}
    {%- set listed = [] -%}
    {%- for id in ids -%} {%- do listed.append(healing_tables._string_literal(id)) -%} {%- endfor -%}
    {{- return(healing_tables._has_rows('(select 1 from ' ~ audit.table ~ ' where substr(batch_id, 1, 36) in ('
        ~ (listed | join(', ')) ~ ')' ~ (' or published_at = ' ~ healing_tables._moment_of_commit(commit)
            if commit is not none) ~ ')')) -}}
{%- endmacro %}

{#- Add the audit of a publish, once. `found`: what the publish has changed, as _difference_of_commit() returns it
    (build/_audited.sql); `commit`: its version and moment. -#}
{% macro _write_audit(run, found, invocation, commit) -%}
    {%- do healing_tables._run(healing_tables._append_to_audit(run, found, invocation, commit)) -%}
    {%- do healing_tables._run(healing_tables._note_written_by(
        run.format, run.audit.table, healing_tables._publish_id(invocation, commit.version))) -%}
{%- endmacro %}

{#- The statement for that. -#}
{% macro _append_to_audit(run, found, invocation, commit) -%}
{%- set names = healing_tables._audit_columns() | list -%}
{%- set id = healing_tables._publish_id(invocation, commit.version) -%}
merge into {{ run.audit.table }} as t
using (
    select *, {{ healing_tables._string_literal(id) }} as publish
    from {{ healing_tables._as_next_publish(
        run.audit, healing_tables._rows_of_audit(run, found, invocation, id), commit) }}
) as s
on t.batch_id = {{ healing_tables._string_literal(invocation) }} and t.row_id = s.row_id and s.publish = {{
    healing_tables._string_literal(id) }}
{{ healing_tables._insert_missing(run.format, names) }}
{%- endmacro %}
