{#- Guess from common column names how a table can be used as a source of a dimension. -#}

{#-
    A `guess`: {name (of the source), relation (as text for a model), options (of the source, as text), attributes
    (names), notes (a sentence for each guess)}. `given`: the name of the table; `columns`: {name: type}; `keys`: the
    columns of the business key.
-#}
{% macro _guess_source(given, relation_text, columns, keys) -%}
    {%- set guess = {
        'name': modules.re.sub('^(stg|src|raw|base|snap)_+', '', given.split('.')[-1]), 'relation': relation_text,
        'options': [], 'attributes': [], 'notes': []} -%}
    {%- set taken = [] -%}
    {%- do healing_tables._guess_moments(guess, columns, taken) -%}
    {%- do healing_tables._guess_deletes(guess, columns, taken) -%}
    {%- do healing_tables._guess_keys(guess, columns, keys, taken) -%}
    {%- for name in columns if name | lower not in taken -%} {%- do guess.attributes.append(name) -%} {%- endfor -%}
    {{- return(guess) -}}
{%- endmacro %}

{% macro _guess_moments(guess, columns, taken) -%}
    {%- set named = healing_tables._first_named -%}
    {%- set start = named(columns, healing_tables._names_of_starts()) -%}
    {%- set end = named(columns, healing_tables._names_of_ends()) -%}
    {%- set taken_at = named(columns,
        ['snapshot_date', 'snapshot_at', 'extract_date', 'extracted_on', 'as_of_date']) -%}
    {%- set changed_at = named(columns, ['changed_at', 'updated_at', 'modified_at', 'last_modified', 'last_updated',
        'updated_on', 'modified_on', 'event_time', 'event_at', 'effective_at', 'valid_at']) -%}
    {%- set loaded_at = named(columns, ['loaded_at', '_loaded_at', 'ingested_at', '_ingested_at', '_fivetran_synced',
        '_airbyte_extracted_at', '_sdc_batched_at', 'inserted_at']) -%}
    {%- set moments = [] -%}
    {%- for name, type in columns.items() if modules.re.match('date|timestamp', type) and name != loaded_at -%}
        {%- do moments.append(name) -%}
    {%- endfor -%}
    {%- if 'dbt_valid_from' in columns -%}
        {%- do guess.options.append("'dbt_snapshot': true") -%}
        {%- for name in columns if name.startswith('dbt_') -%} {%- do taken.append(name | lower) -%} {%- endfor -%}
        {%- do guess.notes.append('it has the columns of a dbt snapshot') -%}
        {{- return(none) -}}
    {%- elif start is not none and end is not none -%}
        {%- do guess.options.append("'valid_from': '" ~ start ~ "', 'valid_to': '" ~ end ~ "'") -%}
        {%- do taken.extend([start | lower, end | lower]) -%}
        {%- do guess.notes.append('a row is valid from ' ~ start ~ ' to ' ~ end ~ ', the end excluded') -%}
    {%- elif taken_at is not none -%}
        {%- do guess.options.append("'snapshot_at': '" ~ taken_at ~ "'") -%}
        {%- do taken.append(taken_at | lower) -%}
        {%- do guess.notes.append('each ' ~ taken_at ~ ' is a full snapshot: a key that is missing from it was '
            "deleted; if that is not so, add 'on_absence': 'ignore'") -%}
    {%- elif changed_at is not none or moments -%}
        {%- set moment = changed_at if changed_at is not none else moments[0] -%}
        {%- do guess.options.append("'changed_at': '" ~ moment ~ "'") -%}
        {%- do taken.append(moment | lower) -%}
        {%- do guess.notes.append('a row is a change, valid from ' ~ moment ~ ' on'
            ~ ('; is that its moment?' if changed_at is none)) -%}
    {%- else -%}
        {%- do guess.options.append("'changed_at': '???'") -%}
        {%- do guess.notes.append('no column has a moment: if it has current rows only, put a capture in front of '
            'it (docs/current-state.md), and use that as the source') -%}
    {%- endif -%}
    {%- if loaded_at is not none and loaded_at | lower not in taken -%}
        {%- do guess.options.append("'loaded_at': '" ~ loaded_at ~ "'") -%}
        {%- do taken.append(loaded_at | lower) -%}
        {%- do guess.notes.append(loaded_at ~ ' is when a row arrived: a heal needs it') -%}
    {%- endif -%}
{%- endmacro %}

{% macro _guess_deletes(guess, columns, taken) -%}
    {%- set named = healing_tables._first_named -%}
    {%- set flag = named(columns, ['is_deleted', 'deleted', '_fivetran_deleted', '__deleted', '_is_deleted'],
        'boolean') -%}
    {%- set moment = named(columns, ['deleted_at', '_deleted_at', '_ab_cdc_deleted_at'], 'date|timestamp') -%}
    {%- set code = named(columns, ['op', '_op', 'operation', 'cdc_operation', 'dml_type', '_change_type'], 'string') -%}
    {%- if flag is not none -%}
        {%- set condition, note = flag, 'a row with ' ~ flag ~ ' ends its key' -%}
    {%- elif moment is not none -%}
        {%- set condition, note = moment ~ ' is not null', 'a row with ' ~ moment ~ ' ends its key' -%}
    {%- elif code is not none -%}
        {%- set condition = 'lower(' ~ code ~ ") in ('d', 'delete')" -%}
        {%- set note = 'a row with ' ~ code ~ ' D or DELETE ends its key; other values do not' -%}
    {%- else -%} {{ return(none) }}
    {%- endif -%}
    {%- do guess.options.append("'deleted_when': " ~ '"' ~ condition ~ '"') -%}
    {%- do guess.notes.append(note) -%}
    {%- do taken.append((flag or moment or code) | lower) -%}
{%- endmacro %}

{#- Guess the columns of the keys that have another name in this table. Similar names of all keys come first, so that no
    key gets the column of another one; then the columns that have the name and type of a key. -#}
{% macro _guess_keys(guess, columns, keys, taken) -%}
    {%- do taken.extend(keys | map('lower')) -%}
    {%- set key_like = [] -%}
    {%- for name, type in columns.items() if modules.re.match('string|.*int|decimal', type)
        and healing_tables._is_named_like_a_key(name) -%}
        {%- do key_like.append(name) -%}
    {%- endfor -%}
    {%- set missing, found = healing_tables._missing_names(keys, columns), {} -%}
    {%- for is_similar in [true, false] -%}
        {%- for key in missing -%}
            {%- if key not in found -%}
                {%- set free = healing_tables._missing_names(columns if is_similar else key_like, taken) -%}
                {%- set column = healing_tables._nearest_name(key, free) if is_similar else free | first -%}
                {%- if column -%}
                    {%- do found.update({key: column}) -%}
                    {%- do taken.append(column | lower) -%}
                {%- endif -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- set guessed = {} -%}
    {%- for key in missing -%}
        {%- do guessed.update({key: found.get(key, '???')}) -%}
        {%- do guess.notes.append('it has no column ' ~ key ~ (': is ' ~ found[key] ~ ' the same?' if key in found
            else ': which one is the same?')) -%}
    {%- endfor -%}
    {%- do guess.options.append("'key_columns': " ~ guessed) if guessed -%}
{%- endmacro %}

{% macro _names_of_starts() -%}
    {{- return(['valid_from', 'start_date', 'effective_from', 'start_at', '__start_at', 'effective_start_date',
        'effective_date', 'eff_start_date', 'row_effective_date', 'row_start_date', 'begin_date', 'date_from',
        'from_date', 'eff_from', 'effective_since', 'valid_since', 'dw_valid_from']) -}}
{%- endmacro %}

{% macro _names_of_ends() -%}
    {{- return(['valid_to', 'end_date', 'effective_to', 'end_at', '__end_at', 'effective_end_date', 'expiration_date',
        'expiry_date', 'eff_end_date', 'row_expiration_date', 'row_end_date', 'date_to', 'to_date', 'eff_to',
        'effective_until', 'valid_until', 'dw_valid_to']) -}}
{%- endmacro %}

{#- The pattern for the endings of key names. -#}
{% macro _key_ending() -%} {{ return('(id|no|nr|number|key|code)$') }} {%- endmacro %}

{% macro _is_named_like_a_key(name) -%}
    {{- return(modules.re.search('(^|_)' ~ healing_tables._key_ending(), name | lower) is not none) -}}
{%- endmacro %}

{#- The first of these names that is a column of a matching type, in the table's spelling; else none. -#}
{% macro _first_named(columns, names, type='.*') -%}
    {%- for name in names -%}
        {%- for column, found in columns.items() if column | lower == name and modules.re.match(type, found) -%}
            {{- return(column) -}}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}
