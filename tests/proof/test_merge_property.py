"""Batches merged in order give the dimension that a rebuild gives: the two halves of the package check each other."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from lab import Lab
from pyspark.sql import SparkSession
from random_histories import (
    FAMILIES,
    LOGGED,
    SEED,
    START,
    assert_is,
    expected,
    frame,
    full_batches,
    in_any_order,
    in_order,
    mix,
    random_changes,
    spec_for,
)
from tables import plain_rows

from healing_tables import DeltaTarget, DimensionSpec, FilesTarget, HiveTarget, PostgresTarget, merge

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
            f"{{{{ healing_tables.dimension(sources={source}, key_columns=['id', 'part'], attributes={ATTRIBUTES!r}, "
            f"{arguments}) }}}}",
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
        part = read.where(f"at > timestamp '{low.isoformat()}' and at <= timestamp '{high.isoformat()}'")
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


# --- random histories of many keys, merged batch by batch -----------------------------------------

TARGETS: dict[str, Callable[[str], DeltaTarget | FilesTarget | HiveTarget | PostgresTarget]] = {
    "files": lambda name: FilesTarget(f"/{name}"),
    "files in csv": lambda name: FilesTarget(f"/{name}", "csv"),
    "postgres": PostgresTarget,
    "delta": DeltaTarget,
    "orc": HiveTarget,
    "parquet in buckets": partial(HiveTarget, file_format="parquet", key_buckets=3),
}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("parts", "table"),
    [(1, "delta"), (7, "files"), *((3, table) for table in TARGETS)],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_any_cut_gives_the_dimension_of_the_whole(
    lab: Lab, family: str, parts: int, table: str, request: pytest.FixtureRequest
) -> None:
    """Each batch comes again right after it, of three into Delta; elsewhere the last one: that changes nothing."""
    types, kind, options = FAMILIES[family]
    seed = SEED + sum(map(ord, family))
    spec = spec_for(mix(seed, types), **options)
    rows = random_changes(seed, kind=kind)
    name = f"{lab.schema}.{family.replace(' ', '_')}_{parts}_{table.split()[-1]}"
    target: Any = TARGETS[table](name)
    if isinstance(target, PostgresTarget):
        server = request.getfixturevalue("postgres")
        server.run(f"create schema if not exists {lab.schema}")
        target = PostgresTarget(name, server.connection)
    if isinstance(target, FilesTarget):
        target = replace(target, path=f"{request.getfixturevalue('tmp_path')}/dim")
    batches = in_order(rows, parts)
    for part in batches:
        merge(frame(lab.spark, part, kind), target, spec)
        if part is batches[-1] or (parts, table) == (3, "delta"):
            assert merge(frame(lab.spark, part, kind), target, spec).commit_version is None
    if isinstance(target, (FilesTarget, PostgresTarget)):  # a copy where the comparison looks
        target.rows(lab.spark).write.saveAsTable(name, format="parquet")
        history = target.beside("_history").read(lab.spark)
        if history is not None:
            history.write.saveAsTable(f"{name}_history", format="parquet")
    assert_is(lab.spark, name, expected(rows, spec, kind))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("family", "table"),
    [(family, table) for family in LOGGED for table in ("delta", "orc")][:-1],  # type 4 in ORC
)
def test_a_log_gives_the_whole_in_any_order(lab: Lab, family: str, table: str) -> None:
    name = f"{lab.schema}.logged_{family.replace(' ', '_')}_{table}"
    spec = spec_for(mix(SEED + 1, LOGGED[family]), change_log=f"{name}_changes")
    rows = random_changes(SEED + 1)
    parts = in_any_order(rows, 4)
    for part in parts:
        merge(frame(lab.spark, part), TARGETS[table](name), spec)
    assert merge(frame(lab.spark, parts[0]), name, spec).commit_version is None
    assert_is(lab.spark, name, expected(rows, spec))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("family", LOGGED)
def test_a_log_begun_over_a_filled_table(lab: Lab, family: str) -> None:
    """What comes later comes in any order; the log knows of what was there before only what the table shows."""
    name = f"{lab.schema}.begun_{family.replace(' ', '_')}"
    spec = spec_for(mix(SEED + 2, LOGGED[family]))
    rows = random_changes(SEED + 2)
    filled, *later = in_order(rows, 4)
    merge(frame(lab.spark, filled), name, spec)
    logged = replace(spec, change_log=f"{name}_changes")
    assert merge(frame(lab.spark, filled[:5]), name, logged).commit_version is None
    for part in reversed(later):
        merge(frame(lab.spark, part), name, logged)
    assert_is(lab.spark, name, expected(rows, spec))


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("types", [(2, 0, 1, 3, 6), (1, 0, 3), (4, 0, 1)], ids=["mixed", "flat", "type_4"])
@pytest.mark.parametrize("with_moments", [False, True], ids=["plain", "moments"])
def test_full_batches_of_many_keys(lab: Lab, types: Sequence[int], with_moments: bool) -> None:
    """Each batch holds every key that exists at its moment, and comes twice."""
    name = f"{lab.schema}.full_{types[0]}_{with_moments}"
    options: dict[str, Any] = {"deleted_when": None, "full_batch": True}
    if not with_moments:
        options["changed_at"] = None
    spec = spec_for(mix(SEED + 3, types), **options)
    rows = random_changes(SEED + 3)
    batches, told = full_batches(rows, with_moments=with_moments)
    for at, held in batches:
        for is_repeated in (False, True):
            given = frame(lab.spark, held).drop("op", *([] if with_moments else ["at"]))
            result = merge(given, name, spec, at=at)
            assert result.commit_version is None or not is_repeated
    assert_is(lab.spark, name, expected(told, spec))
