{#- What a merge as SQL is given, and what it refuses. -#}

{#-
    spec        the options that are set, see _merge_spec()
    at, micros  the moment of the batch: as given, or none; and as SQL, in microseconds
    is_full     keys that the batch lacks end
    reason      why the merge is one as SQL, for the log
    format, session   as in _build_settings()
-#}
{% macro _sql_merge_settings(target, existing, obstacle) -%}
    {%- set mistakes = [] -%}
    {%- set spec = healing_tables._merge_spec(mistakes, target) -%}
    {%- set at = healing_tables._option('at', none) -%}
    {%- do healing_tables._check_moment(mistakes, 'at', at) if at is not none -%}
    {%- set format = healing_tables._merge_format(mistakes, existing) -%}
    {%- do healing_tables._check_can_merge_as_sql(mistakes, spec, format, obstacle) -%}
    {%- for option, choices in {'on_tie': ['error', 'greatest'], 'on_late': ['error', 'set_aside'],
        'missing_columns': ['error', 'keep', 'null'], 'full_batch': [true, false],
        'current_while_deleted': [true, false], 'deleted_rows': [true, false],
        'null_keys': ['set_aside', 'keep']}.items() if option in spec -%}
        {%- do healing_tables._check_choice(mistakes, option, spec[option], choices) -%}
    {%- endfor -%}
    {%- do healing_tables._check_ratio(mistakes, 'max_removed_keys_ratio', spec.get('max_removed_keys_ratio', 0.5)) -%}
    {%- do healing_tables._check_contract_of_batch(mistakes) -%}
    {%- do healing_tables._raise_mistakes('healing_merge', mistakes) -%}
    {%- do healing_tables._ensure_schema(target, healing_tables._side_table_location(target)) -%}
    {{- return({
        'spec': spec, 'at': at, 'format': format, 'session': healing_tables._session_settings(),
        'micros': healing_tables._micros_constant(at) if at is not none
            else run_query('select unix_micros(now()) as moment').rows[0]['moment'] ~ 'L',
        'is_full': spec.get('full_batch') is sameas true and not healing_tables._is_partial_run(),
        'reason': 'as SQL: the library needs ' ~ obstacle.wanted ~ '; got ' ~ obstacle.got}) -}}
{%- endmacro %}

{#- Options that only the library has. -#}
{% macro _check_can_merge_as_sql(mistakes, spec, format, obstacle) -%}
    {%- set only = {
        'change_log: false': spec.get('change_log') is sameas false,
        'an attribute of type 4 in ' ~ format.name: format.commits.names_folders
            and 4 in healing_tables._scd_types(spec)} -%}
    {%- for option, is_set in only.items() if is_set -%}
        {%- do healing_tables._mistake(mistakes, option, obstacle.wanted ~ ' for this option', obstacle.got,
            obstacle.remedy ~ '; or leave it out') -%}
    {%- endfor -%}
{%- endmacro %}
