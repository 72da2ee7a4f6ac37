{#- What erase, readmit and erased do with their subjects and places. -#}

{#- The places, each with the number of its `rows`. -#}
{% macro _counted_places(places) -%}
    {%- set selects, counted = [], [] -%}
    {%- for place in places -%}
        {%- do selects.append('select ' ~ loop.index0 ~ ' as place, count(*) as number from ' ~ place.table ~ ' where '
            ~ place.condition) -%}
    {%- endfor -%}
    {%- for row in run_query(selects | join(' union all ') ~ ' order by place').rows -%}
        {%- do counted.append(dict(places[row['place'] | int], rows=row['number'] | int)) -%}
    {%- endfor -%}
    {{- return(counted) -}}
{%- endmacro %}

{% macro _print_places(places) -%}
    {%- set listed = [] -%}
    {%- for place in places -%}
        {%- do listed.append([place.table, place.what, place.rows,
            'changed' if place.becomes else 'removed']) -%}
    {%- endfor -%}
    {%- do healing_tables._print_table(['table', 'what', 'rows', 'they are'], listed) -%}
{%- endmacro %}

{#- The tables that the dimension reads are not ours: say where the keys still are. -#}
{% macro _report_other_sources(found, target) -%}
    {%- set selects = [] -%}
    {%- for name, source in found.sources.items() -%}
        {%- set text = 'source ' ~ name ~ ' (' ~ source.relation ~ ')' -%}
        {%- do selects.append('select ' ~ healing_tables._string_literal(text)
            ~ ' as name, count(*) as number from ' ~ source.relation ~ ' where '
            ~ healing_tables._has_key(source.expressions, found.subjects[0]['keys'])) -%}
    {%- endfor -%}
    {%- for row in (run_query(selects | join(' union all ')).rows if selects else []) if row[1] > 0 -%}
        {%- do healing_tables._report('erase', target, row[0] ~ ' has ' ~ healing_tables._counted(row[1] | int, 'row')
            ~ ' of these keys: builds leave them out; delete them there') -%}
    {%- endfor -%}
{%- endmacro %}

{#- Add an event for the keys of a subject for which it is not the newest one already. `after`: of a readmit. -#}
{% macro _register(subject, secret, event, after) -%}
    {%- set table, columns = healing_tables._erased_relation(subject.relation), [] -%}
    {%- for name, type in healing_tables._erased_columns().items() -%} {%- do columns.append(name ~ ' ' ~ type) -%}
    {%- endfor -%}
    {%- do healing_tables._run('create table if not exists ' ~ table ~ ' (' ~ (columns | join(', ')) ~ ') using '
        ~ (subject.details.get('provider') or 'parquet')) -%}
    {%- set kind = healing_tables._string_literal(tojson(subject.key_columns)) -%}
    {%- set moment = healing_tables._open_end(after, 'timestamp') if after is not none
        else 'cast(null as timestamp)' -%}
    {%- do healing_tables._run('insert into ' ~ table ~ ' select given.key_hash, ' ~ kind ~ ", '" ~ event ~ "', now(), "
        ~ moment ~ ", '" ~ secret.name ~ "' from (select explode(array_distinct(array("
        ~ (subject.texts['hashes'] | join(', ')) ~ '))) as key_hash) as given left join (select key_hash, '
        ~ 'max_by(struct(event, readmitted_after), event_at) as newest from ' ~ table ~ ' where key_columns = ' ~ kind
        ~ ' group by key_hash) as known on known.key_hash = given.key_hash where '
        ~ ("coalesce(newest.event, 'readmit') = 'readmit'" if event == 'erase'
            else 'newest.event is not null and not newest.readmitted_after <=> ' ~ moment)) -%}
{%- endmacro %}

{% macro _erase_place(place) -%}
    {%- for statement in place.before -%} {%- do healing_tables._run(statement) -%} {%- endfor -%}
    {%- do place.format.files.erase(place.table, place.details, place.condition, place.becomes) -%}
{%- endmacro %}

{#- What still has the rows, and until when. -#}
{% macro _report_past(subjects, places) -%}
    {%- for place in places if place.rows > 0 -%}
        {%- do healing_tables._report('erase', place.table, place.format.files.past(place.table)) -%}
    {%- endfor -%}
    {%- do healing_tables._report('erase', subjects[0].relation, 'versions of objects that the store keeps, and '
        ~ 'backups, are not touched; run-operation healing_tables.erased proves what is gone') -%}
{%- endmacro %}

{#- The row of the log names no key, only its hash. -#}
{% macro _end_erasure(subject, event, started_at, rows) -%}
    {%- set hashes = [] -%}
    {%- for hash in subject.texts['hashes'] -%}
        {%- do hashes.append(hash | replace("'", '')) -%}
    {%- endfor -%}
    {%- do healing_tables._be_model(subject.node, subject.relation) if subject.node is not none -%}
    {%- do healing_tables._end_operation({
        'target': subject.relation, 'format_name': subject.details.get('provider'), 'mode': event,
        'status': 'published', 'reason': event ~ ' of keys with the hashes ' ~ (hashes | join(', ')),
        'rows_removed': rows,
        'keys_affected': hashes | length, 'started_at': started_at, 'version_before': none,
        'version_after': healing_tables._table_version(subject.relation, subject.details)}) -%}
{%- endmacro %}

{#-
    Where `erased` looks, for each table of a subject: {table, what, rows (of erased keys, as SQL for a `from`),
    all (the same of all files, or none), log and past (see formats/_format.sql)}.
-#}
{% macro _places_to_prove(mistakes, subject) -%}
    {%- set erased = healing_tables._erased(mistakes, subject.relation) -%}
    {%- if erased is none or mistakes -%} {{ return([]) }} {%- endif -%}
    {%- set found = [] -%}
    {%- for place in healing_tables._places_of_subject(subject) if place.what not in ['outbox', 'texts of the log'] -%}
        {%- set join = healing_tables._erased_join(mistakes, erased, healing_tables._keys_of_place(subject, place),
            '9223372036854775807L', 'key' if place.what == 'key map' else none) -%}
        {%- set files = place.format.files.all(place.table, place.details,
            ['key'] if place.what in ['audit', 'key map'] else subject.key_columns) -%}
        {%- do found.append({'table': place.table, 'what': place.what, 'rows': place.table ~ ' left semi join ' ~ join,
            'all': files ~ ' left semi join ' ~ join if files is not none else none,
            'log': place.format.files.log(place.table), 'past': place.format.files.past(place.table)}) -%}
    {%- endfor -%}
    {{- return(found) -}}
{%- endmacro %}

{#- The key columns in a place, as _erased_join() takes them. -#}
{% macro _keys_of_place(subject, place) -%}
    {%- set columns, fields = {}, [] -%}
    {%- for name in subject.key_columns -%}
        {%- do fields.append(healing_tables._quoted(name) ~ ' '
            ~ healing_tables._type_of_column(subject.details.columns, name)) -%}
    {%- endfor -%}
    {%- set whole = 'from_json(key, ' ~ healing_tables._string_literal(fields | join(', ')) ~ ', '
        ~ healing_tables._json_options() ~ ').' -%}
    {%- for name in subject.key_columns -%}
        {%- set type = healing_tables._type_of_column(subject.details.columns, name) -%}
        {%- set column = healing_tables._quoted(name) -%}
        {%- do columns.update({name: {'type': type, 'expression': whole ~ column if place.what == 'audit'
            else 'try_cast(' ~ column ~ ' as ' ~ type ~ ')' if place.what == 'rows set aside' else column}}) -%}
    {%- endfor -%}
    {{- return(columns) -}}
{%- endmacro %}
