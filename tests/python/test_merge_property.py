"""Batches merged in order give the dimension that a rebuild gives: the two halves of the package check each other."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from lab import Lab, plain_rows
from pyspark.sql import SparkSession

from healing_tables import DimensionSpec, merge

pytestmark = pytest.mark.proof
COLUMNS = {
    "id": "int",
    "part": "string",
    "at": "timestamp",
    "op": "string",
    "a_text": "string",
    "b_double": "double",
    "c_decimal": "decimal(12,8)",
    "d_date": "date",
    "e_stamp": "timestamp",
    "f_flag": "boolean",
    "g_bytes": "binary",
    "h_list": "array<string>",
}
ATTRIBUTES: dict[str, Any] = {
    "a_text": 2,
    "b_double": 2,
    "c_decimal": 6,
    "d_date": {"scd_type": 3, "changed_at": True},
    "e_stamp": {"scd_type": 1, "changed_at": True},
    "f_flag": 1,
    "g_bytes": 2,
    "h_list": 6,
}
OPTIONS: dict[str, Any] = {
    "column_names": {
        "compressed_row_count": None,  # a batch leaves no trace of repeats
        "ended_by_delete": "ended_by_delete",
        "last_updated": "last_updated",
        "change_reason": "change_reason",
    },
    "surrogate_key": {"name": "sk", "strategy": "hash"},
    "valid_to_current": "2999-12-31",
    "current_values": ["Y", "N"],
}
CUTS = {1: [300, 301, 900], 2: [1500]}
START = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)


def history(seed: int) -> list[tuple[Any, ...]]:
    choose = random.Random(seed)
    rows: list[tuple[Any, ...]] = []
    for key in range(25):
        moments = choose.sample(range(2000), choose.randint(1, 9))
        for minute in moments:
            values = (
                choose.choice([None, "", "a", "a|b", "^^NULL^^", "back\\slash"]),
                choose.choice([None, 0.0, -0.0, 1.5, float("nan")]),
                choose.choice([None, Decimal("0.00000001"), Decimal("2.5")]),
                choose.choice([None, dt.date(2024, 2, 29), dt.date(1900, 1, 1)]),
                choose.choice([None, START + dt.timedelta(microseconds=1230)]),
                choose.choice([None, True, False]),
                choose.choice([None, b"\x00\xff", b""]),
                choose.choice([None, [], ["x", None], ["x"]]),
            )
            gone = choose.random() < 0.25
            at = START + dt.timedelta(minutes=minute, microseconds=minute)
            rows.append((key, "ß|" if key % 2 else "p", at, "D" if gone else "U", *values))
    return rows


@pytest.fixture(scope="module")
def rebuilt(lab: Lab) -> Lab:
    """Tables ``changes_<seed>``, and ``rebuilt_<seed>``, which dimension() makes of them in one run."""
    ddl = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    arguments = ", ".join(f"{name}={value!r}" for name, value in OPTIONS.items())
    for seed in CUTS:
        changes = lab.spark.createDataFrame(history(seed), ddl)
        changes.coalesce(1).write.saveAsTable(f"{lab.schema}.changes_{seed}", format="parquet")
        source = (
            f"{{'log': {{'relation': api.Relation.create(schema=target.schema, identifier='changes_{seed}'), "
            "'changed_at': 'at', 'deleted_when': \"op = 'D'\"}}"
        )
        lab.model(
            f"rebuilt_{seed}",
            f"{{{{ healing_tables.dimension(sources={source}, key_columns=['id', 'part'], attributes={ATTRIBUTES!r}, {arguments}) }}}}",
            materialized="table",
            file_format="parquet",
        )
    lab.dbt("run")
    assert all(lab.results[f"rebuilt_{seed}"][0] == "success" for seed in CUTS), lab.results
    return lab


def spec_of(**options: Any) -> DimensionSpec:
    return DimensionSpec(
        key_columns=["id", "part"],
        attributes=ATTRIBUTES,
        changed_at="at",
        deleted_when="op = 'D'",
        max_removed_keys_ratio=1,
        **OPTIONS,
        **options,
    )


def assert_equal_tables(spark: SparkSession, name: str, wanted: str) -> None:
    merged, other = spark.table(name), spark.table(wanted)
    assert merged.columns == other.columns
    assert dict(merged.dtypes) == dict(other.dtypes)
    assert repr(plain_rows(merged)) == repr(plain_rows(other))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", CUTS)
def test_batches_in_order_equal_a_rebuild(rebuilt: Lab, seed: int) -> None:
    name, spec = f"{rebuilt.schema}.merged_{seed}", spec_of()
    edges = [START + dt.timedelta(minutes=minute) for minute in [-1, *CUTS[seed], 3000]]
    read = rebuilt.spark.table(f"{rebuilt.schema}.changes_{seed}")
    for low, high in pairwise(edges):
        part = read.where(
            f"at > timestamp '{low.isoformat()}' and at <= timestamp '{high.isoformat()}'"
        )
        merge(part, name, spec)
    assert_equal_tables(rebuilt.spark, name, f"{rebuilt.schema}.rebuilt_{seed}")
    # whatever is merged again is known already
    assert merge(read, name, spec).commit_version is None


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("seed", CUTS)
def test_batches_in_any_order_equal_a_rebuild_with_a_change_log(rebuilt: Lab, seed: int) -> None:
    name = f"{rebuilt.schema}.logged_{seed}"
    spec = spec_of(change_log=f"{name}_changes")
    rows = rebuilt.spark.table(f"{rebuilt.schema}.changes_{seed}").collect()
    random.Random(seed).shuffle(rows)
    third = len(rows) // 3
    # the second and the third part overlap
    for part in (rows[:third], rows[third : third + third // 2], rows[third:]):
        merge(
            rebuilt.spark.createDataFrame(part, ", ".join(map(" ".join, COLUMNS.items()))),
            name,
            spec,
        )
    assert_equal_tables(rebuilt.spark, name, f"{rebuilt.schema}.rebuilt_{seed}")


@pytest.mark.usefixtures("interpreted")
def test_batches_of_disjoint_keys_commute(rebuilt: Lab) -> None:
    read = rebuilt.spark.table(f"{rebuilt.schema}.changes_1")
    for first, second in ((0, 1), (1, 0)):
        for rest in (first, second):
            merge(read.where(f"id % 2 = {rest}"), f"{rebuilt.schema}.from_{first}", spec_of())
    assert_equal_tables(rebuilt.spark, f"{rebuilt.schema}.from_0", f"{rebuilt.schema}.from_1")
    assert_equal_tables(rebuilt.spark, f"{rebuilt.schema}.from_0", f"{rebuilt.schema}.rebuilt_1")
