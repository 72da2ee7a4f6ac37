{#- Guards, which users read about as limits: a build or a capture that would remove too much is refused. The same rule:
    operations/repair.sql; of a merge, check_guard in src/healing_tables/plan/validation.py. -#}

{#-
    Refuse a build that would end too many keys or lose too many closed versions, if there are at least 20 current keys;
    and a build without rows, unless the stored table is also empty. `figures`: candidate_versions, current_keys,
    ended_keys, closed_versions, lost_versions; stored_versions if something is stored; is_first if nothing is.
    `candidate`: see _refuse().
-#}
{% macro _check_guards(run, figures, candidate) -%}
    {%- if healing_tables._is_partial_run() -%} {{ return(none) }} {%- endif -%}
    {#- a run of few keys may end all of them -#}
    {%- set is_empty = figures.candidate_versions == 0 and figures.get('stored_versions') != 0
        and run.changed_keys is none -%}
    {%- if figures.current_keys < 20 and not is_empty -%} {{ return(none) }} {%- endif -%}
    {%- set ratios = run.settings.ratios -%}
    {%- set mistakes = [] -%}
    {%- set allowed = [] -%}
    {%- for option, got, of, wanted in [
        ('max_removed_keys_ratio', figures.ended_keys, figures.current_keys, ' of the current keys to end'),
        ('max_removed_versions_ratio', figures.lost_versions, figures.closed_versions,
            ' of the closed versions to be removed')]
        if got > of * ratios[option] -%}
        {%- do allowed.append(option ~ ': 1') -%}
        {%- do healing_tables._mistake(
            mistakes, option, 'at most ' ~ '%g' | format(ratios[option]) ~ wanted,
            got ~ ' of ' ~ of ~ ' (' ~ '%.2f' | format(got / of) ~ ')' ~ (', since the candidate is empty' if is_empty),
            'check the sources; if it is right, allow it once: ') -%}
    {%- endfor -%}
    {%- if is_empty and not mistakes and figures.is_first and ratios.max_removed_keys_ratio < 1 -%}
        {%- do allowed.append('max_removed_keys_ratio: 1') -%}
        {%- do healing_tables._mistake(
            mistakes, 'max_removed_keys_ratio', 'a candidate with rows', 'none',
            'check the sources; if it is right, allow it once: ') -%}
    {%- endif -%}
    {%- for mistake in mistakes -%}
        {%- do mistake.update({'remedy': mistake.remedy ~ "--vars '{" ~ (allowed | join(', ')) ~ "}'"}) -%}
    {%- endfor -%}
    {%- do healing_tables._refuse(run, mistakes, candidate) if mistakes -%}
{%- endmacro %}
