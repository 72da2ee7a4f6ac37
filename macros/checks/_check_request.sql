{#- What a generic test checks: from its arguments, then from the model, then from the defaults. -#}

{#-
    What a generic test checks, as `check_request` of _violations. `given` takes precedence, then the model's own
    request (see _model_check_request), then the defaults. `checks` none: those of the model, else all.
-#}
{% macro _check_request(test_name, model, given, checks=none, needs_keys=true) -%}
    {%- set is_there = healing_tables._placeholder_select(test_name, {'model': model}) is none -%}
    {%- set own = healing_tables._model_check_request(model) if execute and (is_there or not flags.INTROSPECT)
        else {} -%}
    {%- set names = {} -%}
    {%- for name in ['valid_from', 'valid_to', 'is_current'] -%}
        {%- set asked = given.get(name, '(not given)') -%}
        {%- do names.update({name: asked if asked != '(not given)' else own.get(name, name) if name == 'is_current'
            else own.get(name) or name}) -%}
    {%- endfor -%}
    {%- set wanted = healing_tables._requested_checks(test_name, given, own) if checks is none else checks -%}
    {%- if checks is not none and 'single_current' in checks -%}
        {%- do checks.single_current.update({'at_most_one': healing_tables._allows_no_current(given, own)}) -%}
    {%- endif -%}
    {%- set reads = healing_tables._read_by_checks(wanted) -%}
    {%- set hash = given.get('row_hash', '(not given)') -%}
    {%- set tracked = healing_tables._as_list(given.get('tracked_columns'))
        or (healing_tables._as_list(hash) if hash != '(not given)' else own.get('tracked') or ['row_hash']) -%}
    {%- set check_request = {
        'relation': model, 'key_columns': healing_tables._as_list(given.key_columns) or own.get('key_columns') or [],
        'valid_from': names.valid_from, 'valid_to': names.valid_to, 'is_current': names.is_current
        if 'is_current' in reads else none,
        'current_value': given.current_value if given.get('current_value') not in [none, '(not given)']
            else own.current_value if 'current_value' in own
            else healing_tables._option('current_values', none, [true])[0],
        'valid_to_current': healing_tables._valid_to_current(given.get('valid_to_current', '(not given)'))
            if given.get('valid_to_current', '(not given)') != '(not given)' or 'valid_to_current' not in own
            else own.valid_to_current,
        'tracked': tracked if 'tracked' in reads else none, 'checks': wanted} -%}
    {#- another program may have used another open end; a model knows its own -#}
    {%- do check_request.update({'open_from': healing_tables._open_from_text(check_request.valid_to_current)})
        if 'valid_to_current' not in own -%}
    {%- set mistakes = [] -%}
    {%- if execute and needs_keys and not check_request.key_columns -%}
        {%- do healing_tables._mistake(
            mistakes, 'key_columns', 'at least one column', 'none', 'add key_columns under arguments of the test') -%}
    {%- endif -%}
    {%- do healing_tables._raise_mistakes(test_name, mistakes) -%}
    {%- if is_there -%}
        {#- the columns that the test reads -#}
        {%- set read = dict(check_request, valid_from=check_request.valid_from if 'valid_from' in reads else none,
            valid_to=check_request.valid_to if 'valid_to' in reads or check_request.is_current is none else none) -%}
        {%- do healing_tables._check_request_columns(test_name, read, healing_tables._columns_of(model)) -%}
    {%- endif -%}
    {{- return(check_request) -}}
{%- endmacro %}

{#- Whether a key may have no current row. -#}
{% macro _allows_no_current(given, own) -%}
    {%- set asked = given.get('at_most_one', '(not given)') -%}
    {{- return(asked if asked != '(not given)'
        else ((own.get('checks') or {}).get('single_current') or {}).get('at_most_one', false)) -}}
{%- endmacro %}

{#- The checks of temporal_integrity: those of the model or all, overridden by `given`. -#}
{% macro _requested_checks(test_name, given, own) -%}
    {%- set checks = dict(own.get('checks') or healing_tables._default_checks(false, false)) -%}
    {%- if 'single_current' in checks -%}
        {%- do checks.update({'single_current': {'at_most_one': healing_tables._allows_no_current(given, own)}}) -%}
    {%- endif -%}
    {%- if given.allowed_gaps or given.tolerance is not none -%}
        {%- do checks.update({'no_gaps': {'allowed_gaps': given.allowed_gaps, 'tolerance': given.tolerance}}) -%}
    {%- endif -%}
    {%- set mistakes = [] -%}
    {%- set requested = healing_tables._configured_checks(mistakes, given.checks, checks) -%}
    {%- do healing_tables._raise_mistakes(test_name, mistakes) -%}
    {{- return(requested) -}}
{%- endmacro %}

{#- Check that the columns exist that the checks read. -#}
{% macro _check_request_columns(macro_name, check_request, columns) -%}
    {%- set mistakes = [] -%}
    {%- for argument, names in {
        'key_columns': check_request.key_columns, 'valid_from': [check_request.valid_from],
        'valid_to': [check_request.valid_to],
        'is_current': [check_request.is_current], 'tracked_columns': check_request.tracked}.items() -%}
        {%- do healing_tables._check_columns(mistakes, argument, names | select | list,
            check_request.relation | string, columns) -%}
    {%- endfor -%}
    {%- do healing_tables._raise_mistakes(macro_name, mistakes) -%}
{%- endmacro %}
