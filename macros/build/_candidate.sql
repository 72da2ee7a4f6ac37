{#-
    The candidate: the rows that a build would publish. It is a query that is checked while it runs, and becomes a table
    only if that cannot be avoided.
-#}

{#-
    Set query, columns, conditions, hashes and is_pure_call of the build. The query computes the dimension, or only the
    keys that are healed.
-#}
{% macro _prepare_query(build, sequence) -%}
    {%- set settings = build.settings -%}
    {%- set call = settings.call -%}
    {%- set is_pure_call = call is not none and not healing_tables._is_more_than_call(call) -%}
    {%- set query = build.sql if build.changed_keys is none
        else healing_tables._with_changed_keys(build.sql, call, build.changed_keys) -%}
    {#- stored hashes are correct if no other writer has changed the table; otherwise all columns are compared -#}
    {%- set hashes_later = is_pure_call and (build.is_as_left or not build.stored or build.keeps_foreign) -%}
    {%- set query = healing_tables._fill_slot(query, 'hash', 'cast(null as string)',
        healing_tables._number_of_hashes(settings.metadata)) if hashes_later else query -%}
    {%- set known = healing_tables._known_columns(build, is_pure_call) -%}
    {%- set columns = known if known is not none else healing_tables._query_columns(query) -%}
    {%- if sequence is not none -%}
        {%- set query = healing_tables._add_sequence(query, columns, build, sequence) -%}
        {%- set columns = dict({sequence.name: 'bigint'}, **columns) -%}
    {%- endif -%}
    {%- if config.get('contract').enforced -%}
        {%- do get_assert_columns_equivalent(query) -%}
        {%- set query = get_select_subquery(query) -%}
        {%- set columns = healing_tables._query_columns(query) -%}
    {%- endif -%}
    {%- do healing_tables._check_plain_select(settings, columns) if call is none -%}
    {%- do healing_tables._check_request_columns('healing_table', dict(settings, relation='the select'), columns)
        if settings.checks -%}
    {%- set columns = healing_tables._as_stored(build.format, columns) -%}
    {%- do build.update({
        'query': query, 'columns': columns, 'is_pure_call': is_pure_call,
        'hashes': healing_tables._hash_columns(settings, columns) if hashes_later else {}}) -%}
    {%- do build.update({'conditions': healing_tables._row_conditions(build)}) -%}
{%- endmacro %}

{#- A select that calls no dimension() has to give the columns of one. -#}
{% macro _check_plain_select(settings, columns) -%}
    {%- set mistakes = [] -%}
    {%- set wanted = [settings.valid_from, settings.valid_to, settings.is_current] | reject('none') | list -%}
    {%- set missing = healing_tables._missing_names(wanted, columns) -%}
    {%- if missing -%}
        {%- do healing_tables._mistake(mistakes, 'the select',
            'a call of healing_tables.dimension, or the columns ' ~ (wanted | join(', ')),
            'a select without ' ~ (missing | join(', ')),
            'call it with the sources of the dimension; or select these columns, or leave them out with column_names')
            -%}
        {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- endif -%}
{%- endmacro %}

{#-
    The columns of the query {name: type} if no lookup is needed; else none. If the definition and the types of its
    sources have not changed, they are the stored columns; a first build needs only the types of the hashed columns.
-#}
{% macro _known_columns(build, is_pure_call) -%}
    {%- set metadata = build.settings.metadata -%}
    {%- if not is_pure_call or build.settings.sequence is not none or config.get('contract').enforced
        or none in metadata.types.values() or none in metadata.sources | map(attribute='parts') | list -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- if build.stored -%} {{ return(build.stored.columns if build.is_as_left and not build.commits else none) }}
    {%- endif -%}
    {%- if build.location is not none or config.get('partition_by') is not none -%} {{ return(none) }} {%- endif -%}
    {%- set columns = {} -%}
    {%- for name in metadata.columns -%} {%- do columns.update({name: metadata.types.get(name)}) -%} {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- How many hashes the select of a dimension computes. -#}
{% macro _number_of_hashes(metadata) -%}
    {%- set hashes = [metadata.names.key_hash, metadata.names.row_hash, metadata.hash_key] -%}
    {{- return(hashes | reject('none') | list | length) -}}
{%- endmacro %}

{#- The hashes that were removed from the query: {column: SQL over `row`, the struct of the other columns}. -#}
{% macro _hash_columns(settings, columns) -%}
    {%- set names, metadata = settings.metadata.names, settings.metadata -%}
    {%- set typed = {} -%}
    {%- set hashed = {'key': metadata.key_columns, 'row': metadata.versioned | sort(case_sensitive=true)} -%}
    {%- for name, list in hashed.items() -%}
        {%- set parts = [] -%}
        {%- for column in list -%}
            {%- do parts.append({'expression': 'row.' ~ healing_tables._quoted(column),
                'type': healing_tables._type_of_column(columns, column)}) -%}
        {%- endfor -%}
        {%- do typed.update({name: healing_tables._hash(parts)}) -%}
    {%- endfor -%}
    {%- set hashes = {} -%}
    {%- do hashes.update({names.key_hash: typed.key}) if names.key_hash is not none -%}
    {%- do hashes.update({names.row_hash: typed.row}) if names.row_hash is not none -%}
    {%- if metadata.hash_key is not none -%}
        {%- set start = 'row.' ~ healing_tables._quoted(names.valid_from) -%}
        {%- set keys = [] -%}
        {%- for key in metadata.key_columns -%} {%- do keys.append('row.'
            ~ healing_tables._quoted(key)) -%} {%- endfor -%}
        {%- do hashes.update({metadata.hash_key.name: healing_tables._version_key(
            metadata.hash_key.strategy, keys, start, typed.key,
            healing_tables._as_text(start, healing_tables._type_of_column(columns, names.valid_from)))}) -%}
    {%- endif -%}
    {{- return(hashes) -}}
{%- endmacro %}

{#-
    Write the candidate to a table if one statement cannot publish it: files are published from its folder, and the key
    map must have its integer keys before readers see them.
-#}
{% macro _write_candidate(build) -%}
    {%- do healing_tables._run_checked(build, 'candidate', healing_tables._create_candidate(build)) -%}
    {%- set buckets = healing_tables._key_buckets() if build.location is not none else none -%}
    {%- if buckets is none -%}
        {#- partition columns may have moved to the end -#}
        {%- do build.update({'columns': healing_tables._columns_of(build.candidate)}) -%}
    {%- else -%}
        {%- set folders = healing_tables._written_buckets(build.candidate, build.location,
            healing_tables._bucket_column(build.columns, buckets)) -%}
        {%- do build.update({
            'location': healing_tables._location_of(folders.values() | list) if folders else build.location,
            'written': 'in ' ~ buckets ~ ' key buckets'}) -%}
    {%- endif -%}
    {%- set columns = healing_tables._quoted_list(build.columns) -%}
    {#- its rows have passed the checks and have their hashes -#}
    {%- do build.update({
        'query': 'select ' ~ (columns | join(', ')) ~ ' from ' ~ build.candidate,
        'hashes': {}, 'conditions': [], 'is_written': true, 'settings': dict(build.settings, checks={})}) -%}
{%- endmacro %}

{% macro _create_candidate(build) -%}
    {%- if build.get('location') and config.get('partition_by') is not none -%}
        {#- partitions in the metastore would keep the old folder when the table's location changes; the setting is
            not restored, because other threads of this session may need it -#}
        {%- do healing_tables._set_session_conf('spark.sql.hive.manageFilesourcePartitions', 'false',
            build.settings.session) -%}
    {%- endif -%}
    {%- set query = healing_tables._checked_select(build) -%}
    {%- set buckets = healing_tables._key_buckets() if build.get('location') else none -%}
    {%- if buckets is not none -%}
        {{- return(healing_tables._create_table(
            build.format, build.candidate, healing_tables._in_buckets(query, build.settings, build.columns, buckets),
            build.columns, build.location, partition=healing_tables._bucket_column(build.columns, buckets))) -}}
    {%- endif -%}
    {{- return(healing_tables._create_table(build.format, build.candidate, query, build.columns,
        build.get('location'))) -}}
{%- endmacro %}
