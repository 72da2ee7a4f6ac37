{#- Violations of a candidate: detected while its rows are computed, then counted and reported in an error. -#}

{#-
    Run a statement that writes the candidate, and that raises an error if a row violates a check or a condition (see
    _checked_select). A SQL script catches that error; without SQL scripting, the rows are checked first.
    Returns conflicts, as _run_or_conflict does.
-#}
{% macro _run_checked(run, candidate, name, statement_text) -%}
    {%- set can_fail = healing_tables._violations_of_row(run.settings, candidate) is not none -%}
    {%- if can_fail and healing_tables._has_scripts(run.settings.session) -%}
        {%- set caught = healing_tables._run_script(name, statement_text, {
            'overtaken': healing_tables._overtaken(), 'task_failed': "sqlstate '58030'",
            'raised': "sqlstate 'P0001'"}) -%}
        {%- if caught in [none, 'overtaken'] -%} {{ return(healing_tables._conflicts_of(caught)) }} {%- endif -%}
    {%- endif -%}
    {%- do healing_tables._refuse_violations(run, candidate) if can_fail -%}
    {#- after another error, such as a full disk, this raises it again -#}
    {{- return(healing_tables._run_or_conflict(run, name, statement_text)) -}}
{%- endmacro %}

{#- Refuse the build if rows of its query have violations. All violations are counted, with some keys. -#}
{% macro _refuse_violations(run, candidate) -%}
    {%- set found = healing_tables._count_violations(run, candidate) -%}
    {%- set numbers = dict(candidate.figures.get('checks') or {}) -%}
    {%- set mistakes, reasons = [], [] -%}
    {%- for condition in candidate.conditions -%}
        {%- set broken = found['broken_' ~ loop.index] -%}
        {%- if broken > 0 -%}
            {%- set equal = healing_tables._equal_keys_of_candidate(run, candidate)
                if condition.of_all is defined else {'examples': '', 'keys': none} -%}
            {%- do healing_tables._mistake(mistakes, condition.argument, condition.wanted,
                condition.got | replace('{rows}', healing_tables._counted(broken, 'row')) ~ equal.examples,
                condition.remedy, keys=equal['keys']) -%}
            {%- do reasons.append(healing_tables._logged_mistake(mistakes[-1])) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set failed, lines = [], [] -%}
    {%- for check in candidate.checks -%}
        {%- do numbers.update({check: found[check]}) -%}
        {%- if found[check] > 0 -%}
            {%- do failed.append(check) -%}
            {%- do lines.append(check ~ ': ' ~ found[check] ~ ' failing, in keys such as ' ~ found[check ~ '_keys']) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set head = 'refused' -%}
    {%- if failed -%}
        {%- set head = (failed | length) ~ ' of ' ~ (candidate.checks | length) ~ ' checks failed' -%}
        {%- do healing_tables._mistake(mistakes, lines | join('\n  '), 'no violation', head,
            "correct the sources or the model, or set meta.healing_tables.checks, e.g. {'" ~ failed[0]
            ~ "': false}") -%}
        {%- do reasons.append('failed ' ~ (failed | join(', '))) -%}
    {%- endif -%}
    {%- do healing_tables._refuse(run, mistakes, dict(candidate, figures=dict(candidate.figures, checks=numbers)), head,
        reasons) if mistakes -%}
{%- endmacro %}

{#- The candidate whose rows have passed the checks, which is reported once. -#}
{% macro _passed_checks(run, candidate) -%}
    {%- if candidate.is_checked -%} {{ return(candidate) }} {%- endif -%}
    {%- set numbers = {} -%}
    {%- for check in candidate.checks -%} {%- do numbers.update({check: 0}) -%} {%- endfor -%}
    {%- do healing_tables._log_progress(run.target, 'passed ' ~ (candidate.checks | join(', ')) if candidate.checks
        else 'not checked: valid_from or valid_to is left out, or every check is off') -%}
    {{- return(dict(candidate, is_checked=true, figures=dict(candidate.figures, checks=numbers))) -}}
{%- endmacro %}
