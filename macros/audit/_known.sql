{#- What the audit of a dimension knows: its columns over time, and since when. The library has the same in
    src/healing_tables/as_of/known_columns.py. -#}

{#-
    What the audit of a dimension knows; none with a mistake. `given`: the audit, or none for that of the model.

    relation, audit   the two tables
    valid_from        the column with the start of a version, or none: then a key has one row
    stored            the columns of the dimension {name: type}
    key_columns       the business key, as the audit has it; [] while nothing was published
    columns           of the versions {name: type}: those of the dimension, then those that it had before
    texts             {name: [{name, type, ends}]}: how the audit names a column, with which type, in which texts. These
                      are told apart by their ends, see _end_of_row_text()
-#}
{% macro _known(mistakes, argument, relation, valid_from, given, known_at=none) -%}
    {%- set columns = healing_tables._columns_of_existing(mistakes, argument, relation) -%}
    {%- if columns is none -%}
        {%- do healing_tables._mistake(mistakes, argument, 'a table, which has an audit', relation | string,
            'name the dimension itself') if not mistakes -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- do healing_tables._check_columns(mistakes, 'valid_from', [valid_from], relation | string, columns,
        'where a key has one row, write valid_from=none; ') if valid_from is not none -%}
    {%- set audit = healing_tables._audit_beside(relation, given) -%}
    {%- set exists = healing_tables._table_exists(audit) -%}
    {%- if not exists or 'published_at' not in healing_tables._columns_of(audit) -%}
        {%- do healing_tables._mistake(mistakes, 'audit', 'an audit of it that says when a row was published',
            audit | string ~ (', which was written by an earlier version' if exists else ', which does not exist'),
            'publish the dimension once' if exists
                else 'set the option audit of the model and build it, or name its audit') -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- set known = {'relation': relation, 'audit': audit, 'valid_from': valid_from, 'stored': columns,
        'key_columns': [], 'columns': {}, 'texts': {}} -%}
    {%- set kinds = healing_tables._kinds_of_row_texts(audit) -%}
    {%- do healing_tables._check_known_at(mistakes, known, kinds, known_at) if known_at is not none -%}
    {%- do known.update({'key_columns': fromjson(kinds[0].key) | list}) if kinds -%}
    {%- do healing_tables._set_known_columns(known, columns, kinds) -%}
    {%- do healing_tables._check_new_names(mistakes, known.columns) if known_at is none -%}
    {{- return(known) -}}
{%- endmacro %}

{#- The audit of a table: the one that is given, or that its model names, or <table>_audit. -#}
{% macro _audit_beside(relation, given) -%}
    {%- set options = healing_tables._options_of_node(healing_tables._node_of_table(relation)) -%}
    {%- set own = options.get('audit') -%}
    {%- set named = given if given is not none else own.get('table') if own is mapping else none -%}
    {%- if named is not none and named is not string -%} {{ return(named) }} {%- endif -%}
    {%- set place = relation.incorporate(path={'schema': options.get('log_schema')
        or healing_tables._project_options().get('log_schema') or relation.schema}) -%}
    {{- return(healing_tables._table_named_or_in(place, named, relation.identifier ~ '_audit')) -}}
{%- endmacro %}

{#- The kinds of texts in an audit, [{end, key (an example), since (microseconds), types ({name: type})}]. -#}
{% macro _kinds_of_row_texts(audit) -%}
    {%- set kinds = [] -%}
    {%- for row in run_query('select ' ~ healing_tables._end_of_row_text() ~ ' as text_end, min(key) as key, '
        ~ 'unix_micros(min(published_at)) as since from (select key, published_at, explode(array(old_values, '
        ~ 'new_values)) as text from ' ~ audit ~ ' where publish_no is not null) where text is not null group by 1'
        ).rows -%}
        {%- set types = {} -%}
        {%- for part in healing_tables._type_members(fromjson('{"types":"' ~ row['text_end']).types) -%}
            {%- set column = modules.re.match('^(`(?:[^`]|``)*`) (.*)$', part) -%}
            {%- do types.update({column.group(1)[1:-1] | replace('``', '`'): healing_tables._type_name(
                column.group(2))}) -%}
        {%- endfor -%}
        {%- do kinds.append({'end': row['text_end'], 'key': row['key'], 'since': row['since'] | int,
            'types': types}) -%}
    {%- endfor -%}
    {{- return(kinds) -}}
{%- endmacro %}

{#- The end of a row's text, which has the types of its columns: a quote inside of a value is escaped. -#}
{% macro _end_of_row_text() -%} {{ return("substring_index(text, '\"@types\":\"', -1)") }} {%- endmacro %}

{% macro _check_known_at(mistakes, known, kinds, known_at) -%}
    {%- do healing_tables._check_moment(mistakes, 'known_at', known_at) -%}
    {%- if healing_tables._parse_instant(known_at) is none -%} {{ return(none) }} {%- endif -%}
    {%- set since = kinds | map(attribute='since') | min if kinds else none -%}
    {%- if since is none or run_query('select ' ~ healing_tables._micros_constant(known_at) ~ ' < ' ~ since
        ~ 'L as is_before').rows[0][0] -%}
        {%- do healing_tables._mistake(mistakes, 'known_at', 'a moment after the first publish in ' ~ known.audit,
            known_at, 'what was known is known from the next publish on' if since is none
                else 'its first publish is of ' ~ healing_tables._instant_text(since) ~ ': name a later moment') -%}
    {%- endif -%}
{%- endmacro %}

{% macro _check_new_names(mistakes, columns) -%}
    {%- for name in ['known_from', 'known_to'] if healing_tables._find_column(name, columns) is not none -%}
        {%- do healing_tables._mistake(mistakes, 'relation', 'a dimension without a column ' ~ name, name,
            'rename that column') -%}
    {%- endfor -%}
{%- endmacro %}

{#- Set columns and texts. A column has its type in the dimension, or had, if that holds all its values; or else it is
    text. `columns`: of the dimension. -#}
{% macro _set_known_columns(known, columns, kinds) -%}
    {%- set found = {} -%}
    {%- for name, type in columns.items() -%}
        {%- do found.update({name | lower: {'name': name, 'types': [healing_tables._type_in_text(type)], 'texts': []}})
            -%}
    {%- endfor -%}
    {%- for kind in kinds -%}
        {%- for name, type in kind.types.items() -%}
            {%- do found.update({name | lower: {'name': name, 'types': [], 'texts': []}})
                if name | lower not in found -%}
            {%- set column, type = found[name | lower], healing_tables._type_in_text(type) -%}
            {%- set same = column.texts | selectattr('name', 'equalto', name) | selectattr('type', 'equalto', type)
                | list -%}
            {%- if same -%} {%- do same[0].ends.append(kind.end) -%}
            {%- else -%} {%- do column.texts.append({'name': name, 'type': type, 'ends': [kind.end]}) -%}
            {%- endif -%}
            {%- do column.types.append(type) if type not in column.types -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- for column in found.values() -%}
        {%- do known.columns.update({column.name: healing_tables._type_of_all(column.types)}) -%}
        {%- do known.texts.update({column.name: column.texts}) -%}
    {%- endfor -%}
{%- endmacro %}

{#- A type as from_json knows it: text has no length and no collation. -#}
{% macro _type_in_text(type) -%}
    {{- return(modules.re.sub('(^|[:<,])(string collate [A-Za-z0-9_]+|(var)?char[(][0-9]+[)]( collate [A-Za-z0-9_]+)?)'
        ~ '(?=$|[,>])', '\\1string', type)) -}}
{%- endmacro %}

{#- The first of some types that holds the values of all, or string. -#}
{% macro _type_of_all(types) -%}
    {%- for type in types -%}
        {%- set held = [] -%}
        {%- for other in types if healing_tables._type_holds(type, other) -%}
            {%- do held.append(other) -%}
        {%- endfor -%}
        {%- if held | length == types | length -%} {{ return(type) }} {%- endif -%}
    {%- endfor -%}
    {{- return('string') -}}
{%- endmacro %}
