"""Merges into Iceberg tables: the cases of merges, tables of others, columns, types, catalogs and sessions."""

from __future__ import annotations

import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from cases import merge_cases, spec_of
from interleaved import other_writer
from pyspark.sql import DataFrame
from sessions import with_settings
from tables import Tables, plain_rows

from healing_tables import (
    ArgumentError,
    DeltaTarget,
    DimensionSpec,
    IcebergTarget,
    LateChangeError,
    TargetError,
    merge,
)
from healing_tables.cli import main
from healing_tables.merge.dry_run import dry_run
from healing_tables.targets.conflicts import StalePlan, is_conflict
from healing_tables.targets.find import target_of

pytestmark = pytest.mark.usefixtures("interpreted")
SPEC = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1})
SEQUENCE = {"name": "sk", "strategy": "sequence"}
FOREVER = "9999-12-31"
MODES: dict[str, dict[str, str]] = {
    "copy-on-write": {"write.merge.mode": "copy-on-write"},
    "merge-on-read": dict.fromkeys(("write.merge.mode", "write.delete.mode"), "merge-on-read"),
}


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    return f"{tables.schema}.{name.removeprefix('test_')}"


def batch(tables: Tables, *rows: tuple[int, str | None]) -> DataFrame:
    return tables.spark.createDataFrame([(*row, "Bern") for row in rows], "id int, name string, city string")


def rows(tables: Tables, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return plain_rows(tables.spark.table(name), columns)


def branches(tables: Tables, name: str) -> list[str]:
    return [row[0] for row in tables.spark.sql(f"select name from {name}.refs").collect() if row[0] != "main"]


@pytest.mark.parametrize("mode", ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", merge_cases())
def test_case(either: Tables, case: dict[str, Any], mode: str) -> None:
    name = f"{either.schema}.dim_{case['id'].lower()}_{mode[:4]}"
    names = {"dim": name, "current": name, "history": f"{name}_history"}
    for part, table in case["input"].items():
        if part != "batches":
            writer = either.frame(table["columns"], table["rows"]).writeTo(names[part]).using("iceberg")
            for key, value in MODES[mode].items():
                writer = writer.tableProperty(key, value)
            writer.create()
    for given in case["input"]["batches"]:
        rows = either.frame(given["rows"]["columns"], given["rows"]["rows"])
        target = IcebergTarget(name, properties=MODES[mode])
        merge(rows, target, spec_of(case), at=given["at"], full_batch=given.get("full_snapshot", False))
    for part, table in case["expect"].items():
        columns = [column for column, _ in table["columns"]]
        stored = either.spark.table(names[part])
        own = ["history_id", "change_reason"] if part == "history" else []
        assert sorted(stored.columns) == sorted(columns + own)
        assert plain_rows(stored, columns) == plain_rows(either.frame(table["columns"], table["rows"]))
    assert branches(either, name) == []


@pytest.mark.parametrize("mode", ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.slow)])
def test_a_table_that_a_merge_has_made(tables: Tables, dim: str, mode: str) -> None:
    """With integer keys and an audit. In a catalog of Iceberg's the name alone is enough."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, surrogate_key=SEQUENCE, audit={})
    target = IcebergTarget(dim, properties=MODES[mode], partition_by=["bucket(2, id)"], comment="Buyers")
    assert merge(batch(tables, (1, "A"), (2, "A"), (3, None)), target, spec, at="2024-01-01").inserted == 3
    assert merge(batch(tables, (1, "B"), (3, None)), dim, spec, at="2024-01-02").closed == 1
    assert merge(batch(tables, (1, "B")), dim, spec, at="2024-01-02").commit_version is None
    result = merge(batch(tables, (2, "C"), (4, "A")), f"lake.{dim}", spec, at="2024-01-03", full_batch=True)
    assert (result.inserted, result.closed) == (2, 3)
    newest = tables.spark.sql(f"select max_by(snapshot_id, made_current_at) from {dim}.history").collect()[0][0]
    assert result.commit_version == newest
    stored = tables.spark.table(dim).selectExpr(
        "id", "name", "cast(valid_from as string)", "cast(valid_to as string)", "sk"
    )
    assert plain_rows(stored) == [
        (1, "A", "2024-01-01", "2024-01-02", 1),
        (1, "B", "2024-01-02", "2024-01-03", 4),
        (2, "A", "2024-01-01", "2024-01-03", 2),
        (2, "C", "2024-01-03", FOREVER, 5),
        (3, None, "2024-01-01", "2024-01-03", 3),
        (4, "A", "2024-01-03", FOREVER, 6),
    ]
    assert len(rows(tables, f"{dim}_audit", "key")) == 10
    assert branches(tables, dim) == branches(tables, f"{dim}__keys") == []
    has_deletes = not tables.spark.table(f"{dim}.delete_files").isEmpty()
    assert has_deletes == (mode == "merge-on-read")
    assert not tables.spark.table(f"{dim}.partitions").where("partition.id_bucket = 0").isEmpty()


def test_the_open_end_and_the_flags_of_a_table_of_others(tables: Tables, dim: str) -> None:
    """They are taken over; a definition that names others is refused. Delta: tests/spark/test_stored_end.py."""
    far, start, at = "2999-12-31 00:00:00", "2024-01-01 00:00:00", "2024-03-01 00:00:00"
    tables.spark.sql(
        f"create table {dim} using iceberg as select id, 'A' as name, 'Bern' as city, "
        f"timestamp '{start}' as valid_from, timestamp '{far}' as valid_to, 'Y' as is_current "
        "from values (1), (2) as t (id)"
    )
    merge(batch(tables, (1, "B"), (3, "A")), dim, SPEC, at=at, full_batch=True)
    shown = ["id", "name", "valid_to", "is_current"]
    merged = [(1, "A", at, "N"), (1, "B", far, "Y"), (2, "A", at, "N"), (3, "A", far, "Y")]
    assert plain_rows(tables.spark.table(dim), shown) == merged
    named = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, valid_to_current=None)
    with pytest.raises(TargetError, match="valid_to_current"):
        merge(batch(tables, (4, "A")), dim, named, at="2024-03-02")
    assert plain_rows(tables.spark.table(dim), shown) == merged


def test_another_writer_begins_with_another_open_end(tables: Tables, dim: str) -> None:
    merge(batch(tables), IcebergTarget(dim), SPEC, at="2024-01-01")
    other = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, valid_to_current="2999-12-31")

    def act() -> None:
        merge(batch(tables, (1, "A")), dim, other, at="2024-01-01")

    with other_writer(tables.spark, act, lambda _, text: text.lstrip().startswith("merge")) as writer:
        merge(batch(tables, (2, "A")), dim, SPEC, at="2024-01-02")
    assert writer.has_acted
    ends = [str(end)[:10] for _, end in plain_rows(tables.spark.table(dim), ["id", "valid_to"])]
    assert ends == ["2999-12-31", "2999-12-31"]


@pytest.mark.slow
def test_a_session_sees_what_another_has_committed(tables: Tables, dim: str) -> None:
    """The catalog of a session keeps what it has read of a table for half a minute, unless it has no cache."""
    other = Tables(tables.spark.newSession(), schema=tables.schema)
    for spark in (tables.spark, other.spark):
        for name in ("", ".type", ".uri", ".warehouse", ".jdbc.schema-version"):
            spark.conf.set(f"spark.sql.catalog.cached{name}", str(spark.conf.get(f"spark.sql.catalog.lake{name}")))
    tables.spark.sql(f"create schema cached.{tables.schema}")
    dim = f"cached.{dim}"
    assert merge(batch(tables, (1, "A")), IcebergTarget(dim), SPEC, at="2024-01-01").inserted == 1
    assert rows(other, dim, "name") == [("A",)]
    newest = merge(batch(tables, (1, "B")), dim, SPEC, at="2024-01-02").commit_version
    assert rows(other, dim, "name") == [("A",)]
    assert IcebergTarget(dim).version(other.spark) == newest
    assert merge(batch(other, (1, "C")), dim, SPEC, at="2024-01-03").attempts == 1
    assert plain_rows(IcebergTarget(dim).rows(tables.spark), ["name"]) == [("A",), ("B",), ("C",)]


@pytest.mark.slow
def test_rows_that_two_processes_deliver_at_once(either: Tables) -> None:
    """Without its further clause the MERGE is an append, and both add the row."""

    def slow(value: str) -> str:
        time.sleep(3)
        return value

    spark, name = either.spark, f"{either.schema}.delivered"
    spark.udf.register("slow", slow, "string")
    spark.sql(f"create table {name} (row_id string) using iceberg").collect()
    source = "(select slow(row_id) as row_id from (select 'a' as row_id from range(1)))"
    insert = f"on t.row_id = s.row_id {IcebergTarget.when_matched} when not matched then insert *"
    errors: list[BaseException] = []

    def deliver() -> None:
        try:
            IcebergTarget(name).run(spark, f"merge into {name} t using {source} s {insert}")
        except Exception as error:  # noqa: BLE001  (which one it is: the test shows it)
            errors.append(error)

    thread = threading.Thread(target=deliver)
    thread.start()
    time.sleep(1.5)
    spark.sql(f"insert into {name} values ('a')").collect()
    thread.join()
    assert [is_conflict(error) for error in errors] == [True]
    deliver()
    assert plain_rows(spark.table(name)) == [("a",)]


@pytest.mark.slow
def test_columns_of_types_that_iceberg_does_not_have(tables: Tables, dim: str) -> None:
    """smallint is stored as int, within others too; a batch with the same types fits again."""
    ddl = "id smallint, name string, tags array<smallint>, place struct<smallint: tinyint, `a b`: string>"
    spec = DimensionSpec(key_columns="id", audit={}, on_schema_change="append_new_columns")
    first = tables.spark.createDataFrame([(1, "A", [1, 2], (1, "x"))], ddl)
    merge(first, IcebergTarget(dim), spec, at="2024-01-01")
    again = tables.spark.createDataFrame([(1, "B", [3], (1, "x")), (2, "C", None, None)], ddl)
    assert str(dry_run(again, dim, spec, at="2024-01-02")) == "2 rows in the batch would be 2 inserted, 1 closed"
    assert merge(again, dim, spec, at="2024-01-02").closed == 1
    added = again.selectExpr("*", "cast(1 as smallint) as level", "cast(null as array<tinyint>) as more")
    assert merge(added, dim, spec, at="2024-01-03").inserted == 2
    assert merge(added, dim, spec, at="2024-01-04").commit_version is None
    kinds = dict(tables.spark.table(dim).dtypes)
    assert (kinds["id"], kinds["tags"], kinds["level"], kinds["more"]) == ("int", "array<int>", "int", "array<int>")
    current = tables.spark.table(dim).where("is_current")
    assert plain_rows(current, ["id", "name", "tags", "level"]) == [(1, "B", [3], 1), (2, "C", None, 1)]


@pytest.mark.slow
def test_types_are_widened(tables: Tables, dim: str) -> None:
    """As far as Iceberg promotes them; also those of the history, and of the struct in the outbox."""
    frame, big = tables.spark.createDataFrame, 2**40
    options: dict[str, Any] = {"key_columns": "id", "attributes": {"points": 4, "rate": 1, "price": 1}, "audit": {}}
    spec = DimensionSpec(**options, on_schema_change="sync_all_columns")
    narrow, wide = (
        f"id {whole}, points {whole}, rate {rate}, price {price}"
        for whole, rate, price in (("int", "float", "decimal(9,2)"), ("bigint", "double", "decimal(12,2)"))
    )
    cents = Decimal("1.25")
    for points, day in ((1, 1), (2, 2)):
        merge(frame([(1, points, 0.5, cents)], narrow), IcebergTarget(dim), spec, at=f"2024-01-0{day}")
    before = tables.spark.table(dim).dtypes
    scaled = frame([(1, 1, 0.5, cents)], wide.replace("12,2", "12,4"))
    with pytest.raises(TargetError, match="price\n.*9,2.*\n.*12,4.*\n.*remedy: copy the rows to a new table"):
        merge(scaled, dim, spec, at="2024-01-03")
    given = frame([(1, big, 0.1, cents), (big, 1, 0.5, cents)], wide)
    with pytest.raises(LateChangeError):
        merge(given, dim, spec, at="2023-01-03")
    assert tables.spark.table(dim).dtypes == before
    other = frame([(1, 3, 0.5, cents)], narrow)

    def act() -> None:
        merge(other, dim, spec, at="2024-01-03")

    # after the types were changed
    with other_writer(tables.spark, act, lambda _, text: text.lstrip().startswith("merge")):
        assert merge(given, dim, spec, at="2024-01-04").attempts == 2
    merge(frame([(1, 5, 0.1, cents)], wide), dim, spec, at="2024-01-05")
    kinds = dict(tables.spark.table(dim).dtypes)
    assert [kinds[name] for name in ("id", "points", "rate", "price")] == [
        "bigint",
        "bigint",
        "double",
        "decimal(12,2)",
    ]
    assert rows(tables, dim, "id", "points", "rate") == [(1, 5, 0.1), (big, 1, 0.5)]
    assert rows(tables, f"{dim}_history", "id", "points") == [(1, 1), (1, big), (1, 2), (1, 3)]
    assert branches(tables, dim) == []


def test_a_table_of_someone_else(tables: Tables, dim: str) -> None:
    """Without a snapshot, then with columns that no snapshot has."""
    sql = tables.spark.sql
    columns = "id int, name string, city string, valid_from date, valid_to date"
    sql(f"create table {dim} ({columns}) using iceberg")
    assert merge(batch(tables, (1, "A")), dim, SPEC, at="2024-01-01").inserted == 1
    sql(f"alter table {dim} add columns (mail string)")
    sql(f"alter table {dim} alter column city comment 'where'")
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1, "mail": 2})
    given = batch(tables, (1, "A")).selectExpr("*", "'a@b' as mail")
    assert merge(given, dim, spec, at="2024-01-02").inserted == 1
    assert rows(tables, dim, "id", "name", "mail") == [(1, "A", "a@b"), (1, "A", None)]
    sql(f"alter table {dim} rename column mail to mailbox")
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1, "mailbox": 2})
    given = given.withColumnRenamed("mail", "mailbox")
    assert merge(given, dim, spec, at="2024-01-03").commit_version is None


@pytest.mark.slow
def test_what_iceberg_does_not_take(tables: Tables, dim: str) -> None:
    """One mistake, and not 30 attempts."""
    given = tables.spark.sql("select 1 as id, struct(1 as y) as x, 'a' as `x.y`")
    with pytest.raises(TargetError, match=r"accepts the rows of the merge\n.*multiple fields for name x\.y"):
        merge(given, IcebergTarget(dim), DimensionSpec(key_columns="id"))
    with pytest.raises(TargetError, match="accepts the rows of the merge"):
        merge(batch(tables, (1, "A")), IcebergTarget(dim, partition_by=["nope"]), SPEC)
    tables.spark.sql(f"create view {dim} as select 1 as id")
    with pytest.raises(TargetError, match="an Iceberg table, or none yet"):
        merge(batch(tables, (1, "A")), IcebergTarget(dim), SPEC)
    with pytest.raises(ArgumentError, match=r"catalog\.schema\.table"):
        IcebergTarget("/a/path")


def test_a_look_writes_nothing(tables: Tables, dim: str) -> None:
    """Without a snapshot, or with the columns of before, `recover` has to make one first."""
    target, spark = IcebergTarget(dim), tables.spark
    columns = "id int, name string, city string, valid_from timestamp, valid_to timestamp, is_current boolean"
    spark.sql(f"create table {dim} ({columns}) using iceberg")

    def made() -> int:
        return int(spark.sql(f"select * from {dim}.snapshots").count())

    for number, change in enumerate(["set tblproperties ('a' = 'b')", "add columns (version int)"]):
        spark.sql(f"alter table {dim} {change}")
        with pytest.raises(StalePlan):
            target.snapshot(spark)
        assert made() == number
        target.recover(spark)
        target.recover(spark)
        assert made() == number + 1
        assert target.snapshot(spark) is not None
    assert merge(batch(tables, (1, "A")), target, SPEC, at="2024-01-01").attempts == 1


def test_which_kind_of_table_a_name_is(tables: Tables, dim: str) -> None:
    spark = tables.spark
    assert target_of(spark, dim) == IcebergTarget(dim)  # none yet, in a catalog of Iceberg's
    assert target_of(spark, f"lake.{dim}") == IcebergTarget(f"lake.{dim}")
    assert target_of(spark, f"spark_catalog.{dim}") == DeltaTarget(f"spark_catalog.{dim}")
    spark.sql(f"create table {dim} (id int) using iceberg")
    assert target_of(spark, f"`lake`.{dim}") == IcebergTarget(f"`lake`.{dim}")


@pytest.mark.slow
def test_a_hadoop_catalog_and_nested_schemas(tables: Tables, tmp_path: Path) -> None:
    settings = {
        "spark.sql.catalog.files": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.files.type": "hadoop",
        "spark.sql.catalog.files.warehouse": str(tmp_path),
    }
    spec = DimensionSpec(
        key_columns="id", attributes={"name": 4, "city": 1}, audit={}, surrogate_key=SEQUENCE, change_log=None
    )
    with with_settings(tables.spark, settings):
        for name in ("files.a.dim", "files.a.b.dim", "files.a.`dim 2`"):
            merge(batch(tables, (1, "A"), (2, "A")), name, spec, at="2024-01-01")
            assert merge(batch(tables, (1, "B"), (2, "A")), name, spec, at="2024-01-02").updated == 1
            assert rows(tables, name, "id", "name") == [(1, "B"), (2, "A")]
            beside = name[:-1] + "_history`" if name.endswith("`") else f"{name}_history"
            assert rows(tables, beside, "id", "name") == [(1, "A")]
        tables.spark.sql("use files.a.b")
        try:
            assert merge(batch(tables, (1, "C")), "dim", spec, at="2024-01-03").updated == 1
        finally:
            tables.spark.sql("use lake")


@pytest.mark.slow
def test_the_command_line(tables: Tables, dim: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yml").write_text("key_columns: id\nattributes: {name: 2}\n")
    (tmp_path / "batch.csv").write_text("id,name\n1,A\n")
    call = ["merge", "--spec", f"{tmp_path}/spec.yml", "--batch", f"{tmp_path}/batch.csv", "--target", dim]
    assert main([*call, "--dry-run"]) == 0
    assert "1 row in the batch would be 1 inserted" in capsys.readouterr().err
    assert main(call) == 0
    assert rows(tables, dim, "id", "name") == [("1", "A")]
    assert main(call) == 0
    assert "no commit" in capsys.readouterr().err
