{#- What a killed merge of the library has left in its outbox: rows for the tables beside the dimension, which has
    committed (src/healing_tables/merge/outbox.py). -#}

{#- Deliver these rows. Returns the ids of the merges whose rows for the log are in it now: their keys have to be
    computed again. `audit`: see audit/_audit.sql, or none. -#}
{% macro _deliver_outbox(run, spec, layout, change_log, audit) -%}
    {%- set outbox = healing_tables._beside(run.target, '__pending') -%}
    {%- if not run.stored or not healing_tables._table_exists(outbox) -%} {{ return([]) }} {%- endif -%}
    {%- set columns, wanted = healing_tables._columns_of(outbox), [] -%}
    {%- for name in ['change_log', 'audit'] if name in columns and (name != 'audit' or audit is not none) -%}
        {%- do wanted.append(name) -%}
    {%- endfor -%}
    {%- if not wanted -%} {{ return([]) }} {%- endif -%}
    {%- set staged = run_query('select merge_id, min(base_version) as base, ' ~ ('max(change_log is not null)'
        if 'change_log' in wanted else 'false') ~ ' as has_log from ' ~ outbox ~ ' where '
        ~ (wanted | join(' is not null or ')) ~ ' is not null group by merge_id').rows -%}
    {%- if not staged -%} {{ return([]) }} {%- endif -%}
    {%- set commits = run.format.commits.since(run.existing, staged | map(attribute='base') | min | int) -%}
    {%- set done = (commits or []) | map(attribute='parameters') | join(' ') -%}
    {%- set delivered, logged = [], [] -%}
    {%- for row in staged if row['merge_id'] in done -%}
        {%- do delivered.append(row['merge_id']) -%}
        {%- if row['has_log'] -%}
            {%- do healing_tables._run(healing_tables._append_to_change_log(dict(spec, on_tie='greatest'), layout,
                healing_tables._log_rows_in_outbox(layout, outbox, columns['change_log'], row['merge_id']),
                change_log, row['merge_id'])) -%}
            {%- do logged.append(row['merge_id']) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for commit in (commits or []) | reverse if 'audit' in wanted -%}
        {#- a commit is of one merge: each has its number, in the order of the commits -#}
        {%- for merge_id in delivered if merge_id in commit.parameters -%}
            {%- do healing_tables._run(healing_tables._deliver_audit(run.format, audit, outbox
                ~ ' where audit is not null and ' ~ healing_tables._is_of_merges([merge_id]),
                commit)) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do healing_tables._run('delete from ' ~ outbox ~ ' where audit is not null and '
        ~ healing_tables._is_of_merges(delivered)) if delivered and 'audit' in wanted -%}
    {{- return(logged) -}}
{%- endmacro %}

{#- The rows of a merge for the log, as SQL for a `from`. `type`: of the column change_log. -#}
{% macro _log_rows_in_outbox(layout, outbox, type, merge_id) -%}
    {%- set columns = [] -%}
    {%- for column in layout['keys'] + layout.carried -%}
        {#- the library keeps only causes that an option names; rows of before a rule are complete -#}
        {%- set is_there = column not in layout.causes + layout.flags or column.name ~ ':' in type -%}
        {%- do columns.append(('change_log.' ~ column.quoted if is_there else 'cast(null as ' ~ column.type ~ ')')
            ~ ' as ' ~ column.quoted) -%}
    {%- endfor -%}
    {{- return('(select ' ~ (columns | join(', ')) ~ ', change_log.changed_at, change_log.is_deleted, '
        ~ 'change_log.is_full from ' ~ outbox ~ ' where change_log is not null and merge_id = '
        ~ healing_tables._string_literal(merge_id) ~ ')') -}}
{%- endmacro %}

{#- The keys of these merges have been published. -#}
{% macro _clear_outbox(run, logged) -%}
    {%- if not logged -%} {{ return(none) }} {%- endif -%}
    {%- do healing_tables._run('delete from ' ~ healing_tables._beside(run.target, '__pending')
        ~ ' where change_log is not null and ' ~ healing_tables._is_of_merges(logged)) -%}
{%- endmacro %}
