{#- Mistakes in a call are collected and raised together, before any SQL runs. -#}

{#- `keys`: the examples in `got`, with '; ' between them: the log has their hashes instead. -#}
{% macro _mistake(mistakes, argument, wanted, got, remedy, keys=none) -%}
    {%- do mistakes.append({'argument': argument, 'wanted': wanted, 'got': got, 'remedy': remedy, 'keys': keys}) -%}
{%- endmacro %}

{#- A mistake for the log, which names no key: `key = 1002 at 2024-05-01` becomes `key <md5 of 'key = 1002'> at ..`. -#}
{% macro _logged_mistake(mistake) -%}
    {%- set text, keys = namespace(got=mistake.got), [] -%}
    {%- for example in (mistake.get('keys') or '').split('; ') if example -%}
        {%- do keys.append(modules.re.sub(' (at|from) [0-9]{4}-.*$', '', example)) -%}
    {%- endfor -%}
    {#- backwards: id = 10 before id = 1, which it begins with -#}
    {%- for key in keys | unique(case_sensitive=true) | sort(reverse=true) -%}
        {%- set text.got = text.got | replace(key, 'key ' ~ local_md5(key)) -%}
    {%- endfor -%}
    {{- return(mistake.argument ~ ': ' ~ text.got) -}}
{%- endmacro %}

{#- A value for a message: if the type is the mistake, '2' must not look like 2. -#}
{% macro _display_value(value) -%}
    {{- return("the text '" ~ value ~ "'" if value is string else value | string) -}}
{%- endmacro %}

{#- A number with its noun: 1 row, 2 rows. -#}
{% macro _counted(number, noun) -%}
    {{- return(number ~ ' ' ~ noun ~ ('s' if number != 1)) -}}
{%- endmacro %}

{% macro _raise_mistakes(macro_name, mistakes) -%}
    {%- if mistakes -%}
        {%- set model_name = healing_tables._model_name() -%}
        {%- set head = 'healing_tables' ~ ('.' ~ macro_name ~ '()' if macro_name is not none)
            ~ (' in ' ~ healing_tables._model_kind() ~ ' ' ~ model_name if model_name != '(inline)') ~ ' has '
            ~ healing_tables._counted(mistakes | length, 'mistake') ~ '; nothing was written.' -%}
        {%- do healing_tables._raise_error(head, mistakes, is_numbered=true) -%}
    {%- endif -%}
{%- endmacro %}

{#- The one place where an error is raised: a first line, the mistakes, a last line. dbt adds the macros that were
    running; no way to raise an error from a macro leaves them out. -#}
{% macro _raise_error(head, mistakes, tail=none, is_numbered=false) -%}
    {%- set lines = [head] -%}
    {%- for mistake in mistakes -%}
        {#- a step has one source, whose options are its arguments -#}
        {%- do lines.append('  ' ~ (loop.index ~ '. ' if is_numbered) ~ mistake.argument | replace('sources.source.',
            '')) -%}
        {%- do lines.append('     wanted: ' ~ mistake.wanted) -%}
        {%- do lines.append('     got:    ' ~ healing_tables._display_got(mistake)) -%}
        {%- do lines.append('     remedy: ' ~ mistake.remedy) -%}
    {%- endfor -%}
    {%- do lines.append('  ' ~ tail) if tail is not none -%}
    {%- do lines.append('  What to change is above. Lines below this one only list the macros that were running.') -%}
    {{- exceptions.raise_compiler_error(healing_tables._plain_names(lines | join('\n'))) -}}
{%- endmacro %}

{#- The given value, also if it is an empty string. -#}
{% macro _display_got(mistake) -%}
    {{- return(mistake.got if mistake.got | string | trim else "'" ~ mistake.got ~ "'") -}}
{%- endmacro %}

{#- A relation, or text with names of tables, for messages and for the log: `a`.`b`, as dbt v2 writes a table of Spark,
    becomes a.b, as dbt-core does. -#}
{% macro _plain_names(text) -%}
    {%- if not healing_tables._is_dbt_v2() or adapter.type() != 'spark' -%} {{ return(text | string) }} {%- endif -%}
    {{- return(modules.re.sub('`(\\w+)`[.]`(\\w+)`', '\\1.\\2', text | string)) -}}
{%- endmacro %}

{#- Report the options that are not allowed. The allowed ones are listed once, for the first option that is similar to
    none of them. -#}
{% macro _check_options(mistakes, argument, given, allowed) -%}
    {%- set listed = [] -%}
    {%- for option in given if option not in allowed -%}
        {%- set near = healing_tables._nearest_name(option, allowed) -%}
        {%- set wanted = near or ('no argument' if not allowed else 'one of the options listed above' if listed
            else 'one of ' ~ (allowed | join(', '))) -%}
        {%- do listed.append(option) if near is none -%}
        {%- do healing_tables._mistake(mistakes, argument ~ '.' ~ option, wanted, option,
            healing_tables._did_you_mean(option, allowed) or 'correct or remove it') -%}
    {%- endfor -%}
{%- endmacro %}

{#- The question for a name that is similar to one of `names`, or none. -#}
{% macro _did_you_mean(name, names) -%}
    {%- set near = none if name in names else healing_tables._nearest_name(name, names) -%}
    {{- return('did you mean ' ~ near ~ '?' if near is not none else none) -}}
{%- endmacro %}

{#- Report a value that is none of the choices. -#}
{% macro _check_choice(mistakes, argument, value, choices) -%}
    {%- if value not in choices -%}
        {%- do healing_tables._mistake(mistakes, argument, 'one of ' ~ (choices | join(', ')), value | string,
            healing_tables._did_you_mean(value, choices) or 'choose one of them') -%}
    {%- endif -%}
{%- endmacro %}

{#- A share, for a guard. -#}
{% macro _check_ratio(mistakes, option, ratio) -%}
    {%- if ratio is not number or ratio is boolean or ratio < 0 or ratio > 1 -%}
        {%- do healing_tables._mistake(mistakes, option, 'a number from 0 to 1', ratio | tojson,
            'write a share such as 0.2; 1 switches this guard off') -%}
    {%- endif -%}
    {{- return(ratio) -}}
{%- endmacro %}

{#- The name that shares most pairs of letters with this one, by the coefficient of Dice (1945), above 0.6, or that has
    the same letters in another order; else none. The library uses difflib for that. -#}
{% macro _nearest_name(name, names) -%}
    {%- set best = {'name': none, 'score': 0.6} -%}
    {%- for other in names -%}
        {%- set pairs, rest = healing_tables._letter_pairs(name), healing_tables._letter_pairs(other) -%}
        {%- set all = pairs | length + rest | length -%}
        {%- set shared = [] -%}
        {%- for pair in pairs -%}
            {%- if pair in rest -%}
                {%- do shared.append(pair) -%}
                {%- do rest.remove(pair) -%}
            {%- endif -%}
        {%- endfor -%}
        {%- set is_anagram = name | string | lower | list | sort == other | string | lower | list | sort -%}
        {%- set score = 1 if is_anagram else 2 * shared | length / all -%}
        {%- do best.update({'name': other, 'score': score}) if score > best.score -%}
    {%- endfor -%}
    {{- return(best.name) -}}
{%- endmacro %}

{% macro _letter_pairs(name) -%}
    {%- set text, pairs = ' ' ~ name | string | lower ~ ' ', [] -%}
    {%- for start in range(text | length - 1) -%} {%- do pairs.append(text[start:start + 2]) -%} {%- endfor -%}
    {{- return(pairs) -}}
{%- endmacro %}
