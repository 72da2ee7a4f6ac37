{#- The flag of the current row in a table of versions, and its open end: see _guess_history(). -#}

{% macro _names_of_flags() -%}
    {{- return(['is_current', 'current_flag', 'is_active', 'active_flag', 'row_is_current', 'current_row',
        'current_ind', 'current_indicator', 'current_record', 'is_latest', 'latest_flag', 'scd_active', 'scd_current',
        'curr_flag',
        'dw_is_current']) -}}
{%- endmacro %}

{% macro _check_adopted_flag(mistakes, history) -%}
    {%- set given = history.given -%}
    {%- if given.is_current and history.current is none -%}
        {%- do healing_tables._mistake(mistakes, 'is_current', 'a column of ' ~ history.relation ~ ', or false',
            given.is_current, 'columns are ' ~ (history.columns | join(', '))) -%}
    {%- endif -%}
    {%- if given.current_values is not none -%}
        {%- do healing_tables._check_two_values(mistakes, 'current_values', given.current_values) -%}
    {%- endif -%}
    {%- if given.valid_to_current is not none and healing_tables._parse_instant(given.valid_to_current) is none -%}
        {%- do healing_tables._mistake(mistakes, 'valid_to_current', "a moment in UTC such as '2999-12-31'",
            given.valid_to_current, 'correct the text') -%}
    {%- endif -%}
{%- endmacro %}

{#- An attribute with the two values of a flag, if it is named like one, or has one of them in all open rows and the
    other one in all others; or none. -#}
{% macro _flag_by_values(history) -%}
    {%- set tested, candidates, is_open = [], [], healing_tables._is_open_end(history) -%}
    {%- for name in history.attributes if modules.re.fullmatch('boolean|string|.*char.*|.*int|decimal.*',
        history.columns[name]) -%}
        {%- set value = 'lower(cast(' ~ healing_tables._quoted(name) ~ ' as string))' -%}
        {%- set values = 'collect_set(' ~ value ~ ') filter (where ' -%}
        {%- do candidates.append(name) -%}
        {%- set is_named = name | lower in ['cur', 'curr', 'current', 'active', 'latest'] -%}
        {%- do tested.append('(' ~ is_named ~ ' or size(' ~ values ~ is_open ~ ')) = 1 and size(' ~ values ~ 'not '
            ~ is_open ~ ')) = 1) and size(collect_set(' ~ value ~ ')) = 2 and count(' ~ value
            ~ ') = count(*) and count_if(' ~ value
            ~ " not in ('y', 'n', 'yes', 'no', 'true', 'false', 't', 'f', '1', '0')) = 0 as is_flag_" ~ loop.index) -%}
    {%- endfor -%}
    {%- if not candidates -%} {{ return(none) }} {%- endif -%}
    {%- set row = run_query('select ' ~ (tested | join(', ')) ~ ' from ' ~ history.relation).rows[0] -%}
    {%- for name in candidates -%}
        {%- if row['is_flag_' ~ loop.index] -%} {{ return(name) }} {%- endif -%}
    {%- endfor -%}
    {{- return(none) -}}
{%- endmacro %}

{#- Whether the end of a row is open: NULL, the given open end or later, or else a year from 2100 on. -#}
{% macro _is_open_end(history) -%}
    {%- set end, given = healing_tables._quoted(history.end), history.given.valid_to_current -%}
    {{- return('(' ~ end ~ ' is null or ' ~ ('year(' ~ end ~ ') >= 2100' if given is none
        else end ~ ' >= ' ~ healing_tables._open_end(given, history.columns[history.end])) ~ ')') -}}
{%- endmacro %}

{#- The two values of the flag. -#}
{% macro _adopted_flags(history) -%}
    {{- return(history.given.current_values or [history.facts.flag_open, history.facts.flag_closed]) -}}
{%- endmacro %}
