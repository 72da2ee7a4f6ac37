{#- Stored columns that get a wider type (on_schema_change: sync_all_columns). The library has the same rules in
    definition/stored_layout.py. -#}

{#- Check that the stored type of a column holds the values of the batch. If it may become wider, the column gets the
    type of the batch. -#}
{% macro _check_stored_type(mistakes, column, is_key, format) -%}
    {%- set given = healing_tables._plain_type(column.given) -%}
    {%- if healing_tables._fits_stored(given, column.type) -%} {{ return(none) }} {%- endif -%}
    {%- set wanted, remedy = 'the stored type ' ~ column.type, 'cast it in the batch' -%}
    {%- if healing_tables._is_wider(given, column.type) -%}
        {%- if is_key and healing_tables._scale_of(given) != healing_tables._scale_of(column.type) -%}
            {%- set wanted = wanted ~ ': the hash of a key contains its digits' -%}
        {%- elif not format.can_widen(column.type, given) -%}
            {%- set remedy = 'copy the rows to a new table with the wider type, and rename it: this type of a column '
                'cannot be changed in place' -%}
        {%- elif config.get('on_schema_change') != 'sync_all_columns' -%}
            {%- set remedy = 'set on_schema_change: sync_all_columns, which widens the stored column' -%}
        {%- else -%}
            {%- do column.update({'type': given}) -%}
            {{- return(none) -}}
        {%- endif -%}
    {%- endif -%}
    {%- do healing_tables._mistake(mistakes, column.name, wanted, 'the type ' ~ column.given ~ ' in the batch', remedy)
        -%}
{%- endmacro %}

{#- The stored columns whose type is to become another one, {column: new type}. Those that an attribute adds come first:
    if a merge is killed in between, the next one finds the attribute as it was. -#}
{% macro _wider_columns(spec, layout, stored_columns) -%}
    {%- set wider = {} -%}
    {%- for column in layout['keys'] + layout.attributes -%}
        {%- set names = [] -%}
        {%- set options = dict(column.get('options') or {'scd_type': 0}, name=column.name) -%}
        {%- for added in healing_tables._companion_columns(options) if not added.endswith('_changed_at') -%}
            {%- do names.append(healing_tables._companion(spec, column, added, stored_columns)) -%}
        {%- endfor -%}
        {%- for name in names + [column.name] if name in stored_columns
            and healing_tables._is_wider(column.type, stored_columns[name]) -%}
            {%- do wider.update({name: column.type}) -%}
        {%- endfor -%}
    {%- endfor -%}
    {{- return(wider) -}}
{%- endmacro %}

{#- Change the types, right before rows are written. `narrower`: of tables beside the dimension, [{relation, columns
    {name: new type}}]. -#}
{% macro _widen_types(run, narrower) -%}
    {%- for table in [{'relation': run.existing, 'columns': run.wider}] + narrower if table.columns -%}
        {%- for column, type in table.columns.items() -%}
            {%- do healing_tables._log_progress(run.target, 'column ' ~ column ~ ' of ' ~ table.relation ~ ' becomes '
                ~ type) -%}
        {%- endfor -%}
        {%- do run.format.widen(table.relation, table.columns) -%}
    {%- endfor -%}
{%- endmacro %}
