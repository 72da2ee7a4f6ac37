{#- Guards: a build or a capture that would remove too much is refused. -#}

{#-
    Refuse a build that would end too many keys or lose too many closed versions, if there are at least 20 current keys;
    and a build without rows, unless the stored table is also empty. `figures`: candidate_versions, current_keys,
    ended_keys, closed_versions, lost_versions; stored_versions if something is stored; is_first if nothing is.
-#}
{% macro _check_guards(build, figures) -%}
    {%- if healing_tables._is_partial_run() -%} {{ return(none) }} {%- endif -%}
    {#- a heal has few keys and may end all of them -#}
    {%- set is_empty = figures.candidate_versions == 0 and figures.get('stored_versions') != 0
        and build.log_row.mode != 'heal' -%}
    {%- if figures.current_keys < 20 and not is_empty -%} {{ return(none) }} {%- endif -%}
    {%- set ratios = build.settings.ratios -%}
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
    {%- do healing_tables._refuse(build, mistakes) if mistakes -%}
{%- endmacro %}

{#- The two ratios: from a variable of the run, or else from the option. -#}
{% macro _removal_ratios(mistakes) -%}
    {%- set ratios = {} -%}
    {%- for option, default in {'max_removed_keys_ratio': 0.5, 'max_removed_versions_ratio': 0.1}.items() -%}
        {%- do ratios.update({option: healing_tables._check_ratio(mistakes, option,
            var(option, healing_tables._option(option, none, default)))}) -%}
    {%- endfor -%}
    {{- return(ratios) -}}
{%- endmacro %}

{% macro _check_ratio(mistakes, option, ratio) -%}
    {%- if ratio is not number or ratio is boolean or ratio < 0 or ratio > 1 -%}
        {%- do healing_tables._mistake(mistakes, option, 'a number from 0 to 1', ratio | tojson,
            'write a share such as 0.2; 1 switches this guard off') -%}
    {%- endif -%}
    {{- return(ratio) -}}
{%- endmacro %}

{#- Raise the error of a refused build. `has_candidate`: there is one to inspect. `reasons`: for the log. -#}
{% macro _refuse(build, mistakes, has_candidate=true, head='refused', reasons=none) -%}
    {%- set found = [] -%}
    {%- for mistake in mistakes -%} {%- do found.append(mistake.argument ~ ': ' ~ mistake.got) -%} {%- endfor -%}
    {%- set kept = healing_tables._keep_for_a_look(build) if has_candidate else none -%}
    {%- do healing_tables._end_build(build, 'refused', {'reason': (reasons or found) | join('; ')}) -%}
    {%- do healing_tables._raise_error(
        config.get('materialized') ~ ' ' ~ build.target ~ ': ' ~ head ~ '; the target is unchanged.', mistakes,
        'To look at it: ' ~ kept if kept is not none else none) -%}
{%- endmacro %}
