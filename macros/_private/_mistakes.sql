{#- Mistakes in a call are collected and raised together, before any SQL runs. -#}

{% macro _mistake(mistakes, argument, wanted, got, remedy) -%}
    {%- do mistakes.append({'argument': argument, 'wanted': wanted, 'got': got, 'remedy': remedy}) -%}
{%- endmacro %}

{#- A value as a message shows it: where the type is the mistake, '2' must not look like 2. -#}
{% macro _shown_value(value) -%}
    {{- return("the text '" ~ value ~ "'" if value is string else value | string) -}}
{%- endmacro %}

{% macro _raise_mistakes(macro_name, mistakes) -%}
    {%- if mistakes -%}
        {%- set lines = [
            'healing_tables.' ~ macro_name ~ '() in model ' ~ healing_tables._model_name() ~ ' has '
            ~ (mistakes | length) ~ (' mistake' if mistakes | length == 1 else ' mistakes')
            ~ '; nothing was written.'
        ] -%}
        {%- for mistake in mistakes -%}
            {#- the one source of a step is its arguments -#}
            {%- do lines.append('  ' ~ loop.index ~ '. ' ~ mistake.argument | replace('sources.source.', '')) -%}
            {%- do lines.append('     wanted: ' ~ mistake.wanted) -%}
            {%- do lines.append('     got:    ' ~ mistake.got) -%}
            {%- do lines.append('     remedy: ' ~ mistake.remedy) -%}
        {%- endfor -%}
        {{- exceptions.raise_compiler_error(lines | join('\n')) -}}
    {%- endif -%}
{%- endmacro %}

{#- In an operation or an inline query there is no model to name. -#}
{% macro _model_name() -%}
    {%- set is_named = model is defined and model is mapping and model.name and model.get('resource_type') != 'macro' -%}
    {{- return(model.name if is_named else '(inline)') -}}
{%- endmacro %}

{#- Options nobody knows, each with the ones that exist. -#}
{% macro _check_options(mistakes, argument, given, known) -%}
    {%- for option in given if option not in known -%}
        {%- do healing_tables._mistake(
            mistakes, argument ~ '.' ~ option, 'one of ' ~ (known | join(', ')), option, 'correct or remove it') -%}
    {%- endfor -%}
{%- endmacro %}
