"""The ends and the flags of the stored rows, in groups: from these, the open end and the values of flags are known."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec, is_named
from healing_tables.definition.stored_spec import FLAGS, RowGroup, as_stored
from healing_tables.sql import instants
from healing_tables.sql.identifiers import quoted
from healing_tables.sql.instants import FAR, as_micros
from healing_tables.sql.types import types_of

READ = ("valid_to", "is_current", "ended_by_delete")
GROUPS = ("kind", "open_end", "flag", "deleted")


def spec_of_rows(stored: DataFrame, layout: Layout, spec: DimensionSpec) -> tuple[DimensionSpec, bool]:
    """The definition with the open end and the flags of the stored rows, and whether a row is open.

    It is one aggregate over at most three columns, whose groups are few.
    Raises: TargetError, see `as_stored`.
    """
    types = types_of(stored.schema)
    if not any(name in layout.names for name in READ):
        return spec, True
    rows = stored.selectExpr(*columns(layout, types, quoted, lambda name: as_micros(name, layout.moment_type)))
    found = (
        rows.selectExpr("until", "flag", "deleted", *kinds(layout, spec))
        .groupBy(*GROUPS)
        .agg(f.expr("min(until) as low"), f.expr("max(until) as high"), f.expr("count(*) as number"))
    )
    groups = [
        RowGroup(row["kind"], row["low"], row["high"], row["flag"], row["number"], row["deleted"])
        for row in found.collect()
    ]
    return as_stored(spec, layout, types, groups)


def columns(
    layout: Layout, types: dict[str, str], name_of: Callable[[str], str], micros_of: Callable[[str], str]
) -> list[str]:
    """SQL: ``until`` (microseconds), ``flag`` and ``deleted`` of a row; NULL without such a column.

    Args: types: of the stored columns; name_of, micros_of: a column, and a moment as microseconds, in SQL.
    """

    def flag(name: str) -> str:
        column = layout.names.get(name)
        return "null" if column is None or types.get(column) not in FLAGS else name_of(column)

    end = layout.names.get("valid_to")
    return [
        f"{'cast(null as bigint)' if end is None else micros_of(name_of(end))} as until",
        f"{flag('is_current')} as flag",
        f"{flag('ended_by_delete')} as deleted",
    ]


def kinds(layout: Layout, spec: DimensionSpec) -> list[str]:
    """SQL over `columns`: ``kind`` of `EndGroup`, and ``open_end``, in which open ends differ."""
    if "valid_to" not in layout.names:
        return ["'none' as kind", "until as open_end"]
    least, given = FAR, spec.valid_to_current
    if is_named(given) and given is not None:
        least = min(FAR, instants.open_from(given, layout.moment_type))
    is_open, is_later = f"until is null or until >= {least}", f"until > {instants.now()}"
    return [
        f"case when {is_open} then 'open' when {is_later} then 'later' else 'past' end as kind",
        f"case when until >= {least} then until end as open_end",
    ]
