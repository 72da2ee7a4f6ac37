{#-
    Print the origin of the values of one key: the rows of the sources and their use, for each slice the sources that
    have the key and the source of each value that changes, and the slices of each version.

    crm  id | updated_at | name     erp  id | updated_at | limit
         1  | 2024-01-01 | Ann           1  | 2024-02-01 | 500

    slice | from       | crm | erp | version | attribute | value | by
    1     | 2024-01-01 | ●   |     | ● 1     | name      | Ann   | crm
    2     | 2024-02-01 | │   | ●   | ● 2     | limit     | 500   | erp

    `html`: a file to which the same is written as a page with a picture.
-#}
{% macro explain(dimension=none, key=none, html=none) -%}
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
    {%- set after = healing_tables._without_comments(rendering.code.split(healing_tables._call_end())[-1]) -%}
    {%- if rendering.explained != 1 or after -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a model that ends with one call of dimension()',
            node.name ~ (', which does not call it' if rendering.explained == 0 else ', which calls it '
                ~ rendering.explained ~ ' times' if rendering.explained > 1 else ', followed by more code'),
            'move the code after the call to another model') -%}
        {%- do healing_tables._raise_mistakes('explain', mistakes) -%}
    {%- endif -%}
    {%- set found = {'row': [], 'slice': [], 'version': []} -%}
    {%- for row in run_query(
        'select * from (\n' ~ rendering.sql ~ '\n) order by kind, place nulls last, fields').rows -%}
        {%- do found[row['kind']].append(fromjson(row['fields'])) -%}
    {%- endfor -%}
    {%- set explained = healing_tables._explained(rendering, key, found) -%}
    {%- do healing_tables._print('healing_tables explain: ' ~ explained.title ~ ': ' ~ explained.counts) -%}
    {%- if found.row -%}
        {%- do healing_tables._print_explained(explained) -%}
    {%- else -%}
        {%- do healing_tables._print('  no source has a row with this key: compare the values and their types') -%}
    {%- endif -%}
    {%- if html is not none -%} {%- do healing_tables._write_page('explain', explained, html) -%} {%- endif -%}
{%- endmacro %}

{#-
    An `explained`: what explain shows for one key, all as text: {title, counts, sources (names),
    rules (attribute, from, rule, scd_type, shows), rows (source, moment, became, says, deletes),
    slices (slice (its number, none for a gap), version, valid_from, valid_to, sources (source, present, changed),
    owned (attribute, value, owner), changes (values of owned that differ from the slice before),
    offered (for each attribute of several sources: source, present, value, began),
    overruled (attribute, value, source, owner, why: new values of sources that are not used)),
    versions (version, valid_from, valid_to, slices, opened_by),
    published (see _published_of_key())}.
-#}
{% macro _explained(rendering, key, found) -%}
    {%- set spec = rendering.spec -%}
    {%- set key_values = [] -%}
    {%- for name, value in healing_tables._explained_key(spec, key).items() -%}
        {%- do key_values.append(name ~ ' = ' ~ value) -%}
    {%- endfor -%}
    {{- return({
        'title': rendering.relation ~ ', ' ~ (key_values | join(', ')),
        'counts': healing_tables._counted(found.row | length, 'row') ~ ' in the sources, '
            ~ healing_tables._counted(found.slice | selectattr('slice', 'ne', none) | list | length, 'slice') ~ ', '
            ~ healing_tables._counted(found.version | length, 'version'),
        'sources': spec.sources | map(attribute='name') | list,
        'rules': healing_tables._explained_rules(spec),
        'rows': healing_tables._explained_rows(spec, found.row),
        'slices': healing_tables._explained_slices(spec, found.slice),
        'versions': healing_tables._explained_versions(spec, found),
        'published': healing_tables._published_of_key(spec, rendering.node, key)}) -}}
{%- endmacro %}

{% macro _explained_rules(spec) -%}
    {%- set rules = [] -%}
    {%- for attribute in spec.attributes -%}
        {%- set owners = [] -%}
        {%- for entry in attribute.from -%}
            {%- do owners.append(healing_tables._owner_name(attribute, entry)) -%}
        {%- endfor -%}
        {%- do rules.append({
            'attribute': attribute.name, 'from': owners | join(', '),
            'rule': attribute.rule if owners | length > 1 else 'one source', 'scd_type': attribute.scd_type,
            'shows': {
                0: 'the first value', 1: 'the newest value', 2: 'the value at that time',
                3: 'the newest value of the version, and the one before',
                6: 'the value at that time, the newest, and the one before'}[attribute.scd_type]}) -%}
    {%- endfor -%}
    {{- return(rules) -}}
{%- endmacro %}

{% macro _explained_rows(spec, found) -%}
    {%- set rows = [] -%}
    {%- for row in found -%}
        {%- set says = [] -%}
        {%- for cell in row.says if cell and cell.value is not none -%}
            {%- do says.append(cell.column ~ '=' ~ cell.value) -%}
        {%- endfor -%}
        {%- do rows.append(dict(row, moment=healing_tables._display_moment(spec, row.moment, 'NULL'),
            says=('deleted' ~ (': ' if says) if row.deletes else '') ~ (says | join(', ')))) -%}
    {%- endfor -%}
    {{- return(rows) -}}
{%- endmacro %}

{#- After a gap, and in the first slice, all values except NULL are changes. -#}
{% macro _explained_slices(spec, found) -%}
    {%- set slices = [] -%}
    {%- for slice in found -%}
        {%- set before = slices[-1] if slices and slices[-1].slice is not none else none -%}
        {%- set changes, overruled = [], [] -%}
        {%- for value in (slice.owned if slice.slice is not none else []) -%}
            {%- set is_new = value != before.owned[loop.index0] if before is not none else value.value is not none -%}
            {%- do changes.append(value) if is_new -%}
            {%- do overruled.extend(healing_tables._overruled_values(spec.attributes[loop.index0], value,
                slice.offered[loop.index0], before.offered[loop.index0] if before is not none else [])) -%}
        {%- endfor -%}
        {%- do slices.append(dict(slice, changes=changes, overruled=overruled,
            valid_from=healing_tables._display_moment(spec, slice.valid_from),
            valid_to=healing_tables._display_moment(spec, slice.valid_to))) -%}
    {%- endfor -%}
    {{- return(slices) -}}
{%- endmacro %}

{#-
    The new values of sources that differ from the value that the rule has chosen. A source that ends or repeats its
    value has no new one.
-#}
{% macro _overruled_values(attribute, owned, offered, offered_before) -%}
    {%- set overruled = [] -%}
    {%- for chosen in offered if chosen.source == owned.owner -%}
        {%- for offer in offered -%}
            {%- set value_before = offered_before[loop.index0].value if offered_before else none -%}
            {%- if offer.present and offer.value != owned.value and offer.value != value_before -%}
                {%- do overruled.append({
                    'attribute': owned.attribute, 'value': offer.value, 'source': offer.source,
                    'owner': owned.owner, 'why': healing_tables._why_overruled(attribute.rule, offer, chosen)}) -%}
            {%- endif -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(overruled) -}}
{%- endmacro %}

{% macro _why_overruled(rule, offer, chosen) -%}
    {%- if offer.value is none and rule != 'first_present' -%}
        {{- return(rule ~ ': NULL does not count') -}}
    {%- endif -%}
    {%- if rule.startswith('most_recent') -%}
        {{- return(rule ~ (': starts at the same time, listed before it' if offer.began == chosen.began
            else ': starts later')) -}}
    {%- endif -%}
    {{- return(rule ~ ': listed before it') -}}
{%- endmacro %}

{% macro _explained_versions(spec, found) -%}
    {%- set versions = [] -%}
    {%- for version in found.version -%}
        {%- do versions.append({
            'version': version.version,
            'valid_from': healing_tables._display_moment(spec, version.valid_from),
            'valid_to': healing_tables._display_moment(spec, version.valid_to),
            'slices': version.first_slice ~ (' to ' ~ version.last_slice if version.last_slice > version.first_slice
                else ''),
            'opened_by': healing_tables._opened_by(spec, found, version)}) -%}
    {%- endfor -%}
    {{- return(versions) -}}
{%- endmacro %}

{#- The versioned attributes that differ from the slice before. -#}
{% macro _opened_by(spec, found, version) -%}
    {%- if version.first_slice == 1 -%} {{ return('first seen') }} {%- endif -%}
    {%- set before = found.slice | selectattr('slice', 'equalto', version.first_slice - 1) | first -%}
    {%- set opening = found.slice | selectattr('slice', 'equalto', version.first_slice) | first -%}
    {%- if before.valid_to != opening.valid_from -%} {{ return('return after a gap') }} {%- endif -%}
    {%- set changed = [] -%}
    {%- for attribute in spec.attributes -%}
        {%- if attribute.scd_type in [2, 6] and before.owned[loop.index0].value != opening.owned[loop.index0].value -%}
            {%- do changed.append(attribute.name) -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(changed | join(', ')) -}}
{%- endmacro %}
