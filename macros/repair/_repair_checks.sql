{#- What a repair checks before it writes, and how it ends. -#}

{#- Check the rows after the repair; ended keys and gaps are allowed. Returns the failed checks. -#}
{% macro _check_repaired(stored_table, rows, is_whole) -%}
    {%- set checks = dict(healing_tables._default_checks(true, true, stored_table.tracked | length > 0), no_gaps={}) -%}
    {%- set tolerated = ['no_gaps'] + ([] if healing_tables._merges_repeats(stored_table)
        else ['no_consecutive_duplicates']) -%}
    {%- set summary = healing_tables._read_figures(
        healing_tables._check_summary(dict(stored_table, relation='(\n' ~ rows ~ '\n)', checks=checks))) -%}
    {%- set failed = [] -%}
    {%- set counts = [] -%}
    {%- for check in checks -%}
        {%- do counts.append(check ~ ' ' ~ summary[check]) -%}
        {%- if summary[check] > 0 and check not in tolerated -%}
            {%- do failed.append(check ~ ': ' ~ summary[check] ~ ' failing, in keys such as '
                ~ summary[check ~ '_keys']) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do healing_tables._report('repair', stored_table.relation, 'violations afterwards'
        ~ ('' if is_whole else ' in the keys that change') ~ ': ' ~ (counts | join(', '))) -%}
    {{- return(failed) -}}
{%- endmacro %}

{% macro _repair_summary(found, dry_run) -%}
    {%- if found.keys_affected == 0 -%} {{ return('nothing to repair, nothing was written') }} {%- endif -%}
    {{- return(
        ('would change ' if dry_run else 'changes ') ~ healing_tables._counted(found.rows_changed, 'row') ~ ' and '
        ~ ('remove ' if dry_run else 'removes ')
        ~ found.rows_removed ~ ', of which ' ~ found.rows_set_aside ~ ' set aside, in '
        ~ healing_tables._counted(found.keys_affected, 'key')) -}}
{%- endmacro %}

{% macro _repair_ratio(given) -%}
    {%- set mistakes = [] -%}
    {%- set ratio = healing_tables._removal_ratios(mistakes).max_removed_keys_ratio if given is none
        else healing_tables._check_ratio(mistakes, 'max_removed_keys_ratio', given) -%}
    {%- do healing_tables._raise_mistakes('repair', mistakes) -%}
    {{- return(ratio) -}}
{%- endmacro %}

{#- Only a table with commits can be partly rewritten in one step. -#}
{% macro _check_can_repair(relation, stored, stored_table) -%}
    {%- set mistakes = [] -%}
    {%- set format = healing_tables._stored_format(stored) -%}
    {%- if format is none or not format.has_commits -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'a table in ' ~ (healing_tables._formats_with('has_commits') | join(' or '))
            ~ ', which takes a repair in one commit',
            relation ~ ', ' ~ (stored.get('provider') or 'a view'),
            'copy it: create table ... using delta as select * from ' ~ relation
            ~ '; repair the copy; dry_run: true works without a copy') -%}
    {%- endif -%}
    {%- for name in ['set_aside_reason', 'set_aside_at', 'set_aside_by']
        if healing_tables._find_column(name, stored_table.columns) is not none -%}
        {%- do healing_tables._mistake(
            mistakes, 'dimension', 'no column ' ~ name ~ ', which the side table has', name, 'rename that column') -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes('repair', mistakes) -%}
{%- endmacro %}

{% macro _refuse_repair(stored_table, outcome, wanted, got, remedy) -%}
    {%- do outcome.update({'status': 'refused', 'rows_changed': 0, 'rows_removed': 0, 'keys_affected': 0,
        'version_after': outcome.version_before}) -%}
    {%- do outcome.update({'reason': 'wanted ' ~ wanted ~ ', got ' ~ got}) -%}
    {%- do healing_tables._end_operation(outcome) -%}
    {%- set mistakes = [] -%}
    {%- do healing_tables._mistake(mistakes, 'repair', wanted, got, remedy) -%}
    {%- do healing_tables._raise_error('healing_tables.repair ' ~ stored_table.relation
        ~ ': refused; the table is unchanged.', mistakes) -%}
{%- endmacro %}
