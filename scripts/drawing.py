"""Results of queries as text for the demo."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence


def table(query: str) -> str:
    from pyspark.sql import SparkSession

    frame = SparkSession.builder.getOrCreate().sql(query)  # the session that dbt made
    return drawn(frame.columns, [[shown(value) for value in row] for row in frame.collect()])


def shown(value: object) -> str:
    """Short text: open ends by name, midnight as a date, moments to the minute (UTC)."""
    if isinstance(value, dt.datetime):
        if value.year == 9999:
            return "(open)"
        return f"{value:%Y-%m-%d}" if value.time() == dt.time() else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def drawn(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    ruled = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        ("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))).rstrip()
        for line in ruled
    )
