{#-
    What a call of dimension() leaves in its select for a materialization: two comments around it, and the columns and
    sources as JSON in the first one, so that nothing is repeated.

        with vip as (select ...)                       before
        /* healing_tables begin {"key_columns": ...} */
        select ... from ( ... )                        select
        /* healing_tables end */
        ...                                            after

    `call`: what _parse_call() finds of it in the SQL of a model: metadata (the map below), before, select, after.
    `metadata`: key_columns, has_null_keys, names (generated column to its name or none), versioned (attributes),
    columns (of the select), types (of key columns, attributes, valid_from and is_deleted, as they were looked up; none
    where unknown),
    valid_to_current, current_value, can_delete, has_gaps, hashes (the columns in slots `hash`), sequence (the column of
    integer keys, or none), hash_key ({name, strategy} of surrogate keys that are hashes, or none), scans (one of each
    source, see _scan).
-#}
{% macro _call_begin(spec, columns) -%}
    {#- escaped so that no text in the JSON can end the comment, or begin one in it -#}
    {{- return('/* healing_tables begin ' ~ (tojson(healing_tables._call_metadata(spec, columns))
        | replace('/*', '/\\u002a') | replace('/', '\\/')) ~ ' */') -}}
{%- endmacro %}

{% macro _call_end() -%} {{ return('/* healing_tables end */') }} {%- endmacro %}

{#- In the slot `order`, a select has the column in whose order the rows of a key come out of it: a window over them
    then needs no sort of its own. -#}
{% macro _with_order(sql) -%}
    {{- return(healing_tables._fill_slot(sql, 'order', ', at as ' ~ healing_tables._order_column())) -}}
{%- endmacro %}

{#- Whether that column holds the same moment as valid_from, so that stored rows can be joined by it. It does not with
    valid_from_first, and need not where valid_from is a date: since and until may have a time. -#}
{% macro _is_start_in_order(spec) -%}
    {%- set cuts = spec.sources | map(attribute='cut_from') | list + spec.sources | map(attribute='cut_to') | list -%}
    {{- return(spec.valid_from_first is none and not spec.opened_by and (spec.moment_type == 'timestamp'
        or (spec.moment_type == 'date' and not cuts | select | list))) -}}
{%- endmacro %}

{% macro _order_column() -%} {{ return('`healing_tables order`') }} {%- endmacro %}

{% macro _call_metadata(spec, columns) -%}
    {%- set scans = [] -%}
    {%- for source in spec.sources -%}
        {%- do scans.append(healing_tables._scan(spec, source)) -%}
    {%- endfor -%}
    {%- set deleting = [] -%}
    {%- for source in spec.sources if source.name in spec.exists_in
        and (source.has_end or source.deleted_when or source.truncated_when) -%}
        {%- do deleting.append(source.name) -%}
    {%- endfor -%}
    {#- a deleted key has a current row, too -#}
    {%- set can_end = deleting | length > 0 and not spec.deleted_rows -%}
    {%- set types = {} -%}
    {%- for column in spec.key_columns + spec.attributes -%} {%- do types.update({column.name: column.type}) -%}
    {%- endfor -%}
    {%- do types.update({spec.names.valid_from: spec.moment_type}) if spec.names.valid_from is not none -%}
    {%- do types.update({spec.names.is_deleted: 'boolean'}) if spec.deleted_rows -%}
    {{- return({
        'key_columns': spec.key_columns | map(attribute='name') | list, 'has_null_keys': spec.has_null_keys,
        'columns': columns | map(attribute='name') | list, 'types': types,
        'names': spec.names, 'versioned': healing_tables._versioned_columns(spec) | map(attribute='name') | list,
        'valid_to_current': spec.valid_to_current | string if spec.valid_to_current is not none else none,
        'current_value': spec.current_values[0], 'can_delete': can_end,
        'has_gaps': can_end and healing_tables._has_scd_type(spec, [2, 6]),
        'is_start_in_order': healing_tables._is_start_in_order(spec),
        'hashes': columns | selectattr('is_hash') | map(attribute='name') | list,
        'sequence': healing_tables._sequence_name(spec.surrogate_key),
        'hash_key': spec.surrogate_key if spec.surrogate_key is not none
            and spec.surrogate_key.strategy != 'sequence' else none,
        'scans': scans}) -}}
{%- endmacro %}

{#- The call in the SQL of a model as a `call`; none if there is none. -#}
{% macro _parse_call(sql) -%}
    {%- set parts = sql.split('/* healing_tables begin ') -%}
    {%- if parts | length == 1 -%} {{ return(none) }} {%- endif -%}
    {%- set found = [] -%}
    {%- for part in parts[1:] -%} {%- do found.append(part.split(' */', 1)[0]) -%} {%- endfor -%}
    {%- if found | unique | list | length > 1 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'the select', 'one call of dimension()', (found | unique | list | length) ~ ' calls that differ',
            'build each dimension in a separate model') -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
    {%- set select, after = sql.split(found[0] ~ ' */', 1)[1].split(healing_tables._call_end(), 1) -%}
    {{- return({'metadata': fromjson(found[0]), 'before': parts[0], 'select': select, 'after': after}) -}}
{%- endmacro %}

{#-
    Whether the SQL of a model is more than its call, perhaps behind CTEs: of rows that are added, joined or numbered,
    a heal of some keys would give others than a rebuild.
-#}
{% macro _is_more_than_call(call) -%}
    {{- return(healing_tables._without_comments(call.after) not in ['', ';']
        or healing_tables._ctes_before(call) is none) -}}
{%- endmacro %}

{#- The CTEs before the call, to be put before another select; none if the text before the call is anything else. -#}
{% macro _ctes_before(call) -%}
    {%- set code = healing_tables._without_comments(call.before) -%}
    {{- return(call.before ~ '\n' if code == '' or modules.re.match('(?is)with\\b.*[)]$', code) else none) -}}
{%- endmacro %}

{% macro _without_comments(sql) -%}
    {{- return(modules.re.sub('(?s)--[^\n]*|/[*].*?[*]/', '', sql) | trim) -}}
{%- endmacro %}

{#- The definition of a dimension as one number: if it is another one, what is stored cannot be healed. -#}
{% macro _definition_hash(sql, call) -%}
    {%- if call is none -%} {{ return(local_md5(sql)) }} {%- endif -%}
    {{- return(local_md5(call.before ~ call.select ~ call.after
        ~ tojson([call.metadata.types, call.metadata.scans | map(attribute='loaded_column') | list]))) -}}
{%- endmacro %}

{#- The CTEs that read the sources, as a slot. -#}
{% macro _inputs(sources) -%}
    {{- return(healing_tables._slot('inputs', '\n' ~ healing_tables._input_ctes(sources) ~ '\n')) -}}
{%- endmacro %}

{#- They read all rows, or those that satisfy a condition, {source name: SQL}. -#}
{% macro _input_ctes(sources, conditions={}) -%}
{%- for source in sources -%}
{{ healing_tables._quoted(source.name ~ ' input') }} as (
    select *
    from {{ source.relation }}
    {%- if source.name in conditions %}
    where {{ conditions[source.name] }}
    {%- endif %}
),
{{- '\n' if not loop.last }}
{%- endfor -%}
{%- endmacro %}

{#- The SQL of a model whose sources are limited by conditions. -#}
{% macro _with_inputs(sql, sources, conditions) -%}
    {{- return(healing_tables._fill_slot(sql, 'inputs', healing_tables._input_ctes(sources, conditions))) -}}
{%- endmacro %}

{#- The SQL of a model with its sources cut to the keys in `changed_keys`, SQL after `in`. -#}
{% macro _with_changed_keys(sql, call, changed_keys) -%}
    {%- set conditions = {} -%}
    {%- for scan in call.metadata.scans -%}
        {%- do conditions.update({scan.name: healing_tables._is_changed_key(scan['keys'], changed_keys,
            call.metadata.has_null_keys)}) -%}
    {%- endfor -%}
    {{- return(healing_tables._with_inputs(sql, call.metadata.scans, conditions)) -}}
{%- endmacro %}

{#- NULL is in no list: all keys with NULL are taken. -#}
{% macro _is_changed_key(expressions, changed_keys, has_null_keys=false) -%}
    {%- set is_listed = '(' ~ (expressions | join(', ')) ~ ') in ' ~ changed_keys -%}
    {{- return('(' ~ is_listed ~ ' or ' ~ (expressions | join(' is null or ')) ~ ' is null)' if has_null_keys
        else is_listed) -}}
{%- endmacro %}
