{#-
    Repair a stored table of versions whose sources no longer exist, so that it passes the checks. With dry_run, the
    default, only report. Rows that cannot stay are set aside in <dimension>__set_aside.

    id | valid_from | valid_to   | is_current      id | valid_from | valid_to   | is_current
    1  | 2024-01-01 | (open)     | true        ->  1  | 2024-01-01 | 2024-03-01 | false
    1  | 2024-03-01 | (open)     | true            1  | 2024-03-01 | (open)     | true
    1  | 2024-05-01 | 2024-04-01 | false           and one row set aside: inverted
-#}
{% macro repair(dimension, key_columns=none, valid_from='(not given)', valid_to='(not given)',
    is_current='(not given)', version='(not given)', tracked_columns='(not given)', current_values=none,
    valid_to_current='(not given)', dry_run=true, keep_repeats=false, max_removed_keys_ratio=none) -%}
    {%- set table = healing_tables._operation_table('repair', dimension) -%}
    {%- set stored_table = healing_tables._stored_dimension('repair', table, {
        'key_columns': key_columns, 'valid_from': valid_from, 'valid_to': valid_to, 'is_current': is_current,
        'version': version,
        'tracked_columns': tracked_columns, 'current_values': current_values, 'valid_to_current': valid_to_current}) -%}
    {%- do stored_table.update({'keep_repeats': keep_repeats}) -%}
    {%- set ratio = healing_tables._repair_ratio(max_removed_keys_ratio) -%}
    {%- set stored = healing_tables._table_details(table.relation) -%}
    {%- if not dry_run -%}
        {%- do healing_tables._check_can_repair(table.relation, stored, stored_table) -%}
    {%- endif -%}

    {%- set found = healing_tables._read_figures(healing_tables._diagnosis(stored_table)) -%}
    {%- do healing_tables._print_diagnosis('repair', stored_table, found) -%}
    {%- set outcome = {
        'target': table.relation, 'format_name': stored.get('provider'), 'mode': 'repair', 'status': 'unchanged',
        'started_at': healing_tables._utc_now(),
        'rows_added': 0, 'rows_changed': found.rows_changed,
        'rows_removed': found.rows_removed, 'keys_affected': found.keys_affected, 'version_before': none,
        'version_after': none} -%}
    {%- do healing_tables._report('repair', stored_table.relation, healing_tables._repair_summary(found, dry_run)) -%}
    {%- if found.keys_ended > 0 -%}
        {%- do healing_tables._report('repair', stored_table.relation,
            healing_tables._counted(found.keys_ended, 'key') ~ ' with a current row '
            ~ ('would have' if dry_run else 'will have') ~ ' none: ' ~ found.keys_ended_keys) -%}
    {%- endif -%}

    {%- if found.keys_affected > 0 and stored_table.model is not none -%}
        {%- do healing_tables._report('repair', stored_table.relation, 'the sources of its model exist: dbt run '
            ~ '--select ' ~ stored_table.model ~ ' --full-refresh rebuilds the table from them') -%}
    {%- endif -%}
    {%- if found.keys_affected > 0 and dry_run -%}
        {%- set after = healing_tables._rows_after(stored_table, '(\n' ~ healing_tables._repair_plan(stored_table)
            ~ '\nselect ' ~ healing_tables._plan_columns(stored_table) ~ ' from repaired\n)') -%}
        {%- do healing_tables._check_repaired(stored_table, after, true) -%}
        {%- do healing_tables._report('repair', stored_table.relation,
            'nothing was written; dry_run: false does it') -%}
    {%- elif not dry_run -%}
        {%- do outcome.update({'version_before': healing_tables._table_version(table.relation, stored)}) -%}
        {%- if found.keys_affected > 0 -%}
            {%- do healing_tables._do_repair(table, stored_table, found, ratio, stored, outcome) -%}
        {%- endif -%}
        {%- do outcome.update({'version_after': healing_tables._table_version(table.relation, stored)}) -%}
        {%- do healing_tables._end_operation(outcome) -%}
    {%- endif -%}
    {{- return(outcome) -}}
{%- endmacro %}

{#- Write the candidate, check it, write the side table, then make the one commit. -#}
{% macro _do_repair(table, stored_table, found, ratio, stored, outcome) -%}
    {%- set target = table.relation -%}
    {%- if found.current_keys >= 20 and found.keys_ended > ratio * found.current_keys -%}
        {%- do healing_tables._refuse_repair(
            stored_table, outcome, 'max_removed_keys_ratio: at most ' ~ '%g' | format(ratio)
            ~ ' of the current keys to end',
            found.keys_ended ~ ' of ' ~ found.current_keys,
            'see that valid_from, valid_to and current_values are right; if they are, allow it: '
            'max_removed_keys_ratio: 1') -%}
    {%- endif -%}
    {%- set candidate = healing_tables._candidate_relation(target) -%}
    {%- set side = api.Relation.create(schema=target.schema, identifier=target.identifier ~ '__set_aside') -%}
    {%- set format = healing_tables._stored_format(stored) -%}
    {%- do healing_tables._run(healing_tables._create_repair_candidate(candidate, format, stored_table)) -%}
    {%- set failed = healing_tables._check_repaired(stored_table, healing_tables._rows_after(stored_table, candidate),
        false) -%}
    {%- if failed -%}
        {%- do healing_tables._refuse_repair(
            stored_table, outcome, 'rows that pass the checks', failed | join('; '),
            'look at the candidate ' ~ candidate ~ ', correct these keys by hand, and drop it') -%}
    {%- endif -%}
    {%- if found.rows_set_aside > 0 -%}
        {%- set mistakes = [] -%}
        {%- do healing_tables._prepare_set_aside(mistakes, side, format, stored_table) -%}
        {%- if mistakes -%}
            {%- do healing_tables._run('drop table if exists ' ~ candidate) -%}
            {%- do healing_tables._raise_mistakes('repair', mistakes) -%}
        {%- endif -%}
        {%- do healing_tables._run(healing_tables._merge_set_aside(side, candidate, stored_table)) -%}
    {%- endif -%}
    {#- the integer keys of removed rows stay reserved -#}
    {%- do healing_tables._ensure_key_map(target, stored_table, target, format)
        if stored_table.sequence is not none -%}
    {%- set audited = healing_tables._begin_audit_of_operation('repair', table.relation, table.node, stored,
        stored_table.key_columns) -%}
    {%- do healing_tables._run(healing_tables._merge_repair(
        format.commits.begin(target, outcome.version_before), candidate, stored_table)) -%}
    {%- do healing_tables._check_not_overtaken('repair', target, format.commits.end(target, outcome.version_before)) -%}
    {%- do healing_tables._audit_of_operation(audited, 'repair') if audited is not none -%}
    {%- do outcome.update({'status': 'published'}) -%}
    {%- do healing_tables._run('drop table if exists ' ~ candidate) -%}
    {%- do healing_tables._report('repair', stored_table.relation, 'published in one commit, version '
        ~ healing_tables._table_version(target, stored)
        ~ ('; the removed rows are in ' ~ side if found.rows_set_aside > 0)) -%}
{%- endmacro %}
