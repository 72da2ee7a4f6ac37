"""The ends and the flags of the rows of a dimension in PostgreSQL: its server computes the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.definition.stored_spec import RowGroup, as_stored
from healing_tables.plan.stored_ends import GROUPS, columns, kinds
from healing_tables.targets.postgres import PostgresTarget, name_of, spelled

if TYPE_CHECKING:
    from psycopg import Connection


def spec_of_table(
    connection: Connection[Any], target: PostgresTarget, layout: Layout, spec: DimensionSpec
) -> tuple[DimensionSpec, bool]:
    """As `stored_ends.spec_of_rows`."""
    stored = target.columns(connection) or []
    types = {column.name: column.spark for column in stored}
    listed = columns(
        layout,
        types,
        lambda name: f"t.{name_of(spelled(stored, name).name)}",
        lambda value: f"(extract(epoch from {value}) * 1000000)::bigint",
    )
    condition, end = "true", layout.names.get("valid_to")
    if end is not None:  # the server has ends that Spark cannot hold
        condition = f"coalesce(isfinite(t.{name_of(spelled(stored, end).name)}), true)"
    group_by = ", ".join(GROUPS)
    read = f"select {', '.join(listed)} from {target.sql_name} t where {condition}"
    rows = connection.execute(
        f"select {group_by}, min(until), max(until), count(*) "
        f"from (select *, {', '.join(kinds(layout, spec))} from ({read}) a) b group by {group_by}"
    ).fetchall()
    groups = [RowGroup(kind, low, high, flag, int(rows), deleted) for kind, _, flag, deleted, low, high, rows in rows]
    return as_stored(spec, layout, types, groups)
