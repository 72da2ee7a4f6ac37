"""The MERGE that applies a plan, and fails where the table is not as the plan expects it."""

from __future__ import annotations

from healing_tables.layout import Column, Layout
from healing_tables.moments import as_micros
from healing_tables.naming import quoted
from healing_tables.spec import DimensionSpec
from healing_tables.stored import shown_by

STALE = "healing_tables: stale plan"


def stale(key: Column, told: str) -> str:
    """A value for a key column that makes the statement fail with STALE. Args: told: the key, as SQL text."""
    return f"cast(raise_error(concat('{STALE}, key ', coalesce({told}, 'NULL'))) as {key.type})"


def open_rows_of(layout: Layout, spec: DimensionSpec) -> tuple[str, str]:
    """SQL: which rows of the table are open; their count and one hash of all, as a struct of ``rows`` and ``hash``."""
    shown = shown_by(layout, spec)
    keys = ", ".join(quoted(key.name) for key in layout.keys)
    digest = f"coalesce(bit_xor(xxhash64({keys}, {shown.start})), 0L)"
    return shown.alive, f"struct(count(*) as rows, {digest} as hash)"


def unchanged(table: str, layout: Layout, spec: DimensionSpec, expected: tuple[int, int]) -> str:
    """A condition that fails with STALE where the open rows are not the expected ones: an absent key would stay open."""
    alive, summary = open_rows_of(layout, spec)
    found = f"(select {summary} from {table} where {alive})"
    refused = f"cast(raise_error('{STALE}, other open rows') as boolean)"
    wanted = f"struct({expected[0]}L as rows, {expected[1]}L as hash)"
    return f"if({found} = {wanted}, true, {refused})"


def merge_statement(
    table: str,
    plan: str,
    layout: Layout,
    spec: DimensionSpec,
    keys: str,
    largest_key: int,
    open_rows: tuple[int, int] | None = None,
) -> str:
    """The MERGE: rows that are not as the plan expects them make it fail, with everything undone.

    A row that is to change has to be as it was when the plan was made. A new version has to be the newest of its key:
    in the ON clause it looks for any newer row. A key that has come and gone has no row at all.

    Args: open_rows: of a full batch: the count and the hash of the open rows (see `open_rows_of`) that it was compared with.
    """
    columns = list(layout.columns(spec))
    same_key = " and ".join(
        f"t.{quoted(key.name)} = s.key.{quoted(key.name)}" for key in layout.keys
    )
    on = [same_key, keys] if keys else [same_key]
    if "valid_from" in layout.names:
        start = quoted(layout.names["valid_from"])
        newer = (
            f"s.last_from is null or {as_micros('t.' + start, layout.moment_type)} > s.last_from"
        )
        on.append(
            f"case s.action when 'insert' then {newer} when 'absent' then true "
            f"else t.{start} <=> s.stored.{start} end"
        )
    same = " and ".join(f"t.{quoted(name)} <=> s.stored.{quoted(name)}" for name in columns)
    assignments = ", ".join(f"{quoted(name)} = s.new.{quoted(name)}" for name in columns)
    key = layout.keys[0]
    refused = stale(key, "to_json(s.key)")
    values = {name: f"s.new.{quoted(name)}" for name in columns}
    applied = "('insert', 'close', 'update', 'remove', 'absent')"
    source = f"select * from {plan} where action in {applied}"
    if open_rows is not None:
        source += f" and {unchanged(table, layout, spec, open_rows)}"
    if layout.is_sequence and layout.surrogate is not None:
        # the largest key is read inside of the MERGE: another writer's is a conflict
        ordered = ", ".join(f"key.{quoted(column.name)}" for column in layout.keys)
        if "valid_from" in layout.names:
            ordered += f", new.{quoted(layout.names['valid_from'])}"
        source = (
            f"select p.*, (select greatest(max({quoted(layout.surrogate)}), {largest_key}L) from {table}) "
            f"+ row_number() over (partition by action order by {ordered}) as surrogate_number "
            f"from ({source}) p"
        )
        values[layout.surrogate] = "s.surrogate_number"
    return f"""
merge into {table} t
using ({source}) s
on {" and ".join(on)}
when matched and s.action in ('close', 'update') and {same} then update set {assignments}
when matched and s.action = 'remove' and {same} then delete
when matched then update set {quoted(key.name)} = {refused}
when not matched and s.action = 'insert' then insert ({", ".join(quoted(name) for name in columns)}) values ({", ".join(values.values())})
when not matched and s.action <> 'absent' then insert ({quoted(key.name)}) values ({refused})"""
