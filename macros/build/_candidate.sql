{#-
    The candidate: the rows that a build would publish. It is a query that is checked while it runs, and becomes a table
    only if that cannot be avoided.
-#}

{#-
    The change to publish [see _compare.sql]. If the candidate can be compared with the stored table, one pass finds the
    rows that differ. A heal that cannot be merged into the stored table, for example because a column has a new type,
    becomes a rebuild.
-#}
{% macro _compute_change(build, sequence) -%}
    {%- set is_heal = build.log_row.mode == 'heal' -%}
    {%- do healing_tables._prepare_query(build, sequence) -%}
    {%- set is_comparable = healing_tables._is_comparable(build) -%}
    {%- set obstacle = healing_tables._merge_obstacle(build, is_comparable) -%}
    {%- if is_heal and obstacle is not none -%}
        {%- do healing_tables._rebuild_instead(build, obstacle) -%}
        {{- return(healing_tables._compute_change(build, sequence)) -}}
    {%- endif -%}
    {%- set counts = healing_tables._set_aside_counts(build, not is_comparable) if not is_heal else none -%}
    {%- set has_rows = healing_tables._look_for_rows(build, counts) if not is_comparable else none -%}
    {%- set needs_table = build.location is not none or sequence is not none -%}
    {%- set is_written = obstacle is not none and needs_table -%}
    {%- do healing_tables._write_candidate(build) if is_written -%}
    {%- if not is_comparable -%} {{ return(healing_tables._all_rows_as_new(build, obstacle, has_rows)) }} {%- endif -%}
    {%- set change = healing_tables._compute_difference(build, obstacle, counts) -%}
    {%- if change.how == 'overwrite' and is_heal -%}
        {%- do healing_tables._rebuild_instead(build, change.obstacle) -%}
        {{- return(healing_tables._compute_change(build, sequence)) -}}
    {%- endif -%}
    {%- do healing_tables._write_candidate(build)
        if change.how == 'overwrite' and needs_table and not is_written -%}
    {{- return(change) -}}
{%- endmacro %}

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
    {%- set query = healing_tables._without_hashes(query) if hashes_later else query -%}
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

{#- The hashes that were removed from the query: {column: SQL over `row`, the struct of the other columns}. -#}
{% macro _hash_columns(settings, columns) -%}
    {%- set names, metadata = settings.metadata.names, settings.metadata -%}
    {%- set typed = {} -%}
    {%- set hashed = {'key': metadata.key_columns, 'row': metadata.versioned | sort(case_sensitive=true)} -%}
    {%- for name, list in hashed.items() -%}
        {%- set parts = [] -%}
        {%- for column in list -%}
            {%- do parts.append({'expression': 'row.' ~ healing_tables._id(column),
                'type': healing_tables._type_of_column(columns, column)}) -%}
        {%- endfor -%}
        {%- do typed.update({name: healing_tables._hash(parts)}) -%}
    {%- endfor -%}
    {%- set hashes = {} -%}
    {%- do hashes.update({names.key_hash: typed.key}) if names.key_hash is not none -%}
    {%- do hashes.update({names.row_hash: typed.row}) if names.row_hash is not none -%}
    {%- if metadata.hash_key is not none -%}
        {%- set start = 'row.' ~ healing_tables._id(names.valid_from) -%}
        {%- set keys = [] -%}
        {%- for key in metadata.key_columns -%} {%- do keys.append('row.' ~ healing_tables._id(key)) -%} {%- endfor -%}
        {%- do hashes.update({metadata.hash_key.name: healing_tables._version_key(
            metadata.hash_key.strategy, keys, start, typed.key,
            healing_tables._as_text(start, healing_tables._type_of_column(columns, names.valid_from)))}) -%}
    {%- endif -%}
    {{- return(hashes) -}}
{%- endmacro %}

{#- Find the rows that differ, in one pass [see _pass.sql]. They are stored in a table if they are to be merged;
    otherwise only figures are computed. `counts`: see _set_aside_counts(); none in a heal. -#}
{% macro _compute_difference(build, obstacle, counts) -%}
    {#- both sides are partitioned by key: the join by key and start needs no other shuffle -#}
    {%- do healing_tables._set_session_conf('spark.sql.requireAllClusterKeysForCoPartition', 'false',
        build.settings.session) -%}
    {%- set started = healing_tables._utc_now() -%}
    {%- set inputs = healing_tables._diff_inputs(build) -%}
    {%- set changes = healing_tables._changes(build, inputs) -%}
    {%- if healing_tables._is_sharded(build) -%} {%- do healing_tables._compute_changes_by_shard(build, inputs) -%}
    {%- elif obstacle is none -%}
        {%- do build.update({'changes': healing_tables._create_side_table(build, '_changes', changes)}) -%}
    {%- endif -%}
    {%- set figures = healing_tables._read_figures(healing_tables._change_figures(
        '(\n' ~ changes ~ '\n)' if build.changes is none else build.changes | string, inputs,
        healing_tables._stored_rows_count(build), counts)) -%}
    {%- do figures.update({'candidate_versions': figures.stored_versions + figures.inserted - figures.deleted}) -%}
    {%- do healing_tables._log_progress(
        build.target, 'computed ' ~ (healing_tables._counted(figures.candidate_versions, 'version')
            if build.changed_keys is none else healing_tables._counted(build.changed_key_count, 'key'))
        ~ ', compared with ' ~ healing_tables._counted(figures.stored_versions, 'stored row') ~ ': '
        ~ healing_tables._counted(figures.differing_keys, 'key')
        ~ (' differs (' if figures.differing_keys == 1 else ' differ (')
        ~ healing_tables._display_seconds(healing_tables._utc_now() - started) ~ ')') -%}
    {#- before the checks, so that a refused build reports these rows, too -#}
    {%- do healing_tables._report_set_aside(build, fromjson(figures.set_aside)) if counts is not none -%}
    {%- do healing_tables._refuse_violations(build) if figures.violated > 0 -%}
    {%- do healing_tables._report_passed_checks(build) -%}
    {%- set change = healing_tables._change_of_figures(build, inputs, figures, obstacle) -%}
    {%- do healing_tables._refuse_equal_keys(build, inputs) if change.how == 'merge' -%}
    {{- return(change) -}}
{%- endmacro %}

{#- The number of stored rows, as SQL: the count of the last build if it still holds. -#}
{% macro _stored_rows_count(build) -%}
    {%- set is_known = build.last is not none and build.last.row_count is not none
        and (build.is_as_left or build.last.is_tagged) -%}
    {{- return(build.last.row_count | int if is_known else '(select count(*) from ' ~ build.existing ~ ')') -}}
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
    {%- set columns = healing_tables._ids(build.columns) -%}
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
