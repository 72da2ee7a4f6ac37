{#- What a repair checks before it writes, and how it ends. -#}

{#- The checks on the rows as they will be; a table may have ended keys and gaps. Returns what failed. -#}
{% macro _check_repaired(about, rows, is_whole) -%}
    {%- set checks = {'single_current': {'at_most_one': true}, 'no_overlaps': {}, 'valid_order': {}} -%}
    {%- if about.tracked -%} {%- do checks.update({'no_consecutive_duplicates': {}}) -%} {%- endif -%}
    {%- do checks.update({'no_gaps': {}}) -%}
    {%- set tolerated = ['no_gaps'] + ([] if healing_tables._joins_repeats(about) else ['no_consecutive_duplicates']) -%}
    {%- set summary = healing_tables._read_row(healing_tables._check_summary(dict(about, relation='(\n' ~ rows ~ '\n)', checks=checks))) -%}
    {%- set failed = [] -%}
    {%- set told = [] -%}
    {%- for check in checks -%}
        {%- do told.append(check ~ ' ' ~ summary[check]) -%}
        {%- if summary[check] > 0 and check not in tolerated -%}
            {%- do failed.append(check ~ ': ' ~ summary[check] ~ ' failing, in keys such as ' ~ summary[check ~ '_keys']) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._say('repair', about.relation, 'violations afterwards' ~ ('' if is_whole else ' in the keys that change') ~ ': ' ~ (told | join(', '))) -%}
    {{- return(failed) -}}
{%- endmacro %}

{% macro _told_repair(found, dry_run) -%}
    {%- if found.keys_affected == 0 -%} {{ return('nothing to repair, nothing was written') }} {%- endif -%}
    {{- return(
        ('would change ' if dry_run else 'changes ') ~ found.rows_changed ~ ' rows and ' ~ ('remove ' if dry_run else 'removes ')
        ~ found.rows_removed ~ ', of which ' ~ found.rows_set_aside ~ ' set aside, in ' ~ found.keys_affected ~ ' keys') -}}
{%- endmacro %}

{% macro _repair_ratio(given) -%}
    {%- set mistakes = [] -%}
    {%- set ratios = healing_tables._removal_ratios(mistakes) -%}
    {%- set ratio = ratios.max_removed_keys_ratio if given is none else given -%}
    {%- if ratio is not number or ratio is boolean or ratio < 0 or ratio > 1 -%}
        {%- do healing_tables._mistake(mistakes, 'max_removed_keys_ratio', 'a number from 0 to 1', ratio | tojson, '1 allows everything') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes('repair', mistakes) -%}
    {{- return(ratio) -}}
{%- endmacro %}

{#- Only a table with commits can take a part of its rows in one step. -#}
{% macro _check_can_repair(relation, stored, about) -%}
    {%- set mistakes = [] -%}
    {%- if stored.get('provider') != 'delta' -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a Delta table, which takes a repair in one commit', relation ~ ', ' ~ (stored.get('provider') or 'a view'),
            'make one of it: create table ... using delta as select * from ' ~ relation ~ '; repair that; dry_run: true works as it is') -%}
    {%- endif -%}
    {%- for name in ['set_aside_reason', 'set_aside_at', 'set_aside_by'] if healing_tables._find(name, about.columns) is not none -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'no column ' ~ name ~ ', which the side table has', name, 'rename that column') -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes('repair', mistakes) -%}
{%- endmacro %}

{% macro _refuse_repair(about, outcome, wanted, got, remedy) -%}
    {%- do outcome.update({'status': 'refused', 'rows_changed': 0, 'rows_removed': 0, 'keys_affected': 0, 'version_after': outcome.version_before}) -%}
    {%- do outcome.update({'reason': 'wanted ' ~ wanted ~ ', got ' ~ got}) -%}
    {%- do healing_tables._end_of_repair(outcome) -%}
    {{- exceptions.raise_compiler_error(
        'healing_tables.repair ' ~ about.relation ~ ': refused; the table is as it was.\n  wanted: ' ~ wanted
        ~ '\n  got:    ' ~ got ~ '\n  remedy: ' ~ remedy) -}}
{%- endmacro %}

{#- The end of every repair that may write, published, unchanged or refused: told, and a row in the log. -#}
{% macro _end_of_repair(outcome) -%}
    {%- do healing_tables._say('repair', outcome.target, 'status ' ~ outcome.status ~ ', version ' ~ outcome.version_before
        ~ (' -> ' ~ outcome.version_after if outcome.version_after != outcome.version_before)) -%}
    {%- set log = healing_tables._log_of(outcome.target, healing_tables._option('log_schema', none)) -%}
    {%- do healing_tables._write_log(healing_tables._ready_log(outcome.target, log, 'delta'), dict(
        outcome, dimension=outcome.target.identifier, relation=outcome.target | string, finished_at=healing_tables._now(),
        invocation_id=invocation_id)) -%}
{%- endmacro %}
