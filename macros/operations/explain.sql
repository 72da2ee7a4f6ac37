{#-
    Prints where a dimension has its values for one key: what the sources say, what became of each row, slice by slice
    which source has the key and gives each value by which rule, and which slices are one version.

    crm  id | updated_at | name     erp  id | updated_at | limit
         1  | 2024-01-01 | Ann           1  | 2024-02-01 | 500

    slice | valid_from | valid_to   | version | crm | erp | changed        slice | attribute | value | from
    1     | 2024-01-01 | 2024-02-01 | 1       | yes | no  | crm            2     | limit     | 500   | erp
-#}
{% macro explain(dimension=none, key=none) -%}
    {%- if not execute -%} {{ return('') }} {%- endif -%}
    {%- set mistakes = [] -%}
    {%- if key is none -%}
        {%- do healing_tables._mistake(
            mistakes, 'key', 'the key to explain', 'none',
            'write {key: {customer_id: 1002}}, or {key: 1002} where the key is one column') -%}
        {%- do healing_tables._raise_mistakes('explain', mistakes) -%}
    {%- endif -%}
    {%- set node = healing_tables._find_sql_model('explain', dimension) -%}
    {%- set rendering = healing_tables._render_model(node, key) -%}
    {%- set after = modules.re.sub('--[^\n]*', '', rendering.code.split('/* healing_tables explains */')[-1]) | trim -%}
    {%- if rendering.explained != 1 or after -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a model that ends with one call of dimension()',
            node.name ~ (', which does not call it' if rendering.explained == 0 else ', which calls it '
                ~ rendering.explained ~ ' times' if rendering.explained > 1 else ', in which more follows'),
            'move what follows into a model of its own') -%}
        {%- do healing_tables._raise_mistakes('explain', mistakes) -%}
    {%- endif -%}
    {%- set found = {'row': [], 'slice': [], 'version': []} -%}
    {%- for row in run_query('select * from (\n' ~ rendering.sql ~ '\n) order by kind, place nulls last, told').rows -%}
        {%- do found[row['kind']].append(fromjson(row['told'])) -%}
    {%- endfor -%}
    {%- set names = rendering.spec.key_columns | map(attribute='name') | list -%}
    {%- set values = [] -%}
    {%- for name in names -%}
        {%- do values.append(name ~ ' = ' ~ (key[healing_tables._find_column(name, key)] if key is mapping
            else key)) -%}
    {%- endfor -%}
    {%- do healing_tables._print(
        'healing_tables explain: ' ~ rendering.relation ~ ', ' ~ (values | join(', ')) ~ ': ' ~ (found.row | length)
        ~ ' rows in the sources, '
        ~ (found.slice | selectattr('slice', 'ne', none) | list | length) ~ ' slices, ' ~ (found.version | length)
        ~ ' versions') -%}
    {%- if found.row -%} {%- do healing_tables._print_explained(rendering.spec, found) -%} {%- endif -%}
{%- endmacro %}

{% macro _print_explained(spec, found) -%}
    {%- set rows = [] -%}
    {%- for attribute in spec.attributes -%}
        {%- set from = [] -%}
        {%- for entry in attribute.from -%}
            {%- do from.append(healing_tables._owner_name(attribute, entry)) -%}
        {%- endfor -%}
        {%- do rows.append([attribute.name, from | join(', '), attribute.rule if from | length > 1 else 'one source',
            attribute.scd_type, {
            0: 'the first value', 1: 'the newest value', 2: 'the value then',
            3: 'the newest value of the version, and the one before',
            6: 'the value then, the newest, and the one before'}[attribute.scd_type]]) -%}
    {%- endfor -%}
    {%- do healing_tables._print_part('Rules', ['attribute', 'from', 'rule', 'type', 'a version shows'], rows) -%}
    {%- set rows = [] -%}
    {%- for row in found.row -%}
        {%- set says = [] -%}
        {%- for cell in row.says if cell and cell.value is not none -%}
            {%- do says.append(cell.column ~ '=' ~ cell.value) -%}
        {%- endfor -%}
        {%- do rows.append([
            row.source, healing_tables._display_moment(spec, row.moment, 'NULL'), row.became,
            ('deleted' ~ (': ' if says) if row.deletes else '') ~ (says | join(', '))]) -%}
    {%- endfor -%}
    {%- do healing_tables._print_part('Rows of the sources', ['source', 'moment', 'became', 'says'], rows, 160) -%}
    {%- set rows = [] -%}
    {%- set owned = [] -%}
    {%- for slice in found.slice -%}
        {%- set changed = [] -%}
        {%- set present = [] -%}
        {%- for source in slice.sources -%}
            {%- do present.append('yes' if source.present else 'no') -%}
            {%- do changed.append(source.source ~ ('' if source.present else ' ends')) if source.changed -%}
        {%- endfor -%}
        {%- do rows.append(
            [slice.slice or 'gap', healing_tables._display_moment(spec, slice.valid_from),
                healing_tables._display_moment(spec, slice.valid_to), slice.version or '']
            + present + [changed | join(', ')]) -%}
        {%- for value in slice.owned if slice.slice is not none -%}
            {%- set attribute = spec.attributes[loop.index0] -%}
            {%- do owned.append([
                slice.slice if loop.first else '', value.attribute, value.value, value.owner or '(nobody)',
                attribute.rule if attribute.from | length > 1 else 'one source']) -%}
        {%- endfor -%}
    {%- endfor -%}
    {%- do healing_tables._print_part(
        'Slices, and which source has the key then', ['slice', 'valid_from', 'valid_to',
            'version'] + (spec.sources | map(attribute='name') | list) + ['changed'], rows) -%}
    {%- do healing_tables._print_part('Values of the slices', ['slice', 'attribute', 'value', 'from', 'rule'],
        owned) -%}
    {%- set rows = [] -%}
    {%- for version in found.version -%}
        {%- do rows.append([
            version.version, healing_tables._display_moment(spec, version.valid_from),
            healing_tables._display_moment(spec, version.valid_to),
            version.first_slice ~ (' to ' ~ version.last_slice if version.last_slice > version.first_slice else ''),
            healing_tables._opened_by(spec, found, version)]) -%}
    {%- endfor -%}
    {%- do healing_tables._print_part('Versions', ['version', 'valid_from', 'valid_to', 'slices', 'opened by'],
        rows) -%}
{%- endmacro %}

{% macro _print_part(title, header, rows, longest=60) -%}
    {%- do healing_tables._print('') -%}
    {%- do healing_tables._print('  ' ~ title) -%}
    {%- do healing_tables._print_table(header, rows, longest) -%}
{%- endmacro %}

{#- A moment as the dimension shows it: a day where all moments are days. -#}
{% macro _display_moment(spec, moment, open='(open)') -%}
    {%- if moment is none -%} {{ return(open) }} {%- endif -%}
    {{- return(moment[:10] if spec.moment_type == 'date' else moment) -}}
{%- endmacro %}

{#- The versioned attributes that differ from the slice before. -#}
{% macro _opened_by(spec, found, version) -%}
    {%- if version.first_slice == 1 -%} {{ return('first seen') }} {%- endif -%}
    {%- set before = found.slice | selectattr('slice', 'equalto', version.first_slice - 1) | first -%}
    {%- set here = found.slice | selectattr('slice', 'equalto', version.first_slice) | first -%}
    {%- if before.valid_to != here.valid_from -%} {{ return('return after a gap') }} {%- endif -%}
    {%- set changed = [] -%}
    {%- for attribute in spec.attributes -%}
        {%- if attribute.scd_type in [2, 6] and before.owned[loop.index0].value != here.owned[loop.index0].value -%}
            {%- do changed.append(attribute.name) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(changed | join(', ')) -}}
{%- endmacro %}
