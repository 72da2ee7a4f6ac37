{#-
    `candidate`: the rows that a build would publish. It is a query that is checked while it runs, and becomes a table
    only if that cannot be avoided. What changes it returns another map.

    query, columns      the statement that computes it, and its columns {name: type}
    is_pure_call        the model is a call of dimension(), perhaps behind CTEs
    is_comparable       the stored rows can be matched with it
    hashes              columns that the query leaves empty, {name: SQL}: see _hash_columns
    hidden              columns of the query that are not published: that of the audit
    checks, conditions  what its rows have yet to pass: as in the settings; see _row_conditions
    changes             the table of the rows that differ from the stored ones or violate something, or none
    table               the table that it has been written to, or none
    location            the folder of its files, or none; written: in how many key buckets, if in any, for people
    is_checked          its rows have passed the checks
    figures             what the log shows of it: checks, rows_set_aside, ties_resolved, as far as they are known
-#}

{#- The candidate as a query for all keys, or only for those that are healed. A build that would lose columns is
    refused. -#}
{% macro _new_candidate(run, sequence) -%}
    {%- set settings, call = run.settings, run.settings.call -%}
    {%- set is_pure_call = call is not none and not healing_tables._is_more_than_call(call) -%}
    {%- set query = run.sql if run.changed_keys is none
        else healing_tables._with_changed_keys(run.sql, call, run.changed_keys) if call is not none
        else 'select * from (\n' ~ run.sql ~ '\n) where ' ~ healing_tables._is_changed_key(
            healing_tables._quoted_list(settings.key_columns), run.changed_keys,
            settings.metadata.get('has_null_keys')) -%}
    {#- stored hashes are correct if no other writer has changed the table; otherwise all columns are compared -#}
    {%- set hashes_later = is_pure_call and (run.is_as_left or not run.stored or run.keeps_foreign) -%}
    {%- set query = healing_tables._fill_slot(query, 'hash', 'cast(null as string)',
        settings.metadata.hashes | length) if hashes_later else query -%}
    {%- set known_columns = healing_tables._known_columns(run, is_pure_call) -%}
    {%- set columns = known_columns if known_columns is not none else healing_tables._query_columns(query) -%}
    {%- set hidden = [healing_tables._audit_column() | replace('`', '')] if (run.audit or {}).get('is_dated')
        else [] -%}
    {%- set found, columns = columns, {} -%}
    {%- for name, type in found.items() if name not in hidden -%} {%- do columns.update({name: type}) -%} {%- endfor -%}
    {%- if sequence is not none -%}
        {%- set query = healing_tables._add_sequence(query, columns | list + hidden, columns, settings, sequence) -%}
        {%- set columns = dict({sequence.name: 'bigint'}, **columns) -%}
    {%- endif -%}
    {%- if config.get('contract').enforced -%}
        {%- do get_assert_columns_equivalent(query) -%}
        {%- set query = get_select_subquery(query) -%}
        {%- set columns = healing_tables._query_columns(query) -%}
    {%- endif -%}
    {%- do healing_tables._check_plain_select(settings, columns) if call is none -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._check_cluster_columns(mistakes, run.format, run.target | string, columns) -%}
    {%- do healing_tables._raise_mistakes('healing_table', mistakes) -%}
    {%- do healing_tables._check_request_columns('healing_table', dict(settings, relation='the select'), columns)
        if settings.checks -%}
    {%- set columns = healing_tables._as_stored(run.format, columns) -%}
    {#- a merge writes the stored columns in their order, whatever the order of its options -#}
    {%- set columns = healing_tables._in_stored_order(columns, run.stored) if run.mode == 'merge' else columns -%}
    {{- return({
        'query': query, 'columns': columns, 'is_pure_call': is_pure_call,
        'hashes': healing_tables._hash_columns(settings, columns) if hashes_later else {}, 'hidden': hidden,
        'checks': settings.checks,
        'conditions': healing_tables._row_conditions(run, columns),
        'is_comparable': healing_tables._is_comparable(run, columns), 'changes': none, 'table': none,
        'location': run.location, 'written': none, 'is_checked': false, 'figures': {}}) -}}
{%- endmacro %}

{#- Whether the stored rows can be matched by key and start. -#}
{% macro _is_comparable(run, columns) -%}
    {%- if not run.stored or run.keeps_foreign -%} {{ return(false) }} {%- endif -%}
    {%- set settings = run.settings -%}
    {%- do healing_tables._check_schema_changes(run, columns) -%}
    {%- set missing = healing_tables._missing_names(
        settings.key_columns + ([settings.valid_from] if settings.valid_from is not none else []),
        run.stored.columns) -%}
    {%- do healing_tables._log_progress(run.target, 'not compared: the stored table has no ' ~ (missing | join(', ')))
        if missing -%}
    {{- return(not missing) -}}
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
{% macro _known_columns(run, is_pure_call) -%}
    {%- set metadata = run.settings.metadata -%}
    {%- if not is_pure_call or run.settings.sequence is not none or config.get('contract').enforced
        or none in metadata.types.values()
        or (none in metadata.scans | map(attribute='parts') | list and run.mode != 'merge') -%}
        {{- return(none) -}}
    {%- endif -%}
    {#- elsewhere than in Delta, a new column of another writer is no commit -#}
    {%- if run.stored -%} {{ return(run.stored.columns if run.is_as_left and not run.commits
        and run.format.commits.has_ordered_versions else none) }}
    {%- endif -%}
    {%- if run.location is not none or config.get('partition_by') is not none -%} {{ return(none) }} {%- endif -%}
    {%- set columns = {} -%}
    {%- for name in metadata.columns -%} {%- do columns.update({name: metadata.types.get(name)}) -%} {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}

{#- The columns in the order of the stored table, new ones at the end. A stored `varchar` stays one. -#}
{% macro _in_stored_order(columns, stored) -%}
    {%- set ordered = {} -%}
    {%- for name, type in stored.get('columns', {}).items() if name in columns -%}
        {%- do ordered.update({name: type if type.startswith('varchar') and columns[name] == 'string'
            else columns[name]}) -%}
    {%- endfor -%}
    {%- for name, type in columns.items() if name not in stored.get('columns', {}) -%}
        {%- do ordered.update({name: type}) -%}
    {%- endfor -%}
    {{- return(ordered) -}}
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
            healing_tables._as_text(start, healing_tables._type_of_column(columns, names.valid_from)),
            metadata.has_null_keys)}) -%}
    {%- endif -%}
    {{- return(hashes) -}}
{%- endmacro %}

{#-
    The candidate as a table, for what one statement cannot publish: files are published from its folder, and the key
    map must have its integer keys before readers see them.
-#}
{% macro _written_candidate(run, candidate) -%}
    {%- do healing_tables._run_checked(run, candidate, 'candidate',
        healing_tables._create_candidate(run, candidate)) -%}
    {%- set candidate = dict(healing_tables._passed_checks(run, candidate), table=run.candidate_table) -%}
    {%- set buckets = run.key_buckets -%}
    {%- if buckets is none -%}
        {#- partition columns may have moved to the end -#}
        {%- set candidate = dict(candidate, columns=healing_tables._columns_of(candidate.table)) -%}
    {%- else -%}
        {%- set folders = healing_tables._written_buckets(candidate.table, run.location,
            healing_tables._bucket_column(candidate.columns, buckets)) -%}
        {%- set candidate = dict(candidate, written='in ' ~ buckets ~ ' key buckets',
            location=healing_tables._location_of(folders.values() | list) if folders else run.location) -%}
    {%- endif -%}
    {%- set columns = healing_tables._quoted_list(candidate.columns) -%}
    {#- its rows have passed the checks and have their hashes -#}
    {{- return(dict(candidate, query='select ' ~ (columns | join(', ')) ~ ' from ' ~ candidate.table,
        hashes={}, hidden=[], conditions=[], checks={})) -}}
{%- endmacro %}

{#- The statement for that. -#}
{% macro _create_candidate(run, candidate) -%}
    {%- if run.location is not none and run.commit is none and config.get('partition_by') is not none -%}
        {#- partitions in the metastore would keep the old folder when the table's location changes; the setting is
            not restored, because other threads of this session may need it -#}
        {%- do healing_tables._keep_partitions_in_metastore(false) -%}
    {%- endif -%}
    {%- set query = healing_tables._checked_select(run, candidate) -%}
    {%- set buckets = run.key_buckets -%}
    {%- if buckets is none -%}
        {{- return(healing_tables._create_table(run.format, run.candidate_table, query, candidate.columns,
            run.location, partitions=run.partitions)) -}}
    {%- endif -%}
    {{- return(healing_tables._create_table(
        run.format, run.candidate_table, healing_tables._in_buckets(query, run.settings, candidate.columns, buckets),
        candidate.columns, run.location, partitions=[healing_tables._bucket_column(candidate.columns, buckets)])) -}}
{%- endmacro %}
