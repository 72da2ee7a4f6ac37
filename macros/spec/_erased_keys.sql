{#-
    Keys that were erased stay out: whatever writes a dimension reads its rows without them. <dimension>__erased has
    only keyed hashes of them, one row for each `erase` and `readmit`; the newest row of a key counts.

    key_hash | key_columns     | event   | event_at   | readmitted_after | secret_hash
    5d0c...  | ["customer_id"] | erase   | 2024-05-01 | NULL             | 8f3a61c0
    5d0c...  | ["customer_id"] | readmit | 2024-09-01 | 2024-08-15       | 8f3a61c0

    The library has the same rules in src/healing_tables/merge/erased.py.
-#}
{% macro _erased_columns() -%}
    {{- return({'key_hash': 'string', 'key_columns': 'string', 'event': 'string', 'event_at': 'timestamp',
        'readmitted_after': 'timestamp', 'secret_hash': 'string'}) -}}
{%- endmacro %}

{% macro _erased_relation(relation) -%}
    {{- return(api.Relation.create(database=relation.database, schema=relation.schema,
        identifier=relation.identifier ~ '__erased', type='table')) -}}
{%- endmacro %}

{#- {inner, outer, name}: two keys for the hashes and a name, all derived from the secret, so that no statement contains
    it; none if it is not set or too short to resist guessing. -#}
{% macro _erasure_secret(mistakes) -%}
    {%- set secret = env_var('HEALING_TABLES_SECRET', '') -%}
    {%- if secret | length < 16 -%}
        {%- do healing_tables._mistake(mistakes, 'the environment variable HEALING_TABLES_SECRET',
            'at least 16 characters', 'none' if not secret else secret | length,
            'set it to a random text that you keep as long as the dimension: openssl rand -hex 32') -%}
        {{- return(none) -}}
    {%- endif -%}
    {{- return({'inner': local_md5('healing_tables inner ' ~ secret),
        'outer': local_md5('healing_tables outer ' ~ secret),
        'name': local_md5('healing_tables name ' ~ secret)[:8]}) -}}
{%- endmacro %}

{#- The keyed hash of a key [{expression, type}], as SQL: nested as in HMAC, over the hash of the key. -#}
{% macro _erased_hash(secret, columns) -%}
    {{- return(healing_tables._keyed_hash(secret, healing_tables._hash(columns))) -}}
{%- endmacro %}

{% macro _keyed_hash(secret, key_hash) -%}
    {{- return("sha2(concat('" ~ secret.outer ~ "', sha2(concat('" ~ secret.inner ~ "', " ~ key_hash
        ~ '), 256)), 256)') -}}
{%- endmacro %}

{#- What was erased from a table: {table (as SQL), kinds (a list of the column names of keys for each kind), newest (the
    moment of the last change, in microseconds), secret}; none if nothing was. -#}
{% macro _erased(mistakes, relation) -%}
    {%- set table = healing_tables._erased_relation(relation) -%}
    {%- if load_relation(table) is none -%} {{ return(none) }} {%- endif -%}
    {%- set rows = run_query('select key_columns, secret_hash, cast(max(unix_micros(event_at)) as string) as newest'
        ~ ' from ' ~ table ~ ' group by key_columns, secret_hash order by key_columns').rows -%}
    {%- if not rows -%} {{ return(none) }} {%- endif -%}
    {%- set secret, kinds, names = healing_tables._erasure_secret(mistakes), [], [] -%}
    {%- for row in rows -%}
        {%- do kinds.append(fromjson(row['key_columns'])) if fromjson(row['key_columns']) not in kinds -%}
        {%- do names.append(row['secret_hash']) if row['secret_hash'] not in names -%}
    {%- endfor -%}
    {%- if secret is not none and names != [secret.name] -%}
        {%- do healing_tables._mistake(mistakes, 'the environment variable HEALING_TABLES_SECRET',
            'the secret of the erased keys in ' ~ table ~ ', whose name is ' ~ (names | join(', ')),
            'one whose name is ' ~ secret.name, 'set the secret with which these keys were erased') -%}
    {%- endif -%}
    {{- return({'table': table | string, 'kinds': kinds, 'newest': rows | map(attribute='newest') | max,
        'secret': secret}) -}}
{%- endmacro %}

{#-
    The rows of <dimension>__erased that match a row, as SQL after `left anti join` or `left semi join`. `columns`: the
    possible key columns of the row, {name: {expression, type}}; `moment`: its moment in microseconds, as SQL: after
    that of a `readmit`, its key is in again; `text`: a column with the text of the whole key instead, as in a key map.
    The alias makes the definition another one after each event, so that the next build is a rebuild.
-#}
{% macro _erased_join(mistakes, erased, columns, moment, text=none) -%}
    {%- set states, conditions = [], [] -%}
    {%- for kind in erased.kinds -%}
        {%- set parts = [] -%}
        {%- for name in kind -%}
            {%- set found = healing_tables._find_column(name, columns) -%}
            {%- do parts.append(columns[found]) if found is not none -%}
        {%- endfor -%}
        {%- if parts | length < kind | length -%}
            {%- do healing_tables._mistake(mistakes, erased.table, 'keys of the columns ' ~ (columns | join(', ')),
                'erased keys of the columns ' ~ (kind | join(', ')),
                'erase these keys again under the new columns, and delete their rows from this table') -%}
        {%- elif erased.secret is not none -%}
            {%- do states.append('select ' ~ loop.index ~ ' as healing_tables_kind, key_hash as healing_tables_hash, '
                ~ 'max_by(readmitted_after, event_at) as healing_tables_after from ' ~ erased.table
                ~ ' where key_columns = ' ~ healing_tables._string_literal(tojson(kind)) ~ ' group by key_hash') -%}
            {%- do conditions.append(('healing_tables_kind = ' ~ loop.index ~ ' and ' if erased.kinds | length > 1)
                ~ 'healing_tables_hash = ' ~ (healing_tables._erased_hash(erased.secret, parts) if text is none
                    else healing_tables._keyed_hash(erased.secret, 'sha2(' ~ text ~ ', 256)'))) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return('(' ~ (states | join(' union all ')) ~ ') as healing_tables_erased_' ~ erased.newest ~ ' on ('
        ~ (conditions | join(' or ')) ~ ') and coalesce(' ~ moment ~ ' <= unix_micros(healing_tables_after), true)') -}}
{%- endmacro %}

{#- Rows without those of erased keys, as SQL for a `from`. -#}
{% macro _without_erased(rows, join) -%}
    {{- return('(select * from ' ~ rows ~ ' left anti join ' ~ join ~ ')') -}}
{%- endmacro %}
