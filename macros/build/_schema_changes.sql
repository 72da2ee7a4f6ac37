{#-
    Check columns that are added, removed or changed in type. Changes that lose no values are allowed: a new column, or
    a type that holds every old value. on_schema_change: fail refuses these, too; sync_all_columns and --full-refresh
    allow everything.
-#}
{% macro _check_schema_changes(run, columns) -%}
    {%- set stored_columns, added = run.stored.columns, [] -%}
    {%- set widened = [] -%}
    {%- set lost = [] -%}
    {%- for name, type in columns.items() -%}
        {%- set stored = healing_tables._find_column(name, stored_columns) -%}
        {%- set text = 'column ' ~ name ~ ' becomes ' ~ type ~ ', it was ' ~ stored_columns.get(stored) -%}
        {%- if stored is none -%}
            {%- do added.append('column ' ~ name ~ ' (' ~ type ~ ') is new: added to all versions') -%}
        {%- elif not healing_tables._type_holds(type, stored_columns[stored]) -%} {%- do lost.append(text) -%}
        {%- elif stored_columns[stored] != type -%} {%- do widened.append(text) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for name, type in stored_columns.items() if healing_tables._find_column(name, columns) is none -%}
        {%- do lost.append('column ' ~ name ~ ' (' ~ type ~ ') is removed') -%}
    {%- endfor -%}
    {%- for text in added + widened + lost -%}
        {%- do healing_tables._log_progress(run.target, text) -%}
    {%- endfor -%}
    {%- set option = config.get('on_schema_change') or 'ignore' -%}
    {%- set refused = {'fail': added + widened + lost, 'append_new_columns': widened + lost,
        'ignore': lost}.get(option, []) -%}
    {%- if refused and not flags.FULL_REFRESH -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._mistake(
            mistakes, 'on_schema_change: ' ~ option, {
                'fail': 'the stored columns', 'append_new_columns': 'the stored columns, or more',
                'ignore': 'the stored columns, or more, in types that hold every stored value'}[option],
                refused | join('; '),
            'correct the model; or set on_schema_change: sync_all_columns; or run it once with --full-refresh') -%}
        {%- do healing_tables._refuse(run, mistakes) -%}
    {%- endif -%}
{%- endmacro %}
