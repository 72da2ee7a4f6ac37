"""Random histories of many keys, and what the reference makes of them."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

import reference as ref
from pyspark.sql import DataFrame, SparkSession
from reference import Row
from tables import plain_rows

from healing_tables import DimensionSpec

START = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
KEYS = int(os.environ.get("HEALING_TABLES_KEYS", "300"))  # of a history
LAST = "2999-12-31"  # the open end
NAMES = ("a", "b", "c", "d")
LOGGED: dict[str, Sequence[int]] = {"types mixed": (2, 0, 1, 3, 6), "flat": (1, 0, 3), "type 4": (4, 0, 1)}
ALL = ("ended_by_delete", "last_updated", "change_reason")
FAMILIES: dict[str, tuple[Sequence[int], str, dict[str, Any]]] = {
    "types mixed": ((2, 0, 1, 3, 6), "timestamp", {}),
    "types mixed with all columns": (
        (6, 0, 1, 2, 3),
        "timestamp",
        {"column_names": {n: n for n in ALL}},
    ),
    "flat": ((1, 0, 3), "timestamp", {}),
    "flat with all columns": ((3, 0, 1), "timestamp", {"column_names": {n: n for n in ALL}}),
    "type 4": ((4, 0, 1), "timestamp", {}),
    "type 4 with dates": ((4, 0, 1), "date", {}),
    "dates": ((2, 1, 3, 6), "date", {}),
    "timestamps without zone": ((2, 0, 1, 3), "timestamp_ntz", {}),
}
# of the caller's choice, to look further than a run of the tests does
SEED = int(os.environ.get("HEALING_TABLES_SEED", "1"))


def mix(seed: int, types: Sequence[int]) -> dict[str, Any]:
    """An SCD type for each attribute, the first type for the first one; 1 and 3 with ``changed_at`` or without it."""
    choose = random.Random(seed)
    found: dict[str, Any] = {}
    for name in NAMES:
        scd_type = choose.choice(types) if found else types[0]
        changed_at = scd_type in (1, 3) and choose.random() < 0.5
        found[name] = {"scd_type": scd_type, "changed_at": changed_at}
    return found


def random_changes(seed: int, *, moments: int = 40, kind: str = "timestamp") -> list[Row]:
    """Changes of KEYS keys that leave and return, and whose values become NULL and come back."""
    choose = random.Random(seed)
    found: list[Row] = []
    for key in range(KEYS):
        values: dict[str, Any] = dict.fromkeys(NAMES)
        for place in sorted(choose.sample(range(moments), choose.randint(1, 8))):
            at = START + (dt.timedelta(days=place) if kind == "date" else dt.timedelta(minutes=place))
            for name in NAMES:
                if choose.random() < 0.5:
                    values[name] = choose.choice([None, "x", "y", "z"])
            gone = choose.random() < 0.3
            found.append({"id": key, "at": moment_as(at, kind), "op": "D" if gone else "U", **values})
    return found


def moment_as(at: dt.datetime, kind: str) -> dt.date:
    if kind == "date":
        return at.date()
    return at.replace(tzinfo=None) if kind == "timestamp_ntz" else at


def ddl(kind: str = "timestamp") -> str:
    return f"id int, at {kind}, op string, " + ", ".join(f"{name} string" for name in NAMES)


def frame(spark: SparkSession, rows: Sequence[Row], kind: str = "timestamp") -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], ddl(kind))


def in_order(rows: Sequence[Row], parts: int) -> list[list[Row]]:
    """Cut at moments into so many batches."""
    places: list[Any] = sorted({row["at"] for row in rows})
    size = -(-len(places) // parts)
    cuts = [set(places[i : i + size]) for i in range(0, len(places), size)]
    return [[row for row in rows if row["at"] in cut] for cut in cuts]


def spec_for(attributes: Mapping[str, Any], **options: Any) -> DimensionSpec:
    return DimensionSpec(
        **{
            "key_columns": "id",
            "attributes": attributes,
            "changed_at": "at",
            "change_log": False,
            "deleted_when": "op = 'D'",
            "max_removed_keys_ratio": 1,
            "valid_to_current": LAST,
            **options,
        }
    )


def expected(rows: Sequence[Row], spec: DimensionSpec, kind: str = "timestamp") -> ref.Dimension:
    """The same dimension for the reference."""
    columns = {"id": "int", "at": kind, "op": "string", **dict.fromkeys(NAMES, "string")}
    is_gone = ref.Condition("op = 'D'", ("op",), lambda row: row["op"] == "D")
    source = ref.Source("log", "changes", columns, rows, {"id": "id"}, ("at",), deleted_when=is_gone)
    attributes = tuple(
        ref.Attribute(name, (("log", name),), scd_type=found.scd_type, changed_at=found.changed_at)
        for name in NAMES
        if (found := spec.attribute(name)) is not None
    )
    names = {"compressed_row_count": None, **spec.column_names}
    return ref.Dimension(("id",), (source,), attributes, column_names=names, valid_to_current=LAST)


def assert_holds(spark: SparkSession, name: str, wanted: Sequence[Row]) -> None:
    """The table has these rows, in the columns that they have."""
    columns = list(wanted[0])
    rows = [tuple(as_text(row[column]) for column in columns) for row in wanted]
    found = [tuple(map(as_text, row)) for row in plain_rows(spark.table(name), columns)]
    lacking = sorted(set(rows) - set(found), key=repr)
    assert sorted(found, key=repr) == sorted(rows, key=repr), (lacking, sorted(set(found) - set(rows), key=repr))


def as_text(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return ref.moment_text(value)
    return str(value) if isinstance(value, dt.date) else value


def assert_is(spark: SparkSession, name: str, dim: ref.Dimension) -> None:
    if any(attribute.scd_type == 4 for attribute in ref.attributes_of(dim)):
        current, history = ref.current_and_history(dim)
        assert_holds(spark, f"{name}_history", history)
        assert_holds(spark, name, current)
    else:
        assert_holds(spark, name, ref.dimension_rows(dim))


def in_any_order(rows: Sequence[Row], parts: int) -> list[list[Row]]:
    """Cut without regard to moments."""
    choose = random.Random(SEED)
    found: list[list[Row]] = [[] for _ in range(parts)]
    for row in rows:
        choose.choice(found).append(row)
    return found


def full_batches(rows: Sequence[Row], *, with_moments: bool) -> tuple[list[tuple[dt.datetime, list[Row]]], list[Row]]:
    """Batches of every key that exists at four moments, and the history that they tell.

    Args: rows: in the order of moments; with_moments: they keep their own.
    """
    told: list[Row] = []
    known: set[Any] = set()
    batches = []
    for minute in (10, 20, 30, 40):
        at = START + dt.timedelta(minutes=minute)
        newest = {row["id"]: row for row in rows if instant_of(row) <= at}
        held = [row for row in newest.values() if row["op"] == "U"]
        told += [row if with_moments else {**row, "at": at} for row in held]
        ids = {row["id"] for row in held}
        told += [{**newest[key], "at": at, "op": "D"} for key in known - ids]
        known |= ids
        batches.append((at, held))
    return batches, told


def instant_of(row: Row) -> dt.datetime:
    at = row["at"]
    assert isinstance(at, dt.datetime)
    return at
