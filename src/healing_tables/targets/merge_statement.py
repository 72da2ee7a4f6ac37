"""The MERGE that applies a plan, and fails if the table differs from what the plan expects."""

from __future__ import annotations

from collections.abc import Mapping

from healing_tables.definition.layout import Column, Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.plan.stored_rows import row_period
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import FAR, as_micros

# Columns of the source: the row of the plan, and the id of the merge. New columns of the table are separate ones
ROW, MERGE_ID = "healing_tables_row", "healing_tables_merge_id"


def stale_text(merge_id: str) -> str:
    """The text of the error that a statement of this merge raises if the table has changed since it was read."""
    return f"healing_tables: stale plan {merge_id}"


def stale(key: Column, key_text: str, merge_id: str) -> str:
    """A value for a key column that makes the statement fail. Args: key_text: the key, as SQL text."""
    text = f"concat('{stale_text(merge_id)}', ', key ', coalesce({key_text}, 'NULL'))"
    return f"cast(raise_error({text}) as {key.type})"


def has_layout(table: str, columns: Mapping[str, str], merge_id: str) -> str:
    """A condition that fails if the table has other columns than these.

    A statement resolves a table once, so it holds for the rest of the statement too; what changes after that is a
    conflict for Delta. Spark evaluates it at planning: the table is not read.
    """
    fields = ", ".join(f"{quoted(name)}: {kind}" for name, kind in columns.items())
    return (
        f"if(typeof((select struct(*) from {table} where false)) = typeof(cast(null as struct<{fields}>)), "
        f"true, cast(raise_error('{stale_text(merge_id)}, columns') as boolean))"
    )


def open_rows_of(layout: Layout, spec: DimensionSpec) -> tuple[str, str]:
    """SQL: which rows of the table are open; their count and one hash of all, as a struct of ``rows`` and ``hash``.

    Those of another open end, which another writer may have added, count as well.
    """
    shown = row_period(layout, spec)
    alive = shown.alive
    if "valid_to" in layout.names:
        alive = f"({alive} or {shown.until} >= {FAR})"
    keys = ", ".join(quoted(key.name) for key in layout.keys)
    digest = f"coalesce(bit_xor(xxhash64({keys}, {shown.start})), 0L)"
    return alive, f"struct(count(*) as rows, {digest} as hash)"


def has_open_rows(table: str, layout: Layout, spec: DimensionSpec, expected: tuple[int, int], merge_id: str) -> str:
    """A condition that fails if the open rows are not the expected ones, since a missing key would stay open."""
    alive, summary = open_rows_of(layout, spec)
    found = f"(select {summary} from {table} where {alive})"
    refused = f"cast(raise_error('{stale_text(merge_id)}, other open rows') as boolean)"
    wanted = f"struct({expected[0]}L as rows, {expected[1]}L as hash)"
    return f"if({found} = {wanted}, true, {refused})"


def merge_statement(
    table: str,
    plan: str,
    layout: Layout,
    spec: DimensionSpec,
    *,
    merge_id: str,
    stored: Mapping[str, str],
    keys: str = "",
    open_rows: tuple[int, int] | None = None,
) -> str:
    """The MERGE, which fails without a change if rows differ from what the plan expects.

    A row to be changed must be equal to the row that was read. A new version must be the newest of its key: in the ON
    clause it matches any newer row. A key that starts and ends within the batch must have no row. The ON clause also
    contains the id of the merge, which Delta writes into the commit. Missing columns are added in the same commit
    (schema evolution).

    Args:
        stored: the columns that the table has to have, with their types.
        keys: a condition on ``t``, the target, that holds for all keys of the plan.
        open_rows: the count and the hash of the open rows (see `open_rows_of`) that a full batch was compared with; of
            another batch, if there were none.
    """
    columns = list(layout.columns(spec))
    new_columns = [name for name in columns if find(name, stored) is None]
    row = f"s.{ROW}"
    same_key = [f"t.{quoted(key.name)} {layout.same} {row}.key.{quoted(key.name)}" for key in layout.keys]
    # the id first: the text of a condition on many keys is long
    on = [f"s.{MERGE_ID} = {literal(merge_id)}", *same_key, *([keys] if keys else [])]
    if "valid_from" in layout.names:
        start = quoted(layout.names["valid_from"])
        newer = f"{row}.last_from is null or {as_micros('t.' + start, layout.moment_type)} > {row}.last_from"
        on.append(
            f"case {row}.action when 'insert' then {newer} when 'absent' then true "
            f"else t.{start} <=> {row}.stored.{start} end"
        )
    same = " and ".join(
        f"t.{quoted(name)} <=> {row}.stored.{quoted(name)}" for name in columns if name not in new_columns
    )
    values = {name: f"{row}.new.{quoted(name)}" for name in columns}
    # schema evolution takes only columns of the source itself
    values |= {name: f"s.{quoted(name)}" for name in new_columns}
    # the number of a row stays; an identity column cannot be assigned
    number = layout.surrogate if layout.is_sequence else None
    assignments = ", ".join(f"{quoted(name)} = {value}" for name, value in values.items() if name != number)
    key = layout.keys[0]
    refused = stale(key, f"to_json({row}.key)", merge_id)
    applied = "('insert', 'close', 'update', 'remove', 'absent')"
    source = f"select * from {plan} where action in {applied}"
    holds = [has_layout(table, stored, merge_id)]
    if open_rows is not None:
        holds.append(has_open_rows(table, layout, spec, open_rows, merge_id))
    beside = "".join(f", new.{quoted(name)} as {quoted(name)}" for name in new_columns)
    evolution = " with schema evolution" if new_columns else ""
    return f"""
merge{evolution} into {table} t
using (
    select struct(p.*) as {ROW}, {literal(merge_id)} as {MERGE_ID}{beside}
    from ({source}) p
    where {" and ".join(holds)}
) s
on {" and ".join(on)}
when matched and {row}.action in ('close', 'update') and {same} then update set {assignments}
when matched and {row}.action = 'remove' and {same} then delete
when matched then update set {quoted(key.name)} = {refused}
when not matched and {row}.action = 'insert'
    then insert ({", ".join(quoted(name) for name in columns)}) values ({", ".join(values.values())})
when not matched and {row}.action <> 'absent' then insert ({quoted(key.name)}) values ({refused})"""
