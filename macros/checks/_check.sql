{#-
    The checks, one file each: `_<name>.sql` with a macro _check_<name>(arguments, check_request, dimension) that
    returns a `check`, a map. `dimension` is {can_delete, has_gaps, has_tracked}; unneeded arguments are {}.

    condition   true for a failing row, over the columns of `checked`, see _scd2_checks.sql. Compare moments with
                _to_micros(), see sql/_instants.sql.
    default     the arguments of the check in a build, or none if it is off by default

    and optionally:

    arguments   the names of its arguments
    reads       what it reads besides the key: fields of a check_request. is_current falls back to valid_to.
    figures     what a failing row shows: {field: [SQL over `checked`, a column of `checked` of that type]}
    has_pairs   a row fails once for each earlier row that overlaps it; figures call that row `a`
-#}
{% macro _check(name, arguments={}, check_request={}, dimension={}) -%}
    {#- dbt gives a test only macros that are called by name -#}
    {%- if name == 'single_current' -%}
        {%- set check = healing_tables._check_single_current(arguments, check_request, dimension) -%}
    {%- elif name == 'no_overlaps' -%}
        {%- set check = healing_tables._check_no_overlaps(arguments, check_request, dimension) -%}
    {%- elif name == 'valid_order' -%}
        {%- set check = healing_tables._check_valid_order(arguments, check_request, dimension) -%}
    {%- elif name == 'no_consecutive_duplicates' -%}
        {%- set check = healing_tables._check_no_consecutive_duplicates(arguments, check_request, dimension) -%}
    {%- elif name == 'no_gaps' -%}
        {%- set check = healing_tables._check_no_gaps(arguments, check_request, dimension) -%}
    {%- endif -%}
    {{- return(dict({'arguments': [], 'reads': ['valid_from', 'valid_to'], 'figures': {}, 'has_pairs': false},
        **check)) -}}
{%- endmacro %}

{#- The names of the checks, in the order in which messages list them. -#}
{% macro _known_checks() -%}
    {{- return(['single_current', 'no_overlaps', 'valid_order', 'no_consecutive_duplicates', 'no_gaps']) -}}
{%- endmacro %}

{#- The default checks of a build, {name: arguments}. -#}
{% macro _default_checks(can_delete, has_gaps, has_tracked=true) -%}
    {%- set dimension = {'can_delete': can_delete, 'has_gaps': has_gaps, 'has_tracked': has_tracked} -%}
    {%- set checks = {} -%}
    {%- for name in healing_tables._known_checks() -%}
        {%- set arguments = healing_tables._check(name, dimension=dimension).default -%}
        {%- do checks.update({name: arguments}) if arguments is not none -%}
    {%- endfor -%}
    {{- return(checks) -}}
{%- endmacro %}

{#- The checks to run: `defaults` {name: arguments}, overridden by `given` {name: arguments, true, or false to turn it
    off}. -#}
{% macro _configured_checks(mistakes, given, defaults) -%}
    {%- if given is not none and given is not mapping -%}
        {%- do healing_tables._mistake(
            mistakes, 'checks', 'a map from check to its arguments, true or false',
            healing_tables._display_value(given), 'write {no_overlaps: false}') -%}
        {%- set given = {} -%}
    {%- endif -%}
    {%- set names = healing_tables._known_checks() -%}
    {%- do healing_tables._check_options(mistakes, 'checks', given or {}, names) -%}
    {%- set wanted = dict(defaults) -%}
    {%- for name, arguments in (given or {}).items() if name in names -%}
        {%- if arguments is sameas false -%} {%- do wanted.pop(name, none) -%}
        {%- elif arguments is mapping -%}
            {%- do healing_tables._check_options(mistakes, 'checks.' ~ name, arguments,
                healing_tables._check(name).arguments) -%}
            {%- do wanted.update({name: dict(wanted.get(name) or {}, **arguments)}) -%}
        {%- elif arguments is sameas true -%} {%- do wanted.setdefault(name, {}) -%}
        {%- else -%}
            {%- do healing_tables._mistake(mistakes, 'checks.' ~ name, 'true, false or a map of arguments',
                healing_tables._display_value(arguments), 'write {' ~ name ~ ': true}') -%}
        {%- endif -%}
    {%- endfor -%}
    {{- return(wanted) -}}
{%- endmacro %}

{#- What the checks read besides the key, as fields of a check_request. -#}
{% macro _read_by_checks(checks) -%}
    {%- set fields = [] -%}
    {%- for name in checks -%} {%- do fields.extend(healing_tables._check(name).reads) -%} {%- endfor -%}
    {{- return(fields | unique | list) -}}
{%- endmacro %}

{#- The figures of all checks, {field: [SQL, a column of that type]}. -#}
{% macro _all_figures() -%}
    {%- set figures = {} -%}
    {%- for name in healing_tables._known_checks() -%}
        {%- do figures.update(healing_tables._check(name).figures) -%}
    {%- endfor -%}
    {{- return(figures) -}}
{%- endmacro %}
