{#- What was published of one key, for explain: from the audit of the dimension. -#}

{#- The key that explain was asked for, {column: value}. `key`: such a map, or the value of the only column. -#}
{% macro _explained_key(spec, key) -%}
    {%- set values = {} -%}
    {%- for column in spec.key_columns -%}
        {%- do values.update({column.name: key[healing_tables._find_column(column.name, key)] if key is mapping
            else key}) -%}
    {%- endfor -%}
    {{- return(values) -}}
{%- endmacro %}

{#- [{known_from, known_to, valid_from, valid_to, says}], in the order of known_from and valid_from, all as text; [] of
    a dimension without an audit. `key`: as explain takes it. -#}
{% macro _published_of_key(spec, node, key) -%}
    {%- set relation, names, mistakes = healing_tables._node_relation(node), spec.names, [] -%}
    {%- if healing_tables._options_of_node(node).get('audit') is none or none in [names.valid_from, names.valid_to]
        or not healing_tables._table_exists(relation) -%}
        {{- return([]) -}}
    {%- endif -%}
    {%- set known = healing_tables._known(mistakes, 'dimension', relation, names.valid_from, none) -%}
    {%- if mistakes -%} {{ return([]) }} {%- endif -%}
    {%- set period = healing_tables._period(mistakes, relation, known.columns, names.valid_from, names.valid_to,
        spec.valid_to_current) -%}
    {%- set keys, says, given = [], [], healing_tables._explained_key(spec, key) -%}
    {%- for name in given -%}
        {%- do keys.append(healing_tables._quoted(name) ~ ' as key_' ~ loop.index) -%}
    {%- endfor -%}
    {%- for attribute in spec.attributes if healing_tables._find_column(attribute.name, known.columns) is not none -%}
        {%- do says.append('concat(' ~ healing_tables._string_literal(attribute.name ~ '=') ~ ', cast('
            ~ healing_tables._quoted(attribute.name) ~ ' as string))') -%}
    {%- endfor -%}
    {%- set published = [] -%}
    {%- for row in run_query('select ' ~ healing_tables._utc_text('unix_micros(known_from)') ~ ' as known_from, '
        ~ 'if(known_to is null, null, ' ~ healing_tables._utc_text('unix_micros(known_to)') ~ ') as known_to, '
        ~ healing_tables._utc_text(period.at) ~ ' as valid_from, if(' ~ period.is_open ~ ', null, '
        ~ healing_tables._utc_text(period.until) ~ ') as valid_to, array_join(array_compact(array('
        ~ (says | join(', ') or 'cast(null as string)') ~ ")), ', ') as says from (select *, " ~ (keys | join(', '))
        ~ ' from (\n' ~ healing_tables._select_known(known) ~ '\n)) where '
        ~ (healing_tables._key_conditions(given.keys() | list, given) | join(' and '))
        ~ ' order by 1, 3, 2').rows -%}
        {%- do published.append({
            'known_from': row['known_from'], 'known_to': row['known_to'] or '(now)',
            'valid_from': healing_tables._display_moment(spec, row['valid_from']),
            'valid_to': healing_tables._display_moment(spec, row['valid_to']), 'says': row['says']}) -%}
    {%- endfor -%}
    {{- return(published) -}}
{%- endmacro %}
