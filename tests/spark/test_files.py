"""Merges into files: one commit for all tables of a dimension, values as they are, other writers noticed."""

from __future__ import annotations

import datetime as dt
import logging
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cases import merge_cases, spec_of
from pages import blocks_of
from pyspark.sql import DataFrame
from sessions import ROOT, with_settings
from tables import Tables, plain_rows

from healing_tables import (
    ArgumentError,
    DimensionSpec,
    FilesTarget,
    LateChangeError,
    TargetError,
    merge,
)
from healing_tables.cli import main
from healing_tables.targets.files_commits import Commits
from healing_tables.targets.object_store import ObjectStore
from healing_tables.targets.paths import absolute, relative

pytestmark = pytest.mark.usefixtures("interpreted")
SPEC = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1})
SEQUENCE = {"name": "sk", "strategy": "sequence"}
FOREVER = "9999-12-31"


@pytest.fixture
def dim(tmp_path: Path) -> FilesTarget:
    return FilesTarget(f"{tmp_path}/dim 1% ü")


def batch(tables: Tables, *rows: tuple[int, str | None]) -> DataFrame:
    return tables.spark.createDataFrame([(*row, "Bern") for row in rows], "id int, name string, city string")


def versions(tables: Tables, dim: FilesTarget, version: int | None = None) -> list[tuple[Any, ...]]:
    stored = dim.read(tables.spark, version)
    assert stored is not None
    return plain_rows(
        stored.selectExpr("id", "name", "cast(valid_from as string) valid_from", "cast(valid_to as string) valid_to")
    )


def names(tables: Tables, dim: FilesTarget) -> list[tuple[Any, ...]]:
    stored = dim.read(tables.spark)
    assert stored is not None
    return plain_rows(stored, ["id", "name"])


def side_rows(tables: Tables, dim: FilesTarget, suffix: str, *columns: str) -> list[tuple[Any, ...]]:
    stored = FilesTarget(dim.path + suffix).read(tables.spark)
    assert stored is not None
    return plain_rows(stored, columns)


@pytest.mark.parametrize("case", merge_cases())
def test_case(either: Tables, case: dict[str, Any], tmp_path: Path) -> None:
    """Starts from parquet files of another writer. After the first merge, the path alone names the target."""
    path = f"{tmp_path}/dim"
    places = {"dim": path, "current": path, "history": f"{path}_history"}
    for part, table in case["input"].items():
        if part != "batches":
            either.frame(table["columns"], table["rows"]).write.parquet(places[part])
    target: FilesTarget | str = FilesTarget(path)
    for given in case["input"]["batches"]:
        rows = either.frame(given["rows"]["columns"], given["rows"]["rows"])
        result = merge(rows, target, spec_of(case), at=given["at"], full_batch=given.get("full_snapshot", False))
        target = path if result.commit_version else target
    for part, table in case["expect"].items():
        columns = [column for column, _ in table["columns"]]
        stored = FilesTarget(places[part]).read(either.spark)
        assert stored is not None
        assert plain_rows(stored, columns) == plain_rows(either.frame(table["columns"], table["rows"]))


@pytest.mark.slow
def test_a_table_that_a_merge_has_made(tables: Tables, dim: FilesTarget) -> None:
    """With integer keys and an audit; the path alone names it afterwards."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, surrogate_key=SEQUENCE, audit={})
    assert merge(batch(tables, (1, "A"), (2, "A"), (3, None)), dim, spec, at="2024-01-01").inserted == 3
    assert merge(batch(tables, (1, "B"), (3, None)), dim.path, spec, at="2024-01-02").closed == 1
    assert merge(batch(tables, (1, "B")), dim.path, spec, at="2024-01-02").commit_version is None
    result = merge(batch(tables, (2, "C"), (4, "A")), f"file://{dim.path}", spec, at="2024-01-03", full_batch=True)
    assert (result.inserted, result.closed, result.commit_version) == (2, 3, 3)
    assert versions(tables, dim) == [
        (1, "A", "2024-01-01", "2024-01-02"),
        (1, "B", "2024-01-02", "2024-01-03"),
        (2, "A", "2024-01-01", "2024-01-03"),
        (2, "C", "2024-01-03", FOREVER),
        (3, None, "2024-01-01", "2024-01-03"),
        (4, "A", "2024-01-03", FOREVER),
    ]
    assert [row[:2] for row in versions(tables, dim, version=1)] == [(1, "A"), (2, "A"), (3, None)]
    numbered = dim.read(tables.spark)
    assert numbered is not None
    keys = [(1, "A", 1), (1, "B", 4), (2, "A", 2), (2, "C", 5), (3, None, 3), (4, "A", 6)]
    assert plain_rows(numbered, ["id", "name", "sk"]) == keys
    assert len(side_rows(tables, dim, "_audit", "key")) == 10
    with pytest.raises(ArgumentError, match="kept: 1, 2, 3"):
        dim.read(tables.spark, 4)


@pytest.mark.slow
def test_the_folders_can_be_moved(tables: Tables, dim: FilesTarget, tmp_path: Path) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"name": 4, "city": 1})
    merge(batch(tables, (1, "A")), dim, spec, at="2024-01-01")
    merge(batch(tables, (1, "B")), dim, spec, at="2024-01-02")
    (tmp_path / "new").mkdir()
    for suffix in ("", "_history"):
        os.rename(dim.path + suffix, f"{tmp_path}/new/moved{suffix}")
    moved = FilesTarget(f"{tmp_path}/new/moved")
    assert FilesTarget(f"{tmp_path}/gone").read(tables.spark) is None
    assert not (tmp_path / "gone").exists()  # reading makes no folder
    assert names(tables, moved) == [(1, "B")]


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_values_of_every_type(tables: Tables, tmp_path: Path, file_format: str) -> None:
    """Come back as they were, in a session of another time zone as well."""
    texts = [
        None,
        "",
        " ",
        "a,b",
        'say "hi"',
        "'",
        "two\nlines",
        "cr\r\nlf\rx",
        "\\",
        "\\N",
        "null",
        "ß|😀",
        "\t",
        "#x",
    ]
    texts += ['"', '""', "ends with \\", ",", "NaN", "x\u2028y", "\ufeffbom"]
    moments = [
        dt.datetime(2024, 3, 31, 1, 30, 0, 123456, dt.timezone.utc),
        dt.datetime(1, 1, 2, tzinfo=dt.timezone.utc),
        dt.datetime(9999, 12, 30, 23, 59, 59, 999999, dt.timezone.utc),
        None,
    ]
    numbers_ = [0.1, float("nan"), float("inf"), -0.0, 1e-300, None]
    rows = [
        (
            number,
            text,
            moments[number % 4],
            None if moments[number % 4] is None else moments[number % 4].replace(tzinfo=None),  # type: ignore[union-attr]
            [dt.date(1, 1, 1), dt.date(9999, 12, 31), None][number % 3],
            [Decimal("12345678901234567890.0123456789"), None][number % 2],
            numbers_[number % 6],
            [True, False, None][number % 3],
        )
        for number, text in enumerate(texts)
    ]
    schema = 'id bigint, `a, "name"\n` string, seen timestamp, wall timestamp_ntz, day date, price decimal(38,10), '
    given = tables.spark.createDataFrame(rows, schema + "share double, flag boolean")
    dim = FilesTarget(f"{tmp_path}/dim", file_format)
    spec = DimensionSpec(key_columns="id")
    merge(given, dim, spec, at="2024-01-01")
    for zone in ("UTC", "America/St_Johns"):
        with with_settings(tables.spark, {"spark.sql.session.timeZone": zone}):
            stored = dim.read(tables.spark)
            assert stored is not None
            assert stored.schema.fields[: len(given.columns)] == given.schema.fields
            same = "hash(*) as hash", "*"
            found = stored.select(given.columns).selectExpr(*same).exceptAll(given.selectExpr(*same))
            assert [row.asDict() for row in found.collect()] == []
            assert stored.count() == len(texts)
            assert merge(given, dim, spec, at="2024-01-02").commit_version is None
    ending = ".csv" if file_format == "csv" else ".parquet"
    assert [name for name in Path(dim.path).rglob("part-*") if not str(name).endswith(ending)] == []


@pytest.mark.slow
def test_what_a_csv_cannot_hold(tables: Tables, tmp_path: Path) -> None:
    dim = FilesTarget(f"{tmp_path}/dim", "csv")
    rows = tables.spark.sql("select 1 as id, array('a') as tags, X'00' as raw, 'a' as name")
    with pytest.raises(TargetError, match=r"(?s)2 mistakes.*column tags.*array<string>.*column raw"):
        merge(rows, dim, DimensionSpec(key_columns="id"))
    assert dim.read(tables.spark) is None


@pytest.mark.slow
def test_two_merges_from_one_state(tables: Tables, dim: FilesTarget, between: Any) -> None:
    """One file has the next number, and so one of the two merges: the other reads again."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, surrogate_key=SEQUENCE, audit={})
    merge(batch(tables, (1, "A")), dim, spec, at="2024-01-01")
    between(Commits, "add", lambda: merge(batch(tables, (2, "A")), dim, spec, at="2024-01-02"))
    assert merge(batch(tables, (1, "B"), (3, "A")), dim, spec, at="2024-01-03").attempts == 2
    stored = dim.read(tables.spark)
    assert stored is not None
    assert plain_rows(stored, ["id", "name", "sk"]) == [(1, "A", 1), (1, "B", 3), (2, "A", 2), (3, "A", 4)]
    assert len(side_rows(tables, dim, "_audit")) == 5


@pytest.mark.slow
def test_two_merges_that_make_the_table(tables: Tables, dim: FilesTarget, between: Any) -> None:
    between(Commits, "add", lambda: merge(batch(tables, (2, "A")), dim, SPEC, at="2024-01-01"))
    assert merge(batch(tables, (1, "A")), dim, SPEC, at="2024-01-02").attempts == 2
    assert [row[:2] for row in versions(tables, dim)] == [(1, "A"), (2, "A")]


def test_an_answer_of_the_store_that_is_lost(tables: Tables, dim: FilesTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commit exists although the client got an error."""
    then = ObjectStore.create

    def create(store: ObjectStore, name: str, content: Any) -> bool:
        then(store, name, content)
        raise TargetError("the connection was reset")

    monkeypatch.setattr(ObjectStore, "create", create)
    result = merge(batch(tables, (1, "A")), dim, SPEC, at="2024-01-01")
    assert (result.commit_version, result.attempts) == (1, 1)
    assert [row[:2] for row in versions(tables, dim)] == [(1, "A")]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["add", "write", "expire"])
def test_a_process_dies(tables: Tables, dim: FilesTarget, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Before the commit nothing has happened; after it, everything: nothing is left to be finished."""

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    spec = DimensionSpec(key_columns="id", attributes={"name": 4, "city": 1}, audit={})
    merge(batch(tables, (1, "A")), dim, spec, at="2024-01-01")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(FilesTarget if moment == "write" else Commits, moment, interrupt)
        merge(batch(tables, (1, "B")), dim, spec, at="2024-01-02")
    is_done = moment == "expire"
    assert names(tables, dim) == [(1, "B" if is_done else "A")]
    assert side_rows(tables, dim, "_history", "name") == ([("A",)] if is_done else [])
    assert len(side_rows(tables, dim, "_audit")) == (2 if is_done else 1)
    merge(batch(tables, (1, "B"), (2, "A")), dim, spec, at="2024-01-03")
    assert names(tables, dim) == [(1, "B"), (2, "A")]
    assert side_rows(tables, dim, "_history", "name") == [("A",)]
    assert len(side_rows(tables, dim, "_audit")) == 3


def age(path: str, seconds: float) -> None:
    """As if what is in a folder had been written earlier."""
    for place, _, names in os.walk(path):
        for name in names:
            then = os.stat(f"{place}/{name}").st_mtime - seconds
            os.utime(f"{place}/{name}", (then, then))


@pytest.mark.slow
def test_old_states_go(tables: Tables, dim: FilesTarget) -> None:
    """Those that are neither among the last ones nor recent, and what a killed merge has left; the audit stays."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, audit={})
    target = FilesTarget(dim.path, keep_versions=2)
    for number in range(1, 4):
        merge(batch(tables, (1, f"v{number}")), target, spec, at=f"2024-01-0{number}")
    left = Path(dim.path, "_data", "rows", "left by a killed merge")
    left.mkdir(parents=True)
    (left / "part-0.parquet").write_text("x")
    assert target.versions(tables.spark) == [1, 2, 3]
    age(dim.path, 3700)
    reader = target.read(tables.spark)
    assert reader is not None
    merge(batch(tables, (1, "v4")), target, spec, at="2024-01-04")
    # version 3 was the newest state until this merge
    assert target.versions(tables.spark) == [3, 4]
    assert not left.exists() or not any(left.iterdir())
    assert [row[1] for row in plain_rows(reader, ["id", "name"])] == ["v1", "v2", "v3"]
    assert [row[1] for row in versions(tables, target)] == ["v1", "v2", "v3", "v4"]
    assert len(side_rows(tables, dim, "_audit")) == 7
    age(dim.path, 3700)
    merge(batch(tables, (1, "v5")), target, spec, at="2024-01-05")
    assert target.versions(tables.spark) == [4, 5]
    with pytest.raises(Exception, match="FAILED_READ_FILE|does not exist"):
        reader.collect()


@pytest.mark.slow
def test_old_states_that_cannot_be_deleted(
    tables: Tables, dim: FilesTarget, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The merge has done its work all the same."""

    def refuse(*_: Any) -> None:
        raise TargetError.one("the target", dim.path, "", "permission denied", "")

    monkeypatch.setattr(ObjectStore, "delete", refuse)
    with caplog.at_level(logging.WARNING, "healing_tables"):
        assert merge(batch(tables, (1, "A")), dim, SPEC, at="2024-01-01").commit_version == 1
    assert "permission denied" in caplog.text


@pytest.mark.slow
def test_a_number_that_is_forgotten(tables: Tables, dim: FilesTarget, between: Any) -> None:
    """A merge that has slept while others went on does not take a number whose file is deleted since."""
    target = FilesTarget(dim.path, keep_versions=1)
    merge(batch(tables, (1, "A")), target, SPEC, at="2024-01-01")

    def others() -> None:
        for number in range(2, 6):
            merge(batch(tables, (number, "A")), target, SPEC, at=f"2024-01-0{number}")
            age(f"{dim.path}/_commits", 3700)

    between(Commits, "add", others)
    assert merge(batch(tables, (9, "B")), target, SPEC, at="2024-01-07").attempts == 2
    assert [row[0] for row in versions(tables, target)] == [1, 2, 3, 4, 5, 9]


@pytest.mark.slow
def test_a_change_log(tables: Tables, dim: FilesTarget) -> None:
    """Added to an existing dimension; from then on, changes may arrive in any order."""
    merge(batch(tables, (1, "A"), (2, "A")), dim, SPEC, at="2024-01-01")
    with pytest.raises(LateChangeError):
        merge(batch(tables, (1, "C")), dim, SPEC, at="2023-01-01")
    logged = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, change_log="changes")
    merge(batch(tables, (1, "C")), dim, logged, at="2024-01-03")
    merge(batch(tables, (1, "B")), dim, logged, at="2024-01-02")
    assert merge(batch(tables, (1, "B")), dim, logged, at="2024-01-02").commit_version is None
    merge(batch(tables, (1, "C"), (2, "A")), dim, logged, at="2024-01-04", full_batch=True)
    assert versions(tables, dim) == [
        (1, "A", "2024-01-01", "2024-01-02"),
        (1, "B", "2024-01-02", "2024-01-03"),
        (1, "C", "2024-01-03", FOREVER),
        (2, "A", "2024-01-01", FOREVER),
    ]
    merge(batch(tables, (1, "D")), dim, SPEC, at="2023-12-31")  # by the log that the dimension records
    assert (1, "D", "2023-12-31", "2024-01-01") in versions(tables, dim)
    dim.set_property(tables.spark, "healing_tables.change_log", None)
    with pytest.raises(LateChangeError):
        merge(batch(tables, (1, "E")), dim, SPEC, at="2023-12-30")


@pytest.mark.slow
def test_a_change_log_over_files_of_others(tables: Tables, dim: FilesTarget, tmp_path: Path) -> None:
    """What they hold is the beginning of the log."""
    made = FilesTarget(f"{tmp_path}/made")
    merge(batch(tables, (1, "A"), (2, "A")), made, SPEC, at="2024-01-01")
    made.rows(tables.spark).write.parquet(dim.path)
    logged = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, change_log="changes")
    merge(batch(tables, (1, "C")), dim, logged, at="2024-01-03")
    merge(batch(tables, (1, "B")), dim, logged, at="2024-01-02")
    assert [row[:2] for row in versions(tables, dim)] == [(1, "A"), (1, "B"), (1, "C"), (2, "A")]


@pytest.mark.slow
def test_a_first_merge_that_is_refused(tables: Tables, dim: FilesTarget) -> None:
    """It leaves tables beside a dimension without rows; the next one may have more columns."""
    bad = batch(tables, (1, "A")).selectExpr("*", "array(1) as tags")
    target = FilesTarget(dim.path, "csv")
    with pytest.raises(TargetError, match="column tags"):
        merge(bad, target, DimensionSpec(key_columns="id", change_log="changes"), at="2024-01-01")
    assert dim.read(tables.spark) is None
    spec = DimensionSpec(key_columns="id", change_log="changes")
    merge(batch(tables, (1, "A")).selectExpr("*", "'x' as more"), target, spec, at="2024-01-01")
    assert names(tables, dim) == [(1, "A")]


@pytest.mark.slow
def test_a_table_of_another_dimension(tables: Tables, tmp_path: Path) -> None:
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, audit={"table": "audit"})
    merge(batch(tables, (1, "A")), FilesTarget(f"{tmp_path}/one"), spec, at="2024-01-01")
    with pytest.raises(TargetError, match=r"(?s)the audit has 1 mistake.*a table of .*/one"):
        merge(batch(tables, (1, "A")), FilesTarget(f"{tmp_path}/two"), spec, at="2024-01-01")
    other = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, audit={"table": f"{tmp_path}/one"})
    with pytest.raises(TargetError, match="a dimension of its own"):
        merge(batch(tables, (1, "A")), FilesTarget(f"{tmp_path}/two"), other, at="2024-01-01")
    assert FilesTarget(f"{tmp_path}/two").read(tables.spark) is None
    with pytest.raises(TargetError, match="a table beside .*/one"):
        merge(batch(tables, (1, "A")), FilesTarget(f"{tmp_path}/audit"), SPEC)


@pytest.mark.slow
def test_files_of_others(tables: Tables, tmp_path: Path) -> None:
    """Parquet is taken over; what cannot be read as it was is refused."""
    merge(batch(tables, (1, "A")), f"{tmp_path}/delta", SPEC, at="2024-01-01")
    with pytest.raises(TargetError, match=r"(?s)a Delta table.*DeltaTarget"):
        merge(batch(tables, (1, "B")), FilesTarget(f"{tmp_path}/delta"), SPEC)
    tables.spark.range(1).write.csv(f"{tmp_path}/texts")
    with pytest.raises(TargetError, match="files of another program, such as part-"):
        merge(batch(tables, (1, "B")), FilesTarget(f"{tmp_path}/texts", "csv"), SPEC)


@pytest.mark.slow
def test_many_folders_become_one(tables: Tables, dim: FilesTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    from healing_tables.merge import files_tables

    monkeypatch.setattr(files_tables, "MOST_FOLDERS", 2)
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, audit={})
    for number in range(1, 5):
        merge(batch(tables, (1, f"v{number}")), dim, spec, at=f"2024-01-0{number}")
    commit = dim.commits(tables.spark).newest()
    assert commit is not None
    assert [len(table.folders) for table in commit.tables.values()] == [2, 1]
    assert len(side_rows(tables, dim, "_audit")) == 7


@pytest.mark.slow
def test_a_new_column(tables: Tables, dim: FilesTarget) -> None:
    merge(
        batch(tables, (1, "A")),
        dim,
        DimensionSpec(key_columns="id", attributes={"name": 4, "city": 1}),
        at="2024-01-01",
    )
    spec = DimensionSpec(
        key_columns="id", attributes={"name": 4, "city": 1, "tier": 1}, on_schema_change="append_new_columns"
    )
    merge(batch(tables, (1, "B"), (2, "A")).selectExpr("*", "'gold' as tier"), dim, spec, at="2024-01-02")
    stored = dim.read(tables.spark)
    assert stored is not None
    assert plain_rows(stored, ["id", "tier"]) == [(1, "gold"), (2, "gold")]
    assert side_rows(tables, dim, "_history", "id", "name", "tier") == [(1, "A", None)]


@pytest.mark.slow
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_types_are_widened(tables: Tables, tmp_path: Path, file_format: str) -> None:
    """Of the key, an attribute and the history, whose rows are written again."""
    dim = FilesTarget(f"{tmp_path}/dim", file_format=file_format)
    rows, big = tables.spark.createDataFrame, 2**40
    plain = DimensionSpec(key_columns="id", attributes={"points": 4, "rate": 1})
    spec = DimensionSpec(
        key_columns="id", attributes={"points": 4, "rate": 1}, on_schema_change="sync_all_columns", audit={}
    )
    for points, day in ((1, 1), (2, 2)):
        merge(rows([(1, points, 0.5)], "id int, points int, rate float"), dim, plain, at=f"2024-01-0{day}")
    wide = "id bigint, points bigint, rate double"
    with pytest.raises(TargetError, match="sync_all_columns, which widens"):
        merge(rows([(1, big, 0.1)], wide), dim, plain, at="2024-01-03")
    merge(rows([(1, big, 0.1), (big, 1, 0.5)], wide), dim, spec, at="2024-01-03")
    merge(rows([(1, 5, 0.1)], wide), dim, spec, at="2024-01-04")
    stored = dim.read(tables.spark)
    assert stored is not None and dict(stored.dtypes)["id"] == dict(stored.dtypes)["points"] == "bigint"
    assert plain_rows(stored, ["id", "points", "rate"]) == [(1, 5, 0.1), (big, 1, 0.5)]
    assert side_rows(tables, dim, "_history", "id", "points", "rate") == [(1, 1, 0.5), (1, big, 0.1), (1, 2, 0.5)]
    # no row differs
    merge(tables.spark.sql("select 1L as id, cast(5 as decimal(20,0)) as points, 0.1d as rate"), dim, spec)
    stored = dim.read(tables.spark)
    assert stored is not None and dict(stored.dtypes)["points"] == "decimal(20,0)"


@pytest.mark.slow
def test_a_stream_is_merged_once(tables: Tables, dim: FilesTarget) -> None:
    sink = SPEC.sink(dim, name="crm")
    for number, name in ((0, "A"), (1, "B"), (0, "A"), (1, "B")):
        sink(batch(tables, (1, name)), number)
    assert [row[1] for row in versions(tables, dim)] == ["A", "B"]
    assert dim.versions(tables.spark) == [1, 2]


@pytest.mark.parametrize(
    ("options", "got"),
    [
        ({"path": "lab.dim"}, "the whole path"),
        ({"path": "data/dim"}, "the whole path"),
        ({"path": "s3a://bucket"}, "a bucket and a folder"),
        ({"path": "s3://key:secret@bucket/x"}, "access keys"),
        ({"path": "hdfs://host/x"}, "DeltaTarget"),
        ({"path": "/data/part=*/x"}, "pattern"),
        ({"path": "/x", "file_format": "orc"}, "parquet or csv"),
        ({"path": "/x", "keep_versions": 0}, "keep_versions"),
        ({"path": None}, "None"),
    ],
    ids=str,
)
def test_a_target_that_is_none(options: dict[str, Any], got: str) -> None:
    with pytest.raises(ArgumentError, match=got) as error:
        FilesTarget(**options)
    assert "secret" not in str(error.value)


@pytest.mark.slow
def test_the_command_line(tables: Tables, dim: FilesTarget, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yml").write_text("KEYS: [id]\nattributes: {name: 4, city: 1}\n")
    for number, name in enumerate("AB"):
        (tmp_path / f"{number}.csv").write_text(f"id,name,city\n1,{name},Bern\n")

    def run(number: int, target: str, *more: str) -> int:
        call = ["merge", "--spec", f"{tmp_path}/spec.yml", "--batch", f"{tmp_path}/{number}.csv", "--target", target]
        return main([*call, "--schema", "id int, name string, city string", "--at", f"2024-01-0{number + 1}", *more])

    new = f"{dim.path}?file_format=csv"
    assert run(0, new, "--dry-run") == 0
    assert "would be 1 inserted" in capsys.readouterr().err
    assert run(0, new) == 0 and dim.versions(tables.spark) == [1]
    assert run(1, dim.path, "--dry-run") == 0
    assert 'name "A" -> "B"' in capsys.readouterr().out
    assert run(1, dim.path) == 0
    assert names(tables, dim) == [(1, "B")]
    assert side_rows(tables, dim, "_history", "id", "name") == [(1, "A")]
    assert run(1, f"{dim.path}?file_format=orc") == 2
    assert "parquet or csv" in capsys.readouterr().err


def test_the_example_of_the_page(tables: Tables, tmp_path: Path) -> None:
    block = next(block for block in blocks_of((ROOT / "docs/files.md").read_text()) if block.kind == "python")
    rows = tables.spark.sql("select 1 as buyer_id, 'x' as address, 'y' as job, 'z' as phone")
    names: dict[str, Any] = {"spark": tables.spark, "batch": rows}
    code = "\n".join(block.lines).replace("s3a://lake", str(tmp_path))
    with pytest.raises(ArgumentError, match="kept: 1"):  # its last line reads the third version
        exec(code, names)  # noqa: S102
    assert names["dim_buyer"].read(tables.spark).count() == 1


def test_paths() -> None:
    for given, path in {
        "s3://bucket/a#b/c/": "s3a://bucket/a#b/c",
        "file:///a//b/": "/a/b",
        "/a/./b%20c": "/a/b%20c",
    }.items():
        assert FilesTarget(given).path == path
    for path, base, seen in (
        ("/a/dim_audit", "/a/dim", "../dim_audit"),
        ("s3a://b/x/dim_audit", "s3a://b/x/dim", "../dim_audit"),
        ("s3a://other/dim", "s3a://b/x/dim", "s3a://other/dim"),
        ("/a/dim", "/a/dim", "."),
    ):
        assert relative(path, base) == seen
        assert absolute(seen, base) == path


def test_a_commit_that_is_damaged(tables: Tables, dim: FilesTarget) -> None:
    merge(batch(tables, (1, "A")), dim, SPEC, at="2024-01-01")
    Path(dim.path, "_commits", f"{2:020}.json").write_text('{"version": 2')
    with pytest.raises(TargetError, match="dim 1% ü"):
        dim.read(tables.spark)


def test_a_store_that_does_not_answer(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the path, and no secret."""
    settings = {
        "fs.s3a.endpoint": "http://127.0.0.1:9",
        "fs.s3a.access.key": "someone",
        "fs.s3a.secret.key": "hidden",
        "fs.s3a.endpoint.region": "us-east-1",
    }
    with with_settings(tables.spark, settings), pytest.raises(TargetError, match="s3a://bucket/dim") as error:
        FilesTarget("s3://bucket/dim/").read(tables.spark)
    assert "hidden" not in str(error.value)
