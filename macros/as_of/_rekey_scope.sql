{#- Which facts a rekey_facts looks at: all, or those of the dimension keys that moved. -#}

{#-
    The dimension keys to look at: listed (a relation of them, or none), since (a version of the dimension, or none,
    also where its change feed does not tell all that came after it),
    relation (the dimension), version (that of the dimension as this run found it; none if it has none), feed (SQL for a
    `from`: what has changed between the two).
-#}
{% macro _moved_keys(mistakes, facts, dimension, key_columns, keys, since_version) -%}
    {%- set moved = {'listed': none, 'since': since_version, 'version': none, 'relation': dimension, 'feed': none} -%}
    {%- if keys is not none and since_version is not none -%}
        {%- do healing_tables._mistake(mistakes, 'since_version', 'keys or since_version', 'both',
            'leave one of them out') -%}
    {%- elif keys is not none -%}
        {%- do moved.update({'listed': healing_tables._resolve_relation(mistakes, 'keys', keys)}) -%}
        {%- do healing_tables._check_moved_keys(mistakes, moved.listed, key_columns, dimension) -%}
    {%- endif -%}
    {%- set details = healing_tables._table_details(dimension) -%}
    {%- set format = healing_tables._stored_format(details) -%}
    {%- do moved.update({'version': format.commits.newest_version(dimension) if format is not none else none}) -%}
    {%- if since_version is not none -%}
        {%- if since_version is not integer or since_version < 0 -%}
            {%- do healing_tables._mistake(
                mistakes, 'since_version', 'a version of the dimension: a number that an earlier run has reported',
                healing_tables._display_value(since_version), 'write a number from 0 on') -%}
        {%- elif moved.version is none or not format.change_feed.is_on(details) -%}
            {%- do healing_tables._mistake(
                mistakes, 'since_version', 'a dimension with change data feed', dimension | string,
                "set tblproperties: {delta.enableChangeDataFeed: 'true'} from its first build on, or leave "
                "since_version out") -%}
        {%- elif format.commits.has_ordered_versions and since_version > moved.version -%}
            {%- do healing_tables._mistake(
                mistakes, 'since_version', 'a version that the dimension has had', since_version | string,
                'its newest is ' ~ moved.version) -%}
        {%- else -%}
            {%- set gap = format.change_feed.gap(dimension, details, since_version) -%}
            {%- if gap is not none -%}
                {%- do healing_tables._report_rekey(facts,
                    'checks all facts and ignores since_version: the dimension has changed, and ' ~ gap) -%}
                {%- do moved.update({'since': none}) -%}
            {%- elif since_version != moved.version -%}
                {%- do moved.update({
                    'feed': format.change_feed.source(dimension, details, since_version, moved.version)}) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endif -%}
    {{- return(moved) -}}
{%- endmacro %}

{#- The relation of keys names them as the dimension does, in the same types. -#}
{% macro _check_moved_keys(mistakes, keys, key_columns, dimension) -%}
    {%- set columns = healing_tables._columns_of(keys) if keys is not none else none -%}
    {%- set dimension_columns = healing_tables._columns_of(dimension) -%}
    {%- set names = (key_columns.keys() | list) if key_columns is mapping else healing_tables._as_list(key_columns) -%}
    {%- do healing_tables._check_columns(mistakes, 'keys', names, keys | string, columns) -%}
    {%- for name in names -%}
        {%- set types = [healing_tables._type_of_column(columns, name),
            healing_tables._type_of_column(dimension_columns, name)] -%}
        {%- if none not in types and types[0] != types[1] -%}
            {%- do healing_tables._mistake(
                mistakes, 'keys.' ~ name, 'the type that it has in the dimension, ' ~ types[1], types[0], 'cast it') -%}
        {%- endif -%}
    {%- endfor -%}
{%- endmacro %}

{#- Narrows facts and dimension to the rows that are asked for. -#}
{% macro _rekey_scope(facts, format, as_of_request, moved, where) -%}
    {#- in `where (a)`, Spark takes `where` for an alias -#}
    {%- set condition = '' if where is none else 'where true and (' ~ where ~ ')' -%}
    {%- if moved.listed is not none or moved.since is not none -%}
        {%- set names, same = [], healing_tables._key_operator(as_of_request) ~ 'moved_' -%}
        {%- set same_fact = [] -%}
        {%- set same_version = [] -%}
        {%- for key in as_of_request.key_columns -%}
            {%- do names.append(key.version ~ ' as moved_' ~ key.name) -%}
            {%- do same_fact.append(key.fact ~ same ~ key.name) -%}
            {%- do same_version.append(key.version ~ same ~ key.name) -%}
        {%- endfor -%}
        {%- set rows = '(select ' ~ names | join(', ') ~ ' from ' ~ (healing_tables._moved_since(as_of_request, moved)
            if moved.listed is none else moved.listed) ~ ')' -%}
        {%- if moved.since is not none -%}
            {#- in a table, since Delta does not find the changes of a table in a statement that reads the table as
                well -#}
            {%- set staged = healing_tables._staging_relation(facts, 'moved') -%}
            {%- do healing_tables._run('create table ' ~ staged ~ ' using ' ~ format.staging_format
                ~ ' as select distinct * from ' ~ rows) -%}
            {%- do moved.update({'staged': staged}) -%}
            {%- set rows = staged | string -%}
        {%- endif -%}
        {%- set condition = ' left semi join ' ~ rows ~ ' on ' ~ same_fact | join(' and ') ~ ' ' ~ condition -%}
        {%- do as_of_request.update({'dimension': '(\nselect * from ' ~ as_of_request.dimension ~ ' left semi join '
            ~ rows ~ ' on ' ~ same_version | join(' and ') ~ '\n)'}) -%}
    {%- endif -%}
    {%- do as_of_request.update({'facts': healing_tables._fact_columns_select(as_of_request, condition)}) -%}
{%- endmacro %}

{#- The keys whose period, or what facts store of it, has come, gone or changed; what only touched other columns, or
    came back as it was, cancels out. -#}
{% macro _moved_since(as_of_request, moved) -%}
{%- set names = [] -%}
{%- for name in healing_tables._looked_up_columns(as_of_request) -%}
    {%- set quoted = healing_tables._quoted(name) -%}
    {%- do names.append(quoted) if quoted not in names -%}
{%- endfor -%}
(
    select {{ names | join(', ') }}
    from (
        select {{ names | join(', ') }}, count_if(_change_type in ('insert', 'update_postimage')) as times_come,
            count_if(_change_type in ('delete', 'update_preimage')) as times_gone
        from {{ moved.feed or "(select *, '' as _change_type from " ~ moved.relation ~ ' where false)' }}
        group by {{ names | join(', ') }}
    )
    where times_come <> times_gone
)
{%- endmacro %}
