{#- Spark types: spelling, families, the common type of several, and values that mean the same in each. -#}

{#- A type as `describe` spells it: lower case, one name per type. Types with members keep their case; the names of
    their fields are quoted where SQL needs that, which `describe` does not do. -#}
{% macro _type_name(name) -%}
    {%- if name is none or name is undefined -%} {{ return(none) }} {%- endif -%}
    {%- set text = name | string | trim -%}
    {%- if '<' in text -%} {{ return(healing_tables._with_quoted_fields(text)) }} {%- endif -%}
    {%- set text = text | lower | replace(' ', '') if '(' in text else text | lower -%}
    {%- set same = {
        'integer': 'int', 'long': 'bigint', 'short': 'smallint', 'byte': 'tinyint', 'real': 'float',
        'timestamp_ltz': 'timestamp', 'decimal': 'decimal(10,0)', 'numeric': 'decimal(10,0)', 'text': 'string'
    } -%}
    {{- return(same.get(text, text | replace('numeric(', 'decimal('))) -}}
{%- endmacro %}

{% macro _type_family(type) -%}
    {%- if type in ['tinyint', 'smallint', 'int', 'bigint'] -%} {{ return('integer') }}
    {%- elif type in ['float', 'double'] -%} {{ return('floating') }}
    {%- elif type.startswith('decimal(') -%} {{ return('decimal') }}
    {%- elif type == 'string' or type.startswith('string collate') or type.startswith('varchar(')
        or type.startswith('char(') -%} {{ return('text') }}
    {%- else -%} {{ return(type) }}
    {%- endif -%}
{%- endmacro %}

{#- A type with members, with each name of a field that is no plain word in backticks. -#}
{% macro _with_quoted_fields(type) -%}
    {%- if type.startswith('array<') -%}
        {{- return('array<' ~ healing_tables._with_quoted_fields(type[6:-1]) ~ '>') -}}
    {%- endif -%}
    {%- set found = healing_tables._struct_fields(type[7:-1]) if type.startswith('struct<') else none -%}
    {%- if found is none -%} {{ return(type) }} {%- endif -%}
    {%- set fields = [] -%}
    {%- for name, member in found -%}
        {%- set is_word = modules.re.fullmatch('[A-Za-z_][A-Za-z0-9_]*', name) is not none -%}
        {%- do fields.append((name if is_word else healing_tables._quoted(name)) ~ ':'
            ~ healing_tables._with_quoted_fields(member)) -%}
    {%- endfor -%}
    {{- return('struct<' ~ (fields | join(',')) ~ '>') -}}
{%- endmacro %}

{#- The type of a column as the package reads it, see _normalized_value(): text without collation, and of any length
    instead of a fixed one. -#}
{% macro _plain_type(type) -%}
    {{- return(none if type is none else modules.re.sub(
        '(^|[:<])((string|(var)?char[(][0-9]+[)]) collate [A-Za-z0-9_]+|char[(][0-9]+[)])(?=$|[,>])', '\\1string',
        type)) -}}
{%- endmacro %}

{#- Types without equality: maps, variants, geometries, and structs or arrays that contain one; not fields with such a
    name. -#}
{% macro _has_no_equality(type) -%}
    {{- return(modules.re.search('(^|[<:,] ?)(map<|variant($|[>,])|geo(metry|graphy)[(])', type)
        is not none) -}}
{%- endmacro %}

{#- Whether a column of the type `new` can hold every value of the type `old`. -#}
{% macro _type_holds(new, old) -%}
    {%- if new in [old, 'string'] or (old == 'date' and new in ['timestamp', 'timestamp_ntz']) -%}
        {{- return(true) -}}
    {%- endif -%}
    {%- set families = [healing_tables._type_family(new), healing_tables._type_family(old)] -%}
    {%- if families[0] == 'floating' -%}
        {{- return(old in (['float', 'tinyint', 'smallint', 'int'] if new == 'double' else ['tinyint', 'smallint'])) -}}
    {%- elif families | reject('in', ['integer', 'decimal']) | list | length == 0 -%}
        {%- set digits = healing_tables._digits() -%}
        {%- if old in digits and new not in digits -%}
            {%- set size = healing_tables._precision_and_scale(new) -%}
            {{- return(size[0] - size[1] >= digits[old]) -}}
        {%- endif -%}
        {{- return(healing_tables._common_type([new, old]) == new) -}}
    {%- endif -%}
    {%- set lengths = [] -%}
    {%- for type in [new, old] -%}
        {%- do lengths.append(modules.re.match('^(?:var)?char[(]([0-9]+)[)]$', type)) -%}
    {%- endfor -%}
    {{- return(none not in lengths and lengths[0].group(1) | int >= lengths[1].group(1) | int) -}}
{%- endmacro %}

{#- Whether every value of one type is a value of the other, unchanged. -#}
{% macro _fits_stored(given, stored) -%}
    {%- if given in [stored, 'void'] -%} {{ return(true) }} {%- endif -%}
    {%- set families = [healing_tables._type_family(given), healing_tables._type_family(stored)] -%}
    {%- if families == ['text', 'text'] -%} {{ return(true) }} {%- endif -%}
    {{- return((families[0] in ['integer', 'decimal'] and families[1] in ['integer', 'decimal']
            and healing_tables._type_holds(stored, given))
        or (given == 'float' and stored == 'double')) -}}
{%- endmacro %}

{#- Whether a stored number can become a number of another type, which holds every stored value. -#}
{% macro _is_wider(given, stored) -%}
    {{- return(given != stored and (healing_tables._type_family(stored) in ['integer', 'decimal'] or stored == 'float')
        and healing_tables._fits_stored(stored, given)) -}}
{%- endmacro %}

{#- The number of digits after the point; none for float and double. -#}
{% macro _scale_of(type) -%}
    {{- return(healing_tables._precision_and_scale(type)[1]
        if healing_tables._type_family(type) in ['integer', 'decimal'] else none) -}}
{%- endmacro %}

{#- The digits of the largest value of each integer type. -#}
{% macro _digits() -%} {{ return({'tinyint': 3, 'smallint': 5, 'int': 10, 'bigint': 19}) }} {%- endmacro %}

{#- Precision and scale of the decimal to which an integer or decimal type widens; Spark's has 20 for bigint. -#}
{% macro _precision_and_scale(type) -%}
    {%- set digits = dict(healing_tables._digits(), bigint=20) -%}
    {%- if type in digits -%} {{ return([digits[type], 0]) }} {%- endif -%}
    {%- set parts = type[8:-1].split(',') -%}
    {{- return([parts[0] | int, (parts[1] | int) if parts | length > 1 else 0]) -}}
{%- endmacro %}

{#-
    The type in which values of all `types` compare by value: whole numbers and decimals widen, numbers and text
    compare as text. none if one of them is unknown; 'mixed' if there is no such type.
-#}
{% macro _common_type(types) -%}
    {%- if none in types -%} {{ return(none) }} {%- endif -%}
    {%- set plain = [] -%}
    {%- for type in types -%} {%- do plain.append(healing_tables._plain_type(type)) -%} {%- endfor -%}
    {%- set types = plain -%}
    {%- set families = [] -%}
    {%- for type in types -%}
        {%- do families.append(healing_tables._type_family(type)) -%}
    {%- endfor -%}
    {%- set kinds = families | unique | list -%}
    {%- if types | unique | list | length == 1 and kinds[0] != 'text' -%} {{ return(types[0]) }} {%- endif -%}
    {%- if kinds == ['floating'] -%} {{ return('double') }} {%- endif -%}
    {%- if kinds == ['integer'] -%}
        {%- for type in ['bigint', 'int', 'smallint'] if type in types -%} {{ return(type) }} {%- endfor -%}
    {%- endif -%}
    {%- if kinds | reject('in', ['integer', 'decimal']) | list | length == 0 -%}
        {%- set whole = [] -%}
        {%- set scales = [] -%}
        {%- for type in types -%}
            {%- set size = healing_tables._precision_and_scale(type) -%}
            {%- do whole.append(size[0] - size[1]) -%}
            {%- do scales.append(size[1]) -%}
        {%- endfor -%}
        {%- set precision = (whole | max) + (scales | max) -%}
        {{- return('mixed' if precision > 38 else 'decimal(' ~ precision ~ ',' ~ (scales | max) ~ ')') -}}
    {%- endif -%}
    {%- if kinds | reject('in', ['integer', 'decimal', 'floating', 'text']) | list | length == 0 and 'text' in kinds -%}
        {{- return('string') -}}
    {%- endif -%}
    {{- return('mixed') -}}
{%- endmacro %}

{#- SQL that is the same for all columns of a type is generated once, with this mark, which is then replaced by each
    column. Names and text never contain `${`, see _quoted() and _string_literal(). -#}
{% macro _column_mark() -%} {{ return('${column}') }} {%- endmacro %}

{#- A column as the package reads it: -0.0 is 0.0, text compares by code point whatever its collation, the padding of a
    char(n) is left out; also in arrays and structs. The type of the result: _plain_type(). -#}
{% macro _normalized_value(expression, type, depth=1) -%}
    {%- if type is none -%} {{ return(expression) }}
    {%- elif type == 'double' -%} {{ return('cast(' ~ expression ~ ' + 0 as double)') }}
    {%- elif type == 'float' -%} {{ return(expression ~ ' + cast(0 as float)') }}
    {%- elif type.startswith('char(') -%} {{ return('rtrim(cast(' ~ expression ~ ' as string))') }}
    {%- elif not modules.re.search('double|float| collate |(^|[:<])char[(]', type) -%} {{ return(expression) }}
    {%- elif healing_tables._type_family(type) == 'text' -%} {{ return('cast(' ~ expression ~ ' as string)') }}
    {%- elif type.startswith('array<') -%}
        {%- set item = 'item_' ~ depth -%}
        {{- return('transform(' ~ expression ~ ', ' ~ item ~ ' -> ' ~ healing_tables._normalized_value(item,
            type[6:-1], depth + 1) ~ ')') -}}
    {%- endif -%}
    {%- set found = healing_tables._struct_fields(type[7:-1]) if type.startswith('struct<') else none -%}
    {%- if found is none -%} {{ return(expression) }} {%- endif -%}
    {%- set fields = [] -%}
    {%- for name, member in found -%}
        {%- do fields.append(
            healing_tables._string_literal(name) ~ ', '
            ~ healing_tables._normalized_value(expression ~ '.' ~ healing_tables._quoted(name), member, depth)) -%}
    {%- endfor -%}
    {{- return('if(' ~ expression ~ ' is null, null, named_struct(' ~ fields | join(', ') ~ '))') -}}
{%- endmacro %}

{#- 'a:int,b:struct<c:double>' as [[name, type]]; a name in backticks may contain any character. none if that is not
    clear: `describe` does not quote names. -#}
{% macro _struct_fields(text) -%}
    {%- set fields = [] -%}
    {%- for part in healing_tables._type_members(text) -%}
        {%- set field = modules.re.match('^(`(?:[^`]|``)*`|[^:]*):(.*)$', part) -%}
        {%- if field is none -%} {{ return(none) }} {%- endif -%}
        {%- set name = field.group(1) -%}
        {%- do fields.append([name[1:-1] | replace('``', '`') if name.startswith('`') else name,
            field.group(2) | trim]) -%}
    {%- endfor -%}
    {{- return(fields) -}}
{%- endmacro %}

{#- 'decimal(10,2),map<int,string>', what a type has between < and >, as a list of what its commas separate. -#}
{% macro _type_members(text) -%}
    {%- set at, parts = namespace(depth=0, quoted=false, part=''), [] -%}
    {%- for letter in text ~ ',' -%}
        {%- if letter == '`' -%} {%- set at.quoted = not at.quoted -%} {%- endif -%}
        {%- if not at.quoted and letter in '<(' -%} {%- set at.depth = at.depth + 1 -%} {%- endif -%}
        {%- if not at.quoted and letter in '>)' -%} {%- set at.depth = at.depth - 1 -%} {%- endif -%}
        {%- if letter == ',' and not at.quoted and at.depth == 0 -%}
            {%- do parts.append(at.part | trim) -%}
            {%- set at.part = '' -%}
        {%- else -%}
            {%- set at.part = at.part ~ letter -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(parts) -}}
{%- endmacro %}
