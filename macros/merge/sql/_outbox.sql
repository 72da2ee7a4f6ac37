{#- What a killed merge of the library has left in its outbox: rows of the change log whose dimension has committed
    (src/healing_tables/merge/outbox.py). -#}

{#- Add these rows to the log. Returns the ids of the merges, whose keys have to be computed again. -#}
{% macro _deliver_outbox(run, spec, layout, change_log) -%}
    {%- set outbox = run.target.incorporate(path={'identifier': run.target.identifier ~ '__pending'}) -%}
    {%- if not run.stored or not healing_tables._table_exists(outbox) -%} {{ return([]) }} {%- endif -%}
    {%- set staged = run_query('select merge_id, min(base_version) as base from ' ~ outbox
        ~ ' where change_log is not null group by merge_id').rows
        if 'change_log' in healing_tables._columns_of(outbox) else [] -%}
    {%- if not staged -%} {{ return([]) }} {%- endif -%}
    {%- set commits = run.format.commits.since(run.existing, staged | map(attribute='base') | min | int) -%}
    {%- set done = (commits or []) | map(attribute='parameters') | join(' ') -%}
    {%- set columns = (layout['keys'] + layout.attributes + layout.extra_ties) | map(attribute='quoted') -%}
    {%- set delivered = [] -%}
    {%- for row in staged if row['merge_id'] in done -%}
        {%- set id = healing_tables._string_literal(row['merge_id']) -%}
        {%- do healing_tables._run(healing_tables._append_to_change_log(
            dict(spec, on_tie='greatest'), layout, '(select change_log.' ~ (columns | join(', change_log.'))
            ~ ', change_log.changed_at, change_log.is_deleted, change_log.is_full from ' ~ outbox
            ~ ' where change_log is not null and merge_id = ' ~ id ~ ')', change_log, row['merge_id'])) -%}
        {%- do delivered.append(row['merge_id']) -%}
    {%- endfor -%}
    {{- return(delivered) -}}
{%- endmacro %}

{#- Their keys have been published. -#}
{% macro _clear_outbox(run, delivered) -%}
    {%- if not delivered -%} {{ return(none) }} {%- endif -%}
    {%- do healing_tables._run('delete from ' ~ run.target.incorporate(
        path={'identifier': run.target.identifier ~ '__pending'}) ~ ' where change_log is not null and '
        ~ healing_tables._is_of_merges(delivered)) -%}
{%- endmacro %}
