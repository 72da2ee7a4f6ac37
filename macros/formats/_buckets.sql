{#-
    Key buckets: a table in files with one folder per hash of the key, and a location that names them all
    (<root>/{<run>/ht_b4=0,<run>/ht_b4=1,..}), as in src/healing_tables/targets/buckets.py. A build that changes a few
    keys writes the folders of their buckets; the location keeps the others. The number of buckets is part of the
    folder's name, so that one metastore call changes both.
-#}

{#- The number of buckets that the model sets; none: no buckets. -#}
{% macro _key_buckets() -%} {{ return(healing_tables._option('key_buckets', none, none)) }} {%- endmacro %}

{% macro _check_key_buckets(mistakes, format) -%}
    {%- set buckets = healing_tables._key_buckets() -%}
    {%- if buckets is none -%} {{ return(none) }} {%- endif -%}
    {%- if format.has_commits -%}
        {%- do healing_tables._mistake(
            mistakes, 'key_buckets', 'a table in parquet or orc: ' ~ format.name ~ ' writes what changes without them',
            buckets, 'leave it out, or set file_format: orc') -%}
    {%- elif buckets is not integer or buckets is boolean or buckets < 2 or buckets > 64 -%}
        {%- do healing_tables._mistake(
            mistakes, 'key_buckets', 'a number from 2 to 64', buckets, 'the location names a folder per bucket') -%}
    {%- elif config.get('partition_by') is not none -%}
        {%- do healing_tables._mistake(
            mistakes, 'key_buckets', 'a table without partition_by', config.get('partition_by'),
            'leave one of them out') -%}
    {%- endif -%}
{%- endmacro %}

{#- The bucket of a key, as SQL. `keys`: its columns, as SQL. -#}
{% macro _bucket_of(keys, buckets) -%}
    {{- return('cast(pmod(xxhash64(' ~ (keys | join(', ')) ~ '), ' ~ buckets ~ ') as int)') -}}
{%- endmacro %}

{#- The partition column that creates the folders; it is not a column of the table. -#}
{% macro _bucket_column(columns, buckets) -%}
    {%- set name = namespace(text='ht_b' ~ buckets) -%}
    {%- for column in columns -%}
        {%- if healing_tables._find_column(name.text, columns) is not none -%}
            {%- set name.text = name.text ~ '_' -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(name.text) -}}
{%- endmacro %}

{#- The folders that a location names. -#}
{% macro _folders_of(location) -%}
    {%- set match = modules.re.match('^(.*/)[{]([^{}]*)[}]$', location or '') -%}
    {%- set folders = [] -%}
    {%- for part in (match.group(2).split(',') if match else []) -%}
        {%- do folders.append(match.group(1) ~ part) -%}
    {%- endfor -%}
    {{- return(folders if match else [location] if location else []) -}}
{%- endmacro %}

{#- Returns {buckets (the number of buckets of a location, or none), folders {bucket: folder}}. -#}
{% macro _stored_buckets(location) -%}
    {%- set folders, counts = {}, [] -%}
    {%- for folder in healing_tables._folders_of(location) -%}
        {#- a merge of the library leaves the number to its commit -#}
        {%- set match = modules.re.search('/ht_b([0-9]*)_*=([0-9]+)$', folder) -%}
        {%- do counts.append(match.group(1) | int if match and match.group(1) else none) -%}
        {%- do folders.update({match.group(2) | int: folder}) if match -%}
    {%- endfor -%}
    {%- set counts = counts | unique | list -%}
    {{- return({'buckets': counts[0] if counts | length == 1 else none, 'folders': folders}) -}}
{%- endmacro %}

{#- The location of some folders below one root, <..>__versions/. -#}
{% macro _location_of(folders) -%}
    {%- set root = modules.re.match('.*__versions/', folders[0]).group(0) -%}
    {%- set parts = [] -%}
    {%- for folder in folders -%} {%- do parts.append(folder[root | length:]) -%} {%- endfor -%}
    {{- return(root ~ '{' ~ (parts | join(',')) ~ '}') -}}
{%- endmacro %}

{#- Why the stored rows cannot be partly rewritten; none if they can. -#}
{% macro _buckets_obstacle(stored) -%}
    {%- set buckets = healing_tables._key_buckets() -%}
    {%- if buckets is none -%}
        {{- return('only a table with commits, such as Delta, or one with key_buckets can be partly rewritten') -}}
    {%- elif healing_tables._stored_buckets(stored.get('location')).buckets != buckets
        or stored.get('type') != 'EXTERNAL' -%}
        {{- return('the stored rows are not in ' ~ buckets ~ ' key buckets yet') -}}
    {%- endif -%}
    {{- return(none) -}}
{%- endmacro %}

{#- The state of a table in buckets: it changes if any writer changes the files or the location. -#}
{% macro _buckets_table_id(relation, details) -%}
    {%- if healing_tables._stored_buckets(details.get('location')).buckets is none -%} {{ return(none) }} {%- endif -%}
    {{- return(run_query(
        "select md5(array_join(sort_array(collect_list(concat_ws(' ', path, length, unix_micros(modificationTime)))), "
        ~ "'\\n')) as id from " ~ healing_tables._files_at('binaryFile', details.location)).rows[0]['id']) -}}
{%- endmacro %}

{#- Files as SQL for a `from`. -#}
{% macro _files_at(format_name, location) -%}
    {{- return(format_name ~ '.`' ~ (location | replace('`', '``')) ~ '`') -}}
{%- endmacro %}
