{#- The rows loaded before a mark that a heal reads again, since some may have been committed late. -#}

{% macro _overlap_start(until) -%}
    {{- return(until ~ ' - ' ~ healing_tables._overlap_micros()) -}}
{%- endmacro %}

{% macro _overlap_micros() -%}
    {{- return(((healing_tables._overlap_seconds([]) | float) * 1000000) | int) -}}
{%- endmacro %}

{#- The column stands alone where its type allows it, so that files can be skipped. -#}
{% macro _compare_loaded_at(scan, operator, micros) -%}
    {{- return(scan.loaded_column ~ ' ' ~ operator ~ ' ' ~ healing_tables._from_micros(micros, 'timestamp')
        if scan.loaded_type == 'timestamp'
        else scan.loaded_at ~ ' ' ~ operator ~ ' ' ~ micros) -}}
{%- endmacro %}

{% macro _overlap_seconds(mistakes) -%}
    {{- return(healing_tables._interval_seconds(mistakes, 'overlap',
        healing_tables._option('overlap', none, '1 hour'))) -}}
{%- endmacro %}

{#- A time that is still to come would hide all that is loaded until then. -#}
{% macro _is_past(scan) -%}
    {{- return(healing_tables._compare_loaded_at(scan, '<=', 'unix_micros(now())')) -}}
{%- endmacro %}

{#- Rows without a time are always read: they may be new. -#}
{% macro _where_loaded_since(scan, floor) -%}
    {%- if floor is none -%} {{ return('') }} {%- endif -%}
    {{- return(' where ' ~ healing_tables._compare_loaded_at(scan, '>=',
        healing_tables._overlap_start(healing_tables._instant_micros(floor))) ~ ' or ' ~ scan.loaded_column
        ~ ' is null') -}}
{%- endmacro %}

{% macro _is_in_overlap(scan, until) -%}
    {%- set until = healing_tables._instant_micros(until) -%}
    {{- return(healing_tables._compare_loaded_at(scan, '>=', healing_tables._overlap_start(until)) ~ ' and '
        ~ healing_tables._compare_loaded_at(scan, '<=', until)) -}}
{%- endmacro %}

{#- Number and hash of the rows that count in the time before `until` that is read twice, as an aggregate. -#}
{% macro _overlap_hash(scan, until) -%}
    {%- if until is none -%} {{ return("'none'") }} {%- endif -%}
    {%- set is_in = (scan.where if scan.is_row_local else 'true') ~ ' and '
        ~ healing_tables._is_in_overlap(scan, until) -%}
    {{- return('concat(count_if(' ~ is_in ~ "), ', ', coalesce(sum(if(" ~ is_in ~ ', cast('
        ~ healing_tables._row_hash_of_source(scan) ~ ' as decimal(20,0)), null)), 0))') -}}
{%- endmacro %}

{% macro _row_hash_of_source(scan) -%}
    {%- set row = scan['keys'] + [scan.at, scan.state or 'true']
        + ([scan.until] if scan.until is not none else []) -%}
    {{- return('xxhash64(' ~ (row | join(', ')) ~ ')') -}}
{%- endmacro %}
