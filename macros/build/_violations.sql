{#- Violations of a candidate: detected while its rows are computed, then counted and reported in an error. -#}

{#-
    Run a statement that writes the candidate, and that raises an error if a row violates a check or a condition (see
    _checked_select). A SQL script catches that error; without SQL scripting, the rows are checked first.
    Returns conflicts, as _run_or_conflict does.
-#}
{% macro _run_checked(build, name, statement_text) -%}
    {%- set can_fail = healing_tables._violations_of_row(build) is not none -%}
    {%- if can_fail and healing_tables._has_scripts(build.settings.session) -%}
        {%- set caught = healing_tables._run_script(name, statement_text, {
            "sqlstate '2D521'": healing_tables._overtaken(), "sqlstate '58030'": 'a task failed',
            "sqlstate 'P0001'": 'an error was raised'}) -%}
        {%- if caught == healing_tables._overtaken() -%} {{ return([caught]) }} {%- endif -%}
        {%- if caught is none -%}
            {%- do healing_tables._report_passed_checks(build) -%}
            {{- return([]) -}}
        {%- endif -%}
    {%- endif -%}
    {%- do healing_tables._refuse_violations(build) if can_fail -%}
    {%- do healing_tables._report_passed_checks(build) -%}
    {#- after another error, such as a full disk, this raises it again -#}
    {{- return(healing_tables._run_or_conflict(build, name, statement_text)) -}}
{%- endmacro %}

{#- Refuse the build if rows of its query have violations. All violations are counted, with some keys. -#}
{% macro _refuse_violations(build) -%}
    {%- set settings = build.settings -%}
    {%- set found = healing_tables._count_violations(build) -%}
    {%- set mistakes, reasons = [], [] -%}
    {%- for condition in build.conditions -%}
        {%- set broken = found['broken_' ~ loop.index] -%}
        {%- if broken > 0 -%}
            {%- set examples = healing_tables._equal_keys_of_candidate(build).examples if condition.of_all is defined
                else '' -%}
            {%- do healing_tables._mistake(mistakes, condition.argument, condition.wanted,
                condition.got | replace('{rows}', healing_tables._counted(broken, 'row')) ~ examples,
                condition.remedy) -%}
            {%- do reasons.append(condition.argument ~ ': ' ~ mistakes[-1].got) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set failed, lines = [], [] -%}
    {%- for check in settings.checks -%}
        {%- do build.log_row.checks.update({check: found[check]}) -%}
        {%- if found[check] > 0 -%}
            {%- do failed.append(check) -%}
            {%- do lines.append(check ~ ': ' ~ found[check] ~ ' failing, in keys such as ' ~ found[check ~ '_keys']) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- set head = 'refused' -%}
    {%- if failed -%}
        {%- set head = (failed | length) ~ ' of ' ~ (settings.checks | length) ~ ' checks failed' -%}
        {%- do healing_tables._mistake(mistakes, lines | join('\n  '), 'no violation', head,
            "correct the sources or the model, or set meta.healing_tables.checks, e.g. {'" ~ failed[0]
            ~ "': false}") -%}
        {%- do reasons.append('failed ' ~ (failed | join(', '))) -%}
    {%- endif -%}
    {%- do healing_tables._refuse(build, mistakes, true, head, reasons) if mistakes -%}
{%- endmacro %}

{#- Report once the checks that all rows have passed. -#}
{% macro _report_passed_checks(build) -%}
    {%- if build.get('is_checked') -%} {{ return(none) }} {%- endif -%}
    {%- do build.update({'is_checked': true}) -%}
    {%- set checks = build.settings.checks -%}
    {%- for check in checks -%} {%- do build.log_row.checks.update({check: 0}) -%} {%- endfor -%}
    {%- do healing_tables._log_progress(build.target, 'passed ' ~ (checks | join(', ')) if checks
        else 'not checked: valid_from or valid_to is left out, or every check is off') -%}
{%- endmacro %}
