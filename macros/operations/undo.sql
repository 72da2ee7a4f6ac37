{#-
    Bring a dimension back to what it was at a moment, in one commit. Without run: true, only show the difference.

    published on   id | city | valid_from                     id | city | valid_from
    2024-03-05     7  | Oslo | 2024-01-01   to 2024-03-31 ->  7  | Oslo | 2024-01-01
    2024-04-02     7  | Rome | 2024-01-01
-#}
{% macro undo(dimension, known_at, run=false) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set table = healing_tables._operation_table('undo', dimension) -%}
    {%- set undone = healing_tables._begin_undo(table, known_at, run) -%}
    {%- set staged = healing_tables._stage_undo(undone, known_at) -%}
    {%- set figures = healing_tables._figures_of_undo(undone, staged) -%}
    {%- set differing = figures.rows_added + figures.rows_changed + figures.rows_removed -%}
    {%- do healing_tables._report('undo', table.relation, healing_tables._undo_summary(figures, known_at)) -%}
    {%- do healing_tables._print_undo(undone, staged, differing) if differing -%}
    {%- set moved = undone.moved -%}
    {%- do healing_tables._report('undo', table.relation, healing_tables._after_undo(undone, table.node.name))
        if differing or moved is not none -%}
    {%- if not run and (differing or moved is not none) -%}
        {%- do healing_tables._report('undo', table.relation, 'nothing was written; run: true does it') -%}
    {%- endif -%}
    {#- first: if this is killed, the next undo finds the same difference -#}
    {%- do healing_tables._move_batches(undone, 'undo to ' ~ known_at) if run and moved is not none -%}
    {%- do healing_tables._publish_undo(undone, staged, figures, known_at) if run and differing -%}
    {%- do healing_tables._run('drop table if exists ' ~ staged) -%}
    {{- return('') -}}
{%- endmacro %}

{#- What the undo changes, or would change, in one line. -#}
{% macro _undo_summary(figures, known_at) -%}
    {%- set parts = [] -%}
    {%- for figure, what in {'rows_added': 'to bring back', 'rows_changed': 'to change', 'rows_removed': 'to remove'
        }.items() if figures[figure] -%}
        {%- do parts.append(what ~ ' ' ~ healing_tables._counted(figures[figure], 'row')) -%}
    {%- endfor -%}
    {{- return('from now to ' ~ known_at ~ ': ' ~ (parts | join(', ') ~ ', of '
        ~ healing_tables._counted(figures.keys_affected, 'key') if parts else 'no difference')) -}}
{%- endmacro %}

{#- What comes after it, in one line. -#}
{% macro _after_undo(undone, model) -%}
    {%- if not undone.is_merged -%}
        {{- return('the next build of ' ~ model ~ ' publishes these rows again, as its sources have them: correct the '
            ~ 'sources first') -}}
    {%- endif -%}
    {%- set moved, parts = undone.moved, [] -%}
    {%- if moved is none -%} {{ return('a batch that is merged again is published again') }} {%- endif -%}
    {%- for batches, way in [[moved.gone, ' move from ' ~ moved.log ~ ' to ' ~ moved.table
        ~ ', so that no later merge publishes them'], [moved.back, ' move back from ' ~ moved.table]]
        if batches is not none -%}
        {%- do parts.append(healing_tables._counted(batches.rows, 'row') ~ ' of '
            ~ healing_tables._counted(batches.merges | length, 'merge') ~ way) -%}
    {%- endfor -%}
    {{- return(parts | join('; ')) -}}
{%- endmacro %}

{#- The first rows that differ, and what of them. -#}
{% macro _print_undo(undone, staged, differing) -%}
    {%- set shown, named_keys, changes, columns = 20, [], [], undone.known.stored -%}
    {%- for key in undone.run.settings.key_columns -%}
        {%- do named_keys.append(healing_tables._string_literal(key) ~ ', key_' ~ loop.index) -%}
    {%- endfor -%}
    {%- for name, condition in healing_tables._same_values('old', 'candidate_row', columns, columns).items() -%}
        {%- do changes.append('if(' ~ condition ~ ', null, concat(' ~ healing_tables._string_literal(name ~ ': ')
            ~ ', coalesce(cast(old.' ~ healing_tables._quoted(name) ~ " as string), 'NULL'), ' -> ', "
            ~ 'coalesce(cast(candidate_row.' ~ healing_tables._quoted(name) ~ " as string), 'NULL')))") -%}
    {%- endfor -%}
    {%- set json = ', ' ~ healing_tables._json_options() ~ ')' -%}
    {%- set rows = run_query('select to_json(named_struct(' ~ (named_keys | join(', ')) ~ ')' ~ json ~ ' as key, '
        ~ "case when old is null then 'bring back' when candidate_row is null then 'remove' else 'change' end as what, "
        ~ 'case when old is null then to_json(candidate_row' ~ json ~ ' when candidate_row is null then to_json(old'
        ~ json ~ " else array_join(array_compact(array(" ~ (changes | join(', ')) ~ ")), ', ') end as row from "
        ~ staged ~ ' order by key_1, start, 2 limit ' ~ shown).rows -%}
    {%- do healing_tables._print_table(['key', 'what', 'row'],
        healing_tables._fields(rows, ['key', 'what', 'row']), longest=120) -%}
    {%- do healing_tables._print('  ... and ' ~ (differing - shown) ~ ' more') if differing > shown -%}
{%- endmacro %}
