{#- What a merge computes: the rows of the dimension that the keys of a batch have afterwards. -#}

{#- The run with that. `changed_keys`: SQL after `in`; none: all keys. The arguments from `events` to `condition`: see
    _merged_dimension(). -#}
{% macro _run_of_keys(run, spec, layout, shown, events, log_rows, has_full, condition, changed_keys) -%}
    {%- if healing_tables._has_history(layout) -%}
        {{- return(healing_tables._run_with_versions(
            run, spec, layout, shown, events, log_rows, has_full, condition, changed_keys)) -}}
    {%- endif -%}
    {%- set sql = healing_tables._merged_dimension(spec, layout, events, log_rows, shown, has_full, condition) -%}
    {{- return(dict(run, sql=sql, changed_keys=changed_keys,
        settings=healing_tables._settings_of_merge(spec, sql, run.format, run.settings.session))) -}}
{%- endmacro %}
