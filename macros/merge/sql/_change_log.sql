{#-
    The change log of a dimension: every row of every batch. The library makes and reads the same table
    (src/healing_tables/merge/change_log.py).

    id | name | changed_at | is_deleted | is_full | is_seed | merge_id  | logged_at
    1  | Ann  | 2024-01-01 | false      | false   | false   | sql-4f... | 2024-01-02 03:00
-#}
{% macro _log_of_changes_columns() -%}
    {{- return(['changed_at', 'is_deleted', 'is_full', 'is_seed', 'merge_id', 'logged_at']) -}}
{%- endmacro %}

{% macro _change_log_relation(target, spec) -%}
    {{- return(healing_tables._table_named_or_beside(target, spec.get('change_log'), '_changes')) -}}
{%- endmacro %}

{#- The log that a dimension notes is the one that the model names. -#}
{% macro _check_named_log(mistakes, noted, named) -%}
    {%- if noted is not none and noted != named -%}
        {%- do healing_tables._mistake(mistakes, 'change_log', noted ~ ', the change log of this dimension', named,
            'leave change_log out, or set it to ' ~ noted) -%}
    {%- endif -%}
{%- endmacro %}

{#- The columns of the log {name: type}, in the order in which the library makes them. -#}
{% macro _columns_of_change_log(layout) -%}
    {%- set columns = {} -%}
    {%- for column in layout['keys'] + layout.attributes + layout.extra_ties -%}
        {%- do columns.update({column.name: column.type}) -%}
    {%- endfor -%}
    {%- do columns.update({'changed_at': 'timestamp', 'is_deleted': 'boolean', 'is_full': 'boolean',
        'is_seed': 'boolean', 'merge_id': 'string', 'logged_at': 'timestamp'}) -%}
    {%- for column in layout.causes + layout.flags -%} {%- do columns.update({column.name: column.type}) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- Make the log if there is none; otherwise check that it is the log of this dimension, and add new columns.
    Returns {is_new, has_new_causes, narrower (see _ensure_table_beside())}. -#}
{% macro _ensure_change_log(run, layout, relation) -%}
    {%- set owner, mistakes = healing_tables._full_name(run.target), [] -%}
    {%- set keys = layout['keys'] | map(attribute='name') | list -%}
    {%- set found = healing_tables._ensure_table_beside(run.format, mistakes, relation, 'change log',
        healing_tables._columns_of_change_log(layout), keys + healing_tables._log_of_changes_columns(),
        dict(run.format.properties.change_log, **{'healing_tables.dimension': owner}), keys) -%}
    {%- set noted = none if found.is_new else healing_tables._property(found.details, 'healing_tables.dimension') -%}
    {%- if noted is not none and noted != owner -%}
        {%- do healing_tables._mistake(mistakes, relation | string,
            'the change log of ' ~ owner ~ ', or no table yet',
            'the change log of ' ~ noted ~ ': two dimensions cannot share one',
            'name another table in change_log; if the dimension was renamed: ALTER TABLE ' ~ relation
            ~ " SET TBLPROPERTIES ('healing_tables.dimension' = '" ~ owner ~ "')") -%}
    {%- endif -%}
    {%- do healing_tables._refuse(run, mistakes) if mistakes -%}
    {%- do healing_tables._renew_change_log(run.format, relation, found.is_new) -%}
    {{- return({'is_new': found.is_new, 'narrower': found.narrower,
        'has_new_causes': layout.causes | selectattr('name', 'in', found.added) | list | length > 0}) -}}
{%- endmacro %}

{#- Let the newest version of the log have all its columns, and note in it that there are merges of this way, where the
    library would have to read all rows to know that. -#}
{% macro _renew_change_log(format, relation, is_new) -%}
    {%- if format.commits.shows_predicates or format.commits.names_folders -%} {{ return(none) }} {%- endif -%}
    {%- do healing_tables._run(healing_tables._note_written_by(format, relation, 'sql')) -%}
    {%- set renew = format.commits.renew(relation) -%}
    {%- if renew is not none and not is_new and healing_tables._query_columns('select * from ' ~ relation)
        != healing_tables._query_columns('select * from ' ~ healing_tables._rows_of_version(
            relation, format.commits.newest_version(relation))) -%}
        {%- do healing_tables._run(renew) -%}
    {%- endif -%}
{%- endmacro %}

{#- The rows of a version of a table, as SQL for a `from`; of a table without a version there are none. -#}
{% macro _rows_of_version(relation, version) -%}
    {{- return('(select * from ' ~ relation ~ ' where false)' if version is none
        else relation ~ ' version as of ' ~ version) -}}
{%- endmacro %}

{#- The name of a table with its catalog and schema, in lower case without quotes, as the library writes it. -#}
{% macro _full_name(relation) -%}
    {%- set catalog = relation.database
        or run_query('select current_catalog() as catalog').rows[0]['catalog'] -%}
    {{- return((catalog ~ '.' ~ relation.schema ~ '.' ~ relation.identifier) | lower) -}}
{%- endmacro %}

{#- The id of this run's rows in the log. -#}
{% macro _merge_id() -%} {{ return('sql-' ~ invocation_id) }} {%- endmacro %}

{#- The statement that adds rows to the log: for each key and moment the one that counts. It fails if another writer has
    logged a different row for one of them. `events`: SQL for a `from`, see _events_of_batch(). -#}
{% macro _append_to_change_log(spec, layout, events, relation, merge_id, is_seed=false) -%}
{%- set keys, names, values = layout['keys'] | map(attribute='quoted') | list, [], [] -%}
{%- set found = healing_tables._is_logged(layout) -%}
{#- in the condition, it is a part of the commit -#}
{%- set merge_id = healing_tables._string_literal(merge_id) -%}
{%- for name in healing_tables._quoted_list(healing_tables._columns_of_change_log(layout)) -%}
    {%- do names.append(name) -%}
    {%- do values.append('s.' ~ name) -%}
{%- endfor -%}
merge into {{ relation }} as t
using (
    select *, {{ merge_id }} as merge_id
    from (
{{ healing_tables._rows_for_log(layout, events, is_seed) }}
    )
) as s
on s.merge_id = {{ merge_id }} and {{ found.same }}
{%- if spec.get('on_tie') == 'greatest' %}
and {{ found.equal }}
{%- endif %}
{%- if layout.has_first_starts %}
{#- a row that comes again with an earlier start is logged again #}
and (s.valid_from_first is null or t.valid_from_first <= s.valid_from_first
    {{- ' or not (' ~ found.equal ~ ')' if spec.get('on_tie') != 'greatest' }})
{%- endif %}
{%- if spec.get('on_tie') != 'greatest' %}
when matched and not ({{ found.equal }}) then update set {{ keys[0] }} = cast(raise_error(concat(
    'healing_tables: another merge has logged a different row of key ', coalesce(cast(s.{{ keys[0] }} as string),
    'NULL'))) as {{ layout['keys'][0].type }})
{%- endif %}
when not matched then insert ({{ names | join(', ') }}) values ({{ values | join(', ') }})
{%- endmacro %}

{#- Rows for the log: for each key and moment those that count. -#}
{% macro _rows_for_log(layout, events, is_seed=false) -%}
{%- set place = healing_tables._competing_rows(layout) -%}
select *, {{ is_seed | lower }} as is_seed, now() as logged_at
from (
    select {{ healing_tables._with_first_start(layout, place) }}, row_number() over (partition by {{ place
        }} order by {{ healing_tables._rank_of_row(layout) }}) as healing_tables_place
    from {{ events }}
)
where healing_tables_place = 1
{%- endmacro %}

{#- Conditions on a row `t` of the log and a new one `s`: {same (one key and moment), equal (also one state)}. -#}
{% macro _is_logged(layout) -%}
    {%- set same, equal = ['t.changed_at = s.changed_at'], [] -%}
    {%- for name in (layout['keys'] | map(attribute='quoted') | list + layout.ties | map(attribute='quoted') | list
        + ['is_full']) | unique -%}
        {%- do same.append('t.' ~ name ~ ' <=> s.' ~ name) -%}
    {%- endfor -%}
    {%- do same.append('(not s.is_full or t.within_values <=> s.within_values)') if layout.part is not none -%}
    {%- for name in ['is_deleted'] + layout.attributes | map(attribute='quoted') | list -%}
        {%- do equal.append('t.' ~ name ~ ' <=> s.' ~ name) -%}
    {%- endfor -%}
    {{- return({'same': same | join(' and '), 'equal': equal | join(' and ')}) -}}
{%- endmacro %}

{% macro _withdraw_from_change_log(relation) -%}
    {{- return('delete from ' ~ relation ~ ' where merge_id = '
        ~ healing_tables._string_literal(healing_tables._merge_id())) -}}
{%- endmacro %}

{#- The log since a version, or since its beginning if that is none: {version (of the newest commit), row_commits (how
    many commits changed rows)}. -#}
{% macro _state_of_change_log(run, relation, version) -%}
    {%- set commits = run.format.commits.since(relation, version) -%}
    {%- if commits is none -%} {{ return({'version': none, 'row_commits': 1}) }} {%- endif -%}
    {{- return({'version': commits[0].version if commits else version,
        'row_commits': commits | selectattr('changes_rows') | list | length}) -}}
{%- endmacro %}

{#- The ids of merges of this way, or of both, that have added to the log since a version, or since its beginning; none
    if they are not known. -#}
{% macro _merges_since(run, relation, version, of_both) -%}
    {%- set commits, merge_ids = run.format.commits.since(relation, version), [] -%}
    {%- set id = '(?:sql-)' ~ ('?' if of_both) ~ '[0-9a-f]{8}-[0-9a-f-]{27}' -%}
    {%- if commits is none or (version is none and not run.format.commits.shows_predicates) -%} {{ return(none) }}
    {%- elif run.format.commits.shows_predicates -%}
        {%- for commit in commits -%} {%- do merge_ids.extend(modules.re.findall(id, commit.parameters)) -%}
        {%- endfor -%}
    {%- elif commits -%}
        {%- for row in run_query('select merge_id from ' ~ relation ~ ' except select merge_id from '
            ~ healing_tables._rows_of_version(relation, version)).rows -%}
            {%- do merge_ids.extend(modules.re.findall(id, row['merge_id'])) -%}
        {%- endfor -%}
    {%- endif -%}
    {{- return(merge_ids | unique | list) -}}
{%- endmacro %}

{#- A condition on the rows of the log, or of the outbox. `merge_ids`: none: all of this way. -#}
{% macro _is_of_merges(merge_ids, more=[]) -%}
    {%- set listed = ['null'] -%}
    {%- for id in (merge_ids or []) + more -%} {%- do listed.append(healing_tables._string_literal(id)) -%}
    {%- endfor -%}
    {#- the id of a merge from a stream has more behind it -#}
    {%- set listed = '(' ~ (listed | join(', ')) ~ ')' -%}
    {{- return('(merge_id in ' ~ listed ~ ' or substr(merge_id, 1, 36) in ' ~ listed
        ~ (" or merge_id like 'sql-%'" if merge_ids is none) ~ ')') -}}
{%- endmacro %}

{#- Refuse to remove a stored version that starts at a moment of which the log has no row: the log is not complete. -#}
{% macro _refuse_unlogged(run, spec, layout, change, events, log_rows) -%}
    {%- if not change.figures.rows_removed or should_full_refresh() -%} {{ return(none) }} {%- endif -%}
    {%- set found = run_query(healing_tables._unlogged_versions(spec, layout, change.staged, events, log_rows)).rows[0]
        -%}
    {%- if found['keys'] > 0 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(mistakes, 'a stored version that is not in the change log',
            'a log of every change of its keys', healing_tables._examples_of_keys(found['keys'], found['examples']),
            'name the change log in every merge into this dimension; drop its table to start it again from the stored '
            'rows', keys=found['examples']) -%}
        {%- do healing_tables._refuse(run, mistakes, change.candidate) -%}
    {%- endif -%}
{%- endmacro %}

{#- The keys of such versions: {keys (their number), examples}. `staged`: the table of changes, see _difference.sql. -#}
{% macro _unlogged_versions(spec, layout, staged, events, log_rows) -%}
{%- set start = healing_tables._to_micros('start', layout.moment_type) -%}
{%- set named, same = [], [] -%}
{%- for key in layout['keys'] -%}
    {%- do named.append(key.quoted ~ ' as logged_' ~ loop.index) -%}
    {%- do same.append('removed.key_' ~ loop.index ~ healing_tables._key_operator(layout) ~ 'logged.logged_'
        ~ loop.index) -%}
{%- endfor -%}
{#- of rows without a key: sequence_by may move a row to the moment of a truncation, and with deleted_rows a version
    starts where a truncation or a full batch ends its key -#}
{%- set others = [] -%}
{%- for rows in [log_rows, events] -%}
    {%- do others.append('select unix_micros(changed_at) from ' ~ rows ~ ' where ' ~ healing_tables._has_no_key(layout)
        ~ (' and not is_full' if not spec.get('deleted_rows'))) -%}
{%- endfor -%}
select count(*) as `keys`, array_join(slice(array_sort(collect_list(key_text)), 1, 5), '; ') as examples
from (
    select distinct concat({{ healing_tables._key_text(layout['keys'] | map(attribute='name') | list) }}) as key_text
    from (
        select {{ healing_tables._key_names(layout['keys']) }}, {{ start }} as start_at
        from {{ staged }}
        where differs and candidate_row is null
            {%- if spec.get('valid_from_first') is not none and not layout.has_first_starts %}
            and {{ start }} <> {{ healing_tables._micros_constant(spec.valid_from_first) }}
            {%- endif %}
            {%- if spec.get('deleted_rows') or (layout.rules.has_sequence and layout.rules.has_truncations) %}
            and {{ start }} not in ({{ others | join(' union all ') }})
            {%- endif %}
    ) as removed
    left anti join (
        select {{ named | join(', ') }}, unix_micros(changed_at) as logged_at from {{ log_rows }} where not is_full
        union all
        select {{ named | join(', ') }}, unix_micros(changed_at) from {{ events }} where not is_full
        {%- if layout.has_first_starts %}
        union all
        select {{ named | join(', ') }}, {{ healing_tables._to_micros(healing_tables._from_micros(
            'unix_micros(valid_from_first)', layout.moment_type), layout.moment_type) }}
        from {{ log_rows }} where valid_from_first is not null
        {%- endif %}
    ) as logged
    on removed.start_at = logged.logged_at and {{ same | join(' and ') }}
)
{%- endmacro %}
