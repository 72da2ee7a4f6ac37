{#-
    The audit of a merge. It follows from the difference that the merge publishes, and is added after the commit of the
    dimension, whose tag says that it is due. If the merge was killed in between, the next one finds the same difference
    again: between the version before that commit, and the log as that commit has it.
-#}

{#- The `audit` of a run (see audit/_audit.sql); none without the option. -#}
{% macro _audit_of_merge(run, spec, layout, change_log, merge_ids=none) -%}
    {%- if spec.get('audit') is none -%} {{ return(none) }} {%- endif -%}
    {%- set surrogate = spec.get('surrogate_key') -%}
    {%- set has_start = layout.names.valid_from is not none -%}
    {{- return({
        'table': healing_tables._table_named_or_beside(run.target, spec.audit.get('table'), '_audit'),
        'surrogate': surrogate if surrogate is string or not surrogate else surrogate.name,
        'valid_to': layout.names.valid_to, 'moment_type': layout.moment_type if has_start else none,
        'row_start': none, 'ended': none, 'options': spec.audit, 'causes': layout.causes | map(attribute='name') | list,
        'said': healing_tables._said_causes(layout, change_log, merge_ids or [healing_tables._merge_id()])
            if layout.causes else none, 'is_dated': true, 'is_left_out': false}) -}}
{%- endmacro %}

{#- The causes that the rows of these merges give, for each key, as SQL for a `from`. -#}
{% macro _said_causes(layout, change_log, merge_ids) -%}
{%- set keys = healing_tables._key_names(layout['keys']) -%}
(
    select {{ keys }}, map_from_entries(collect_list(struct(at, cause))) as causes, max_by(cause, at) as newest
    from (
        select {{ keys }}, at, max(cause) as cause
        from (
            select {{ healing_tables._numbered_keys(layout) | join(', ') }}, unix_micros(changed_at) as at,
                struct({{ layout.causes | map(attribute='quoted') | join(', ') }}) as cause
            from {{ change_log }}
            where not is_full and {{ healing_tables._is_of_merges(merge_ids) }}
        )
        group by {{ keys }}, at
    )
    group by {{ keys }}
)
{%- endmacro %}

{#- Add what other programs have changed in the table, whose newest commit is not of a merge as SQL. -#}
{% macro _audit_others(run) -%}
    {%- set mistakes = [] -%}
    {%- if not run.stored or run.is_as_left or not run.format.commits.has_tags -%} {{ return(none) }} {%- endif -%}
    {%- do healing_tables._with_audit(dict(run, settings=healing_tables._settings_of_rows(mistakes,
        healing_tables._metadata_of_table(mistakes, none), run.stored.columns, run.format))) -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
{%- endmacro %}

{#- Add the audit of a merge that was killed before it could. -#}
{% macro _complete_audit(run, spec, layout, change_log, shown) -%}
    {%- set tag = run.newest_tag or {} -%}
    {%- set seen = (tag.get('marks') or {}).get('changes') or {} -%}
    {#- a merge that has found the table as another writer had left it tags that commit -#}
    {%- if not seen.get('is_audited') or tag.base | string == tag.version | string -%} {{ return(none) }} {%- endif -%}
    {%- set spec = dict({'audit': {}}, **spec) -%}
    {%- set audit = healing_tables._audit_of_merge(run, spec, layout, change_log, ['sql-' ~ tag.id]) -%}
    {%- if healing_tables._has_audit_of(run.format, audit, [tag.id], tag.version) -%} {{ return(none) }} {%- endif -%}
    {%- set before = run.format.commits.before(tag.version, tag.base) -%}
    {%- set commits = run.format.commits.since(run.existing, before) -%}
    {%- if commits is none or run.format.commits.may_be_gone(commits, run.stored) -%}
        {%- do exceptions.warn(healing_tables._plain_names(run.target ~ ': version ' ~ tag.version
            ~ ' has no audit: its merge was stopped, and the version before it may be gone')) -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._log_progress(run.target, 'adding the audit of version ' ~ tag.version
        ~ ', whose merge was stopped') -%}
    {%- set log_rows = healing_tables._rows_of_version(change_log, seen.version) -%}
    {%- set past = healing_tables._run_of_keys(dict(run, audit=audit), spec, layout, shown, '(select * from '
        ~ log_rows ~ ' where false)', log_rows, seen.has_full, 'true', none) -%}
    {%- do healing_tables._write_audit(
        past, healing_tables._difference_of_commit(past, tag.version, tag.base), tag.id,
        commits | selectattr('version', 'equalto', tag.version) | first) -%}
{%- endmacro %}
