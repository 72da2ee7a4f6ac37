"""The stored rows of a dimension in the names of the plan."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.generated import MARK_OF_DELETED
from healing_tables.definition.layout import Column, Layout, by_name, numbered
from healing_tables.definition.spec import DimensionSpec
from healing_tables.plan.batch import key_names, key_values, named_keys
from healing_tables.sql import instants
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import as_micros

FOREVER = 2**63 - 1
NEVER = instants.micros("0001-01-01")  # the start of a row that does not show one


def rows_of(wanted: DataFrame, stored: DataFrame | None, layout: Layout) -> DataFrame | None:
    """The rows of some keys. It comes before `stored_rows`: Spark would build the structs of that one for all rows.

    Args: wanted: the keys, ``k1..n``.
    """
    if stored is None:
        return None
    names = key_names(layout)
    listed = wanted.selectExpr(*(f"{name} as healing_tables_{name}" for name in names))
    values = zip(key_values(layout, "healing_tables_"), layout.keys, strict=True)
    same = " and ".join(f"{quoted(key.name)} {layout.same} {value}" for value, key in values)
    return stored.join(listed, f.expr(same), "left_semi")


def with_wider_types(stored: DataFrame, layout: Layout) -> DataFrame:
    """The stored rows in the types that their columns get."""
    wider = dict(layout.widened)
    if not wider:
        return stored
    kinds = {name: wider.get(find(name, wider) or "") for name in stored.columns}
    return stored.selectExpr(
        *(f"cast({quoted(name)} as {kind}) as {quoted(name)}" if kind else quoted(name) for name, kind in kinds.items())
    )


def stored_rows(events: DataFrame, stored: DataFrame | None, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """The stored rows in the names of the plan.

    Returns: ``k1..n``, ``at`` (start), ``until`` (end, NULL if open), ``alive`` (nothing has ended it), ``state``,
        ``previous`` and ``changed`` (of types 3, and 1 and 3), ``current`` (flag), ``version``, ``boundary`` (the last
        moment that the row shows), ``row`` (all columns as they are).
    """
    if stored is None:
        stored = events.sparkSession.createDataFrame([], to_ddl(layout, spec))
    spelled = layout.columns(spec)
    stored = stored.toDF(*(find(name, spelled) or name for name in stored.columns))
    shown, present, kind = row_period(layout, spec), set(stored.columns), layout.moment_type

    def stored_value(attribute: Column, name: str) -> str:
        return quoted(name) if name in present else f"cast(null as {attribute.type})"

    whole_row = ", ".join(
        quoted(name) if name in present else f"cast(null as {kind_}) as {quoted(name)}"
        for name, kind_ in spelled.items()
    )

    values = [f"{stored_value(attribute, attribute.name)} as a{number}" for number, attribute in by_name(layout)]
    previous = [
        f"{stored_value(attribute, spec.added('previous', attribute.name))} as a{number}"
        for number, attribute in numbered(layout, 3)
    ]
    changed = [
        (
            as_micros(quoted(spec.added("changed_at", attribute.name)), kind)
            if spec.added("changed_at", attribute.name) in present
            else "cast(null as bigint)"
        )
        + f" as a{number}"
        for number, attribute in numbered(layout, 1, 3)
        if attribute.changed_at
    ]
    rows = stored.selectExpr(
        *named_keys(layout),
        f"{shown.start} as at",
        f"if({shown.alive}, null, coalesce({shown.until}, {shown.updated}, {shown.start})) as until",
        f"{shown.alive} as alive",
        f"struct({', '.join(values) or 'true as present'}) as state",
        f"struct({', '.join(previous) or 'true as none'}) as previous",
        f"struct({', '.join(changed) or 'true as none'}) as changed",
        f"{shown.current} as current",
        f"{shown.version} as version",
        f"{shown.updated} as updated",
        f"struct({whole_row}) as row",
    )
    dates = "".join(f", changed.a{n}" for n, a in numbered(layout, 1, 3) if a.changed_at)
    return rows.selectExpr(
        "*",
        f"greatest(at, until, updated{dates}) as boundary",
        f"greatest(at, at{dates}) as changed_until",
    )


def with_damage(rows: DataFrame, layout: Layout, is_stored: str = "true") -> DataFrame:
    """The rows, and ``is_damaged``: the stored versions of their key contradict each other.

    Args:
        rows: of `stored_rows`, with other rows of the same keys or without them.
        is_stored: a condition that holds for the stored ones.
    """
    partition = f"partition by {', '.join(key_names(layout))}"
    before = f"over ({partition} order by at rows between unbounded preceding and 1 preceding)"
    if layout.is_versioned:
        overlaps = (
            f"at <= max(if({is_stored}, at, null)) {before} "
            f"or at < max(if({is_stored}, coalesce(until, {FOREVER}L), null)) {before}"
        )
    else:  # a key has one row
        overlaps = f"count(if({is_stored}, 1, null)) {before} > 0"
    is_damaged = (
        f"coalesce(max(is_overlapping) over ({partition}), false) "
        f"or count(if({is_stored} and current, 1, null)) over ({partition}) > 1 as is_damaged"
    )
    overlapping = rows.selectExpr("*", f"{is_stored} and ({overlaps}) as is_overlapping")
    return overlapping.selectExpr("*", is_damaged).drop("is_overlapping")


@dataclass(frozen=True)
class RowPeriod:
    """The generated columns of a row, as SQL: moments in microseconds, NULL if there is no such column."""

    start: str
    until: str
    alive: str  # nothing has ended the version
    current: str
    version: str
    updated: str


def row_period(layout: Layout, spec: DimensionSpec, row: str = "") -> RowPeriod:
    """Args: row: a prefix of the columns, such as ``new.``"""
    names = {name: row + quoted(column) for name, column in layout.names.items()}

    def moment(name: str) -> str:
        return as_micros(names[name], layout.moment_type) if name in names else "cast(null as bigint)"

    start = "last_updated" if layout.has_history or "valid_from" not in names else "valid_from"
    flag = None
    if "is_current" in names:
        flag = f"{names['is_current']} <=> {literal(spec.current_values[0])}"
    end = instants.open_from(spec.valid_to_current, layout.moment_type)
    until = moment("valid_to")
    alive = f"coalesce({until} >= {end}, true)" if "valid_to" in names else flag or "true"
    return RowPeriod(
        start=f"coalesce({moment(start)}, {NEVER}L)",
        until=until,
        alive=alive,
        current=flag or alive,
        version=names.get("version", "cast(null as int)"),
        updated=moment("last_updated"),
    )


def is_deleted(layout: Layout, row: str) -> str:
    """Whether a row of the dimension is one of a deleted key, as SQL. Args: row: the struct that it is in."""
    if not layout.has_deleted_rows:
        return "false"
    return f"coalesce({row}.{quoted(layout.names[MARK_OF_DELETED])}, false)"


def to_ddl(layout: Layout, spec: DimensionSpec) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in layout.columns(spec).items())
