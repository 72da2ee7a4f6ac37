{#-
    Leave erased keys (see spec/_erased_keys.sql) out of the sources of a call. Each source then has another relation,
    and all_rows (the one before) and erased (the rows that are left out), both as SQL for a `from`.
-#}
{% macro _leave_out_erased(spec) -%}
    {%- set mistakes = [] -%}
    {%- set own = healing_tables._built_relation() -%}
    {%- set erased = healing_tables._erased(mistakes, own) if own is not none else none -%}
    {%- for source in (spec.sources if erased is not none else []) -%}
        {%- set columns = {} -%}
        {%- for key in spec.key_columns -%}
            {%- do columns.update({key.name: {'type': key.type,
                'expression': healing_tables._key_expression(spec, source, loop.index0)}}) -%}
        {%- endfor -%}
        {%- set join = healing_tables._erased_join(mistakes, erased, columns,
            healing_tables._source_moment(source)) -%}
        {%- set rows = source.relation ~ (' as ' ~ healing_tables._quoted(source.alias) if source.alias is not none) -%}
        {%- do source.update({
            'all_rows': source.relation, 'erased': rows ~ ' left semi join ' ~ join,
            'relation': healing_tables._without_erased(rows, join)
                ~ (' as ' ~ healing_tables._quoted(source.alias) if source.alias is not none)}) -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes(spec.macro, mistakes) -%}
{%- endmacro %}
