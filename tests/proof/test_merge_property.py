"""Batches merged in order give the dimension that a rebuild gives: the two halves of the package check each other."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import reference as ref
from lab import Lab
from pyspark.sql import DataFrame, SparkSession
from reference import Row
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

KEYS = 300
LAST = "2999-12-31"  # the open end
NAMES = ("a", "b", "c", "d")
# A seed of the caller's choice, to look further than a run of the tests does
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
    """Changes of 300 keys that leave and return, and whose values become NULL and come back."""
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
    assert sorted(found, key=repr) == sorted(rows, key=repr)


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
    [(1, "delta"), (7, "delta"), *((3, table) for table in TARGETS)],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_any_cut_gives_the_dimension_of_the_whole(
    lab: Lab, family: str, parts: int, table: str, request: pytest.FixtureRequest
) -> None:
    """Each batch comes twice, one right after the other: the second one changes nothing."""
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
    for part in in_order(rows, parts):
        for is_repeated in (False, True):
            result = merge(frame(lab.spark, part, kind), target, spec)
            assert result.commit_version is None or not is_repeated
    if isinstance(target, (FilesTarget, PostgresTarget)):  # a copy where the comparison looks
        target.rows(lab.spark).write.saveAsTable(name, format="parquet")
        history = target.beside("_history").read(lab.spark)
        if history is not None:
            history.write.saveAsTable(f"{name}_history", format="parquet")
    assert_is(lab.spark, name, expected(rows, spec, kind))


LOGGED: dict[str, Sequence[int]] = {"types mixed": (2, 0, 1, 3, 6), "flat": (1, 0, 3)}


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("table", ["delta", "orc"])
@pytest.mark.parametrize("family", LOGGED)
def test_a_log_gives_the_whole_in_any_order(lab: Lab, family: str, table: str) -> None:
    name = f"{lab.schema}.logged_{family.replace(' ', '_')}_{table}"
    spec = spec_for(mix(SEED + 1, LOGGED[family]), change_log=f"{name}_changes")
    rows = random_changes(SEED + 1)
    parts: list[list[Row]] = [[], [], [], []]
    choose = random.Random(SEED)
    for row in rows:
        choose.choice(parts).append(row)
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
    told: list[Row] = []
    known: set[Any] = set()
    for minute in (10, 20, 30, 40):
        at = START + dt.timedelta(minutes=minute)
        newest = {row["id"]: row for row in rows if instant_of(row) <= at}  # in the order of moments
        held = [row for row in newest.values() if row["op"] == "U"]
        told += [row if with_moments else {**row, "at": at} for row in held]
        ids = {row["id"] for row in held}
        told += [{**newest[key], "at": at, "op": "D"} for key in known - ids]
        known |= ids
        for is_repeated in (False, True):
            given = frame(lab.spark, held).drop("op", *([] if with_moments else ["at"]))
            result = merge(given, name, spec, at=at)
            assert result.commit_version is None or not is_repeated
    assert_is(lab.spark, name, expected(told, spec))


def instant_of(row: Row) -> dt.datetime:
    at = row["at"]
    assert isinstance(at, dt.datetime)
    return at
