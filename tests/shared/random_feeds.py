"""Random feeds of change data capture, for merges: partial rows, a clock that runs back, truncations."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import random_histories as histories
import reference as ref
from pyspark.sql import DataFrame, SparkSession
from random_histories import KEYS, NAMES, START
from reference import Row

from healing_tables import DimensionSpec

DDL = histories.ddl() + ", lsn int, born timestamp"
MARK = "(unchanged)"
RULES: dict[str, dict[str, Any]] = {
    "partial": {"ignore_nulls": ["a", "b"], "unchanged_value": {"c": MARK, "d": MARK}, "tie_break_by": "lsn"},
    "sequence": {"ignore_nulls": True, "sequence_by": "lsn"},
    "greatest": {"ignore_nulls": True, "unchanged_value": {"d": MARK}, "on_tie": "greatest"},
    "sequence only": {"sequence_by": ["lsn"]},
    "truncations": {"tie_break_by": "lsn"},
    "deleted rows": {"tie_break_by": "lsn", "deleted_rows": True},
    "first starts": {
        "ignore_nulls": True,
        "sequence_by": "lsn",
        "deleted_rows": True,
        "valid_from_first": {"batch": "born"},
    },
}
TRUNCATED = "op = 't'"
MINUTES, TRUNCATIONS = 40, 4  # of a feed, however many rows it has: so ties are as frequent with more keys


def random_feed(seed: int, rules: str, *, keys: int = KEYS // 5, rows: int = 400 * KEYS // 300) -> list[Row]:
    """Rows in the order of their sequence, a tenth of them twice."""
    choose = random.Random(seed)
    found: list[Row] = []
    for lsn in range(rows):
        minute = max(0, lsn * MINUTES // rows + choose.choice((0, 0, 0, 1, -3)))
        values = {name: choose.choice((None, None, "x", "y", MARK)) for name in NAMES}
        op = choose.choice("UUUUD")
        key: int | None = choose.randrange(keys)
        if rules != "sequence only" and choose.random() < TRUNCATIONS / rows:
            op, key = "t", None
        born = START - dt.timedelta(days=choose.randrange(30)) if choose.random() < 0.2 else None
        row = {"id": key, "at": START + dt.timedelta(minutes=minute), "op": op, **values, "lsn": lsn, "born": born}
        found += [row] * (2 if choose.random() < 0.1 else 1)
    return found


def options_of(rules: str) -> dict[str, Any]:
    truncated = {} if rules == "sequence only" else {"truncated_when": TRUNCATED}
    return {"deleted_when": "op = 'D'", **truncated, **RULES[rules]}


def frame(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], DDL)


def expected(rows: Sequence[Row], spec: DimensionSpec, rules: str) -> ref.Dimension:
    dim = histories.expected(rows, spec)
    given = options_of(rules)
    (source,) = dim.sources
    nulls = given.get("ignore_nulls", ())
    source = replace(
        source,
        columns={**source.columns, "lsn": "int", "born": "timestamp"},
        on_tie=given.get("on_tie", "error"),
        tie_break_by=("lsn",) if "tie_break_by" in given else (),
        sequence_by=("lsn",) if "sequence_by" in given else (),
        ignore_nulls=True if nulls is True else tuple(nulls),
        unchanged_value=given.get("unchanged_value", {}),
        truncated_when=ref.Condition(TRUNCATED, ("op",), lambda row: row["op"] == "t")
        if "truncated_when" in given
        else None,
    )
    first = {source.name: "born"} if "valid_from_first" in given else None
    return replace(dim, sources=(source,), deleted_rows=given.get("deleted_rows", False), valid_from_first=first)
