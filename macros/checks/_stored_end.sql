{#- The open end of a stored table, from its groups of rows: see _end_groups.sql. -#}

{#- The open end: that of `given` if no row shows one. With `repairs`, several are allowed if the one that is given, or
    else the default, is one of them. -#}
{% macro _end_of_groups(mistakes, groups, given, repairs=false) -%}
    {%- set is_named = given.end != '(not given)' -%}
    {%- set pair = given.flags if given.flags is not none else [true, false] if given.flag_type == 'boolean'
        else [none, none] -%}
    {%- set has_flag = given.is_current is not none -%}
    {%- set flagged = [] -%}
    {%- set later = [] -%}
    {%- for group in groups -%}
        {%- if not has_flag or pair[1] is none or group.flag != pair[1] -%}
            {%- do flagged.append(group) -%}
            {%- if group.kind == 'later' and (not has_flag or (group.flag is not none
                and (pair[0] is none or group.flag == pair[0]))) -%}
                {%- do later.append(group) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set ends = healing_tables._open_ends(flagged) or healing_tables._open_ends(groups) -%}
    {%- set bounds = ((later | map(attribute='low') | list) + (later | map(attribute='high') | list)) | unique
        | sort -%}
    {%- set is_shared = bounds | length == 1 and later | map(attribute='flag') | unique | list | length == 1
        and later | map(attribute='rows') | sum > 1 -%}
    {%- if later and has_flag and not given.while_deleted and is_shared -%}
        {%- do ends.append({'value': bounds[0], 'rows': later | map(attribute='rows') | sum}) -%}
    {%- elif later and not ends and not is_named -%}
        {%- do healing_tables._mistake(
            mistakes, 'valid_to_current', 'an open end in the stored rows: NULL, or a moment from 2200-01-01 on, or '
            ~ 'one end in the future that several current rows share',
            'ends in the future that may be real: ' ~ (bounds | join(', ')), 'name the open end of the table') -%}
        {{- return(given.end) -}}
    {%- endif -%}
    {%- if not ends -%} {{ return(given.end) }} {%- endif -%}
    {%- set wanted = healing_tables._shown_end(given.end if is_named else '9999-12-31', given.to_type) -%}
    {%- set values = ends | map(attribute='value') | list -%}
    {%- if values | length > 1 and not (repairs and wanted in values) -%}
        {%- do healing_tables._mistake(
            mistakes, 'valid_to_current', 'one open end in all open rows',
            healing_tables._counted_values(ends),
            'update the table, so that all of these rows have one of them') -%}
    {%- elif is_named and wanted not in values -%}
        {%- do healing_tables._mistake(
            mistakes, 'valid_to_current', 'the open end that the stored rows have: '
            ~ healing_tables._counted_values(ends), wanted or 'NULL', 'leave it out, or name that one') -%}
    {%- elif not is_named and wanted not in values -%}
        {{- return(values[0]) -}}
    {%- endif -%}
    {{- return(given.end) -}}
{%- endmacro %}

{#- An open end as _end_groups shows it: none for NULL. -#}
{% macro _shown_end(end, type) -%}
    {%- if end is none -%} {{ return(none) }} {%- endif -%}
    {%- set day, time = healing_tables._parse_instant(end) -%}
    {%- if type == 'date' -%} {{ return(day ~ ' 00:00:00') }} {%- endif -%}
    {{- return(day ~ ' ' ~ (time.rstrip('0').rstrip('.') if '.' in time else time)) -}}
{%- endmacro %}

{#- The open ends [{value, rows}], the one with most rows first. -#}
{% macro _open_ends(groups) -%}
    {%- set found = [] -%}
    {%- for group in groups if group.kind == 'open' -%} {%- do found.append(group) -%} {%- endfor -%}
    {{- return(healing_tables._value_counts(found, 'high')) -}}
{%- endmacro %}

{% macro _value_counts(groups, field) -%}
    {%- set counts = [] -%}
    {%- for value in groups | map(attribute=field) | unique(case_sensitive=true) -%}
        {%- set rows = [] -%}
        {%- for group in groups -%}
            {%- if group[field] == value -%} {%- do rows.append(group.rows) -%} {%- endif -%}
        {%- endfor -%}
        {%- do counts.append({'value': value, 'rows': rows | sum}) -%}
    {%- endfor -%}
    {{- return(counts | sort(attribute='rows', reverse=true)) -}}
{%- endmacro %}

{% macro _counted_values(counts) -%}
    {%- set texts = [] -%}
    {%- for count in counts -%}
        {%- do texts.append(('NULL' if count.value is none else count.value) ~ ' in ' ~ count.rows
            ~ (' row' if count.rows == 1 else ' rows')) -%}
    {%- endfor -%}
    {{- return(texts | join(', ') or 'no rows') -}}
{%- endmacro %}
