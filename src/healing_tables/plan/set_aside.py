"""Rows that a merge sets aside because they have no place on a timeline, or because they are late (`on_late`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame

from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import TIMESTAMP
from healing_tables.sql.values import JSON

ROW_ID = "set_aside_row_id"  # equal rows with equal reasons have one
# What their table has besides the columns of the batch and the reason
GENERATED = {"set_aside_at": TIMESTAMP, "set_aside_batch_id": "string", ROW_ID: "string"}
PLAIN = re.compile(r"(tiny|small|big)?int|float|double|decimal\(.*|boolean|string|binary|date|timestamp_[ln]tz")


def as_given(types: Mapping[str, str]) -> str:
    """A row of the batch as SQL: a struct of its columns; arrays, structs and maps as JSON. Args: types: of them."""
    fields = [f"{as_stored(name, kind)} as {quoted(name)}" for name, kind in types.items()]
    return f"struct({', '.join(fields)})"


def as_stored(name: str, kind: str) -> str:
    if PLAIN.fullmatch(kind):
        return quoted(name)
    is_nested = kind.startswith(("array<", "struct<", "map<"))
    return f"to_json({quoted(name)}, {JSON})" if is_nested else f"cast({quoted(name)} as string)"


def reason_column(batch: Iterable[str]) -> str:
    """The name of the column with the reason, as in the macro `set_aside`."""
    return "reason" if find("reason", list(batch)) is None else "set_aside_reason"


def columns(types: Mapping[str, str]) -> dict[str, str]:
    """Name to type in the table of the rows set aside. Args: types: of the columns of the batch."""
    found = {name: kind if PLAIN.fullmatch(kind) else "string" for name, kind in types.items()}
    # these rows may come from that table, corrected
    found = {name: kind for name, kind in found.items() if find(name, GENERATED) is None}
    return {**found, reason_column(types): "string", **GENERATED}


def rows(aside: DataFrame, types: Mapping[str, str], batch_id: str) -> DataFrame:
    """The rows for that table. Args: aside: ``reason`` and ``given`` (an array of `as_given`) of batch.events."""
    wanted = columns(types)
    values = {name: f"cast(given.{quoted(name)} as {kind})" for name, kind in wanted.items() if find(name, types)}
    values |= {
        reason_column(types): "reason",
        "set_aside_at": "now()",
        "set_aside_batch_id": literal(batch_id),
        ROW_ID: f"sha2(to_json(struct(given, reason), {JSON}), 256)",
    }
    one_each = aside.selectExpr("reason", "explode(given) as given")
    listed = one_each.selectExpr(*(f"{values[name]} as {quoted(name)}" for name in wanted))
    return listed.dropDuplicates([ROW_ID])
