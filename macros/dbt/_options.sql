{#-
    One option: from the call's argument, the model's meta.healing_tables, the project's vars.healing_tables,
    then the default. '(not given)' marks an argument that the caller left out, because none is a value: an
    open end of NULL.
-#}
{% macro _option(name, argument, default=none) -%}
    {%- if argument is not sameas none and argument != '(not given)' -%} {{ return(argument) }} {%- endif -%}
    {%- if argument is sameas none and name in ['valid_to_current'] -%} {{ return(none) }} {%- endif -%}
    {%- set meta = healing_tables._model_options() -%}
    {%- if name in meta -%} {{ return(meta[name]) }} {%- endif -%}
    {%- set project = healing_tables._project_options() -%}
    {%- if name in project -%} {{ return(project[name]) }} {%- endif -%}
    {{- return(default) -}}
{%- endmacro %}

{#- The open end as text, or none for NULL. 23:59:59 would be in the year 10000 in time zones east of UTC, which Python
    does not support. -#}
{% macro _valid_to_current(argument='(not given)') -%}
    {{- return(healing_tables._option('valid_to_current', argument, '9999-12-31 00:00:00')) -}}
{%- endmacro %}

{#- The options of a model by its materialization: any other than these two has those of a healing_table, or of a
    `dimension()` in a table or a view. none: of a project, whose models can be of any kind. -#}
{% macro _known_options(materialized) -%}
    {%- set table = [
        'key_columns', 'attributes', 'exists_in', 'column_names', 'valid_to_current', 'current_values',
        'deleted_values',
        'valid_from_first', 'surrogate_key', 'column_types', 'on_tie', 'on_absence', 'checks', 'tracked_columns',
        'max_removed_keys_ratio', 'max_removed_versions_ratio', 'publish', 'mode', 'shards', 'overlap',
        'key_buckets', 'cluster_by', 'log_schema', 'audit', 'deleted_rows', 'null_keys'] -%}
    {%- set merge = [
        'key_columns', 'attributes', 'changed_at', 'full_batch', 'deleted_when', 'tie_break_by', 'on_tie',
        'change_reason',
        'change_source', 'correlation_id', 'change_log', 'history', 'max_removed_keys_ratio', 'current_while_deleted',
        'surrogate_key', 'column_names', 'valid_to_current', 'current_values', 'deleted_values', 'valid_from_first',
        'audit', 'on_late', 'missing_columns', 'at', 'key_buckets', 'cluster_by', 'allow_full_refresh',
        'log_schema', 'ignore_nulls', 'unchanged_value', 'sequence_by', 'truncated_when',
        'within', 'deleted_rows', 'null_keys'] -%}
    {%- set capture = ['key_columns', 'captured_at', 'deleted', 'on_absence', 'within', 'at', 'max_removed_keys_ratio',
        'null_keys', 'cluster_by', 'allow_full_refresh', 'log_schema'] -%}
    {%- if materialized is none -%} {{ return((table + merge + capture) | unique | list) }} {%- endif -%}
    {{- return({'healing_merge': merge, 'capture': capture}.get(materialized, table)) -}}
{%- endmacro %}

{#- Report unknown options of the model and of the project. -#}
{% macro _check_model_options(mistakes) -%}
    {%- do healing_tables._check_table_name(mistakes) -%}
    {%- set options = healing_tables._known_options(healing_tables._model_config().get('materialized') or 'view') -%}
    {%- do healing_tables._check_options(mistakes, 'meta.healing_tables', healing_tables._model_options(), options) -%}
    {%- do healing_tables._check_place_of_options(mistakes, options) -%}
    {%- do healing_tables._check_options(
        mistakes, 'vars.healing_tables', healing_tables._project_options(), healing_tables._known_options(none)) -%}
{%- endmacro %}

{#- dbt accepts any name in config(), and nothing would read it. It gives empty values to names of its own. -#}
{% macro _check_place_of_options(mistakes, options) -%}
    {%- set config = healing_tables._model_config() -%}
    {%- if config.get('materialized') in ['healing_table', 'healing_merge', 'capture'] -%}
        {%- for name in options if config.get(name) not in [none, {}, []] -%}
            {%- do healing_tables._mistake(
                mistakes, name, 'this option in meta.healing_tables', 'it in config() itself',
                'write meta={' ~ "'healing_tables': {'" ~ name ~ "': ...}}") -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro %}

{#- dbt does not quote table names: two hyphens would start a comment, and another table would be written. -#}
{% macro _check_table_name(mistakes) -%}
    {%- if healing_tables._model_config().get('materialized') not in ['healing_table', 'healing_merge', 'capture']
        or this is not defined -%}
        {{- return(none) -}}
    {%- endif -%}
    {%- for option, name in {'schema': this.schema, 'alias': this.identifier}.items() if name
        and not modules.re.fullmatch('\\w+', name) -%}
        {%- do healing_tables._mistake(
            mistakes, option, 'a name of letters, digits and underscores: dbt does not quote it', name,
            'set ' ~ option ~ ' in config()') -%}
    {%- endfor -%}
{%- endmacro %}

{% macro _project_options() -%}
    {{- return(var('healing_tables', {}) or {}) -}}
{%- endmacro %}

{% macro _model_options() -%}
    {{- return((healing_tables._model_config().get('meta') or {}).get('healing_tables') or {}) -}}
{%- endmacro %}

{#- Whether the run reads only a part of its sources. dbt has `empty` in `flags`, and `sample` only in its
    arguments. -#}
{% macro _is_partial_run() -%}
    {{- return(true if flags.EMPTY or invocation_args_dict.get('sample') else false) -}}
{%- endmacro %}

{#- Whether the select has the extra parts that a heal needs: if `mode` is set, or a run names what to heal. -#}
{% macro _can_heal() -%}
    {{- return(healing_tables._option('mode', none) is not none or healing_tables._requests_keys()) -}}
{%- endmacro %}

{% macro _requests_keys() -%}
    {{- return(var('heal_keys', none) is not none or var('heal_where', none) is not none
        or var('heal_since', none) is not none) -}}
{%- endmacro %}

{#- `unique_key` of the model, as a list. -#}
{% macro _unique_key() -%}
    {%- set given = healing_tables._model_config().get('unique_key') -%}
    {%- if given is none and healing_tables._is_unit_test() -%}
        {#- a unit test has only the code of its model -#}
        {%- set found = modules.re.search('unique_key[^\\w=:]? *[=:] *([[][^]]*[]]|\'[^\']*\'|"[^"]*")',
            healing_tables._current_model().get('raw_code') or '') -%}
        {%- set given = fromyaml(found[1]) if found else none -%}
    {%- endif -%}
    {{- return(healing_tables._as_list(given)) -}}
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
