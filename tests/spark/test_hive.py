"""Merges into Hive tables without transactions: parquet and ORC, made by a merge or by someone else."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from cases import merge_cases, spec_of
from pyspark.sql import DataFrame
from sessions import FORMAT, with_settings
from tables import Tables, plain_rows

from healing_tables import (
    ArgumentError,
    DimensionSpec,
    HiveTarget,
    LateChangeError,
    TargetError,
    convert_table,
    merge,
)
from healing_tables.merge.dry_run import dry_run
from healing_tables.merge.hive_tables import HiveTables
from healing_tables.targets import hive_commits
from healing_tables.targets.buckets import folders_of, location_of
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.hive_commits import Commits
from healing_tables.targets.hive_table import HiveSideTable

pytestmark = pytest.mark.usefixtures("interpreted")
SPEC = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1})
FOREVER = "9999-12-31"
SEQUENCE = {"name": "sk", "strategy": "sequence"}


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    return f"{tables.schema}.{request.node.name.split('[')[0].removeprefix('test_')}"


def batch(tables: Tables, *rows: tuple[int, str | None]) -> DataFrame:
    return tables.spark.createDataFrame([(*row, "Bern") for row in rows], "id int, name string, city string")


def versions(tables: Tables, dim: str) -> list[tuple[Any, ...]]:
    shown = tables.spark.table(dim).selectExpr(
        "id", "name", "cast(valid_from as string) valid_from", "cast(valid_to as string) valid_to"
    )
    return plain_rows(shown)


def location(tables: Tables, dim: str) -> str:
    told = {row[0]: row[1] for row in tables.spark.sql(f"describe table extended {dim}").collect()}
    return str(told["Location"])


def external(tables: Tables, frame: DataFrame, name: str, file_format: str) -> None:
    """A table that someone else has made, with a folder of its own."""
    root = location(tables, f"{name}_place") if tables.spark.catalog.tableExists(f"{name}_place") else None
    place = root or f"{schema_location(tables)}/others/{name.rpartition('.')[2]}"
    frame.write.format(file_format).option("path", place).saveAsTable(name)


def schema_location(tables: Tables) -> str:
    told = {row[0]: row[1] for row in tables.spark.sql(f"describe schema {tables.schema}").collect()}
    return str(told["Location"])


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("file_format", ["orc", pytest.param("parquet", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", merge_cases())
def test_case(either: Tables, case: dict[str, Any], file_format: str) -> None:
    """Of a table that someone else has made; its name is all that the merge is told."""
    name = f"{either.schema}.{case['id'].lower()}_{file_format}"
    names = {"dim": name, "current": name, "history": f"{name}_history"}
    for part, table in case["input"].items():
        if part != "batches":
            external(either, either.frame(table["columns"], table["rows"]), names[part], file_format)
    for given in case["input"]["batches"]:
        rows = either.frame(given["rows"]["columns"], given["rows"]["rows"])
        merge(rows, name, spec_of(case), at=given["at"], full_batch=given.get("full_snapshot", False))
    for part, table in case["expect"].items():
        columns = [column for column, _ in table["columns"]]
        stored = either.spark.table(names[part])
        assert plain_rows(stored, columns) == plain_rows(either.frame(table["columns"], table["rows"]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        {"file_format": "orc", "key_buckets": 4},
        {"file_format": "parquet", "key_buckets": 64},
        {"file_format": "parquet", "partition_by": "city"},
    ],
    ids=["buckets", "many buckets", "partitions"],
)
def test_a_table_that_a_merge_has_made(tables: Tables, dim: str, target: dict[str, Any]) -> None:
    name = f"{dim}_{target.get('key_buckets', 'by')}"
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, surrogate_key=SEQUENCE)
    made = HiveTarget(name, **target)
    assert merge(batch(tables, (1, "A"), (2, "A"), (3, None)), made, spec, at="2024-01-01").inserted == 3
    assert merge(batch(tables, (1, "B"), (3, None)), name, spec, at="2024-01-02").closed == 1
    assert merge(batch(tables, (1, "B")), name, spec, at="2024-01-02").commit_version is None
    result = merge(batch(tables, (2, "C"), (4, "A")), name, spec, at="2024-01-03", full_batch=True)
    assert (result.inserted, result.closed, result.commit_version) == (2, 3, 3)
    assert versions(tables, name) == [
        (1, "A", "2024-01-01", "2024-01-02"),
        (1, "B", "2024-01-02", "2024-01-03"),
        (2, "A", "2024-01-01", "2024-01-03"),
        (2, "C", "2024-01-03", FOREVER),
        (3, None, "2024-01-01", "2024-01-03"),
        (4, "A", "2024-01-03", FOREVER),
    ]
    assert plain_rows(tables.spark.table(name), ["id", "name", "sk"]) == [
        (1, "A", 1),
        (1, "B", 4),
        (2, "A", 2),
        (2, "C", 5),
        (3, None, 3),
        (4, "A", 6),
    ]


@pytest.mark.slow
def test_a_merge_writes_the_buckets_that_it_touches(tables: Tables, dim: str) -> None:
    rows = [(number, "A") for number in range(40)]
    merge(batch(tables, *rows), HiveTarget(dim, key_buckets=8), SPEC, at="2024-01-01")
    before = folders_of(location(tables, dim))
    merge(batch(tables, (7, "B")), dim, SPEC, at="2024-01-02")
    after = folders_of(location(tables, dim))
    assert len(before) == len(after) == 8
    assert len(set(after) - set(before)) == 1
    assert len(versions(tables, dim)) == 41
    with pytest.raises(Exception, match="MULTI_PATH"):  # a writer who knows nothing of buckets
        tables.spark.sql(f"insert into {dim} select * from {dim}")


def test_folders_and_their_location() -> None:
    root = "s3://bucket/d__versions/"
    folders = [f"{root}a/rows/ht_b=0", f"{root}b/rows/ht_b=1"]
    assert location_of(root, folders) == f"{root}{{a/rows/ht_b=0,b/rows/ht_b=1}}"
    assert folders_of(location_of(root, folders)) == folders
    assert folders_of(f"{root}a/rows") == [f"{root}a/rows"]


def test_what_cannot_be_switched_is_refused(tables: Tables, dim: str) -> None:
    sql = tables.spark.sql
    sql(f"create table {dim}_managed stored as orc as select 1 as id, 'A' as name, 'Bern' as city")
    place = f"{schema_location(tables)}/others/by_city"
    with with_settings(tables.spark, {"spark.sql.hive.manageFilesourcePartitions": "true"}):  # a build may set it
        sql(f"create table {dim}_listed (id int, city string) using orc partitioned by (city) location '{place}'")
    sql(f"create table {dim}_text (id int) using csv")
    text = "csv" if FORMAT == "delta" else "the session has 1 mistake"
    for name, got in {"managed": "a managed table", "listed": "by city", "text": text}.items():
        with pytest.raises(TargetError, match=got) as error:
            merge(batch(tables, (1, "B")), f"{dim}_{name}", SPEC)
        assert "nothing was written" in str(error.value)
    if FORMAT != "delta":
        return
    with pytest.raises(TargetError, match="got:    delta"):
        sql(f"create table {dim}_delta (id int) using delta")
        merge(batch(tables, (1, "B")), HiveTarget(f"{dim}_delta"), SPEC)


@pytest.mark.slow
@pytest.mark.parametrize("buckets", [None, 4])
def test_a_table_is_converted_on_request(tables: Tables, dim: str, buckets: int | None) -> None:
    """A managed one, and one with partitions; rows, comments and declared types are the same afterwards."""
    sql, name = tables.spark.sql, f"{dim}_{buckets}"
    columns = "id int comment 'who', name varchar(9), valid_from timestamp, valid_to timestamp, is_current boolean"
    sql(f"create table {name} ({columns}, city string) stored as orc partitioned by (city) comment 'it''s theirs'")
    moments = f"timestamp '2024-01-01', timestamp '{FOREVER}', true"
    sql(f"insert into {name} partition (city = 'Bern') values (1, 'A', {moments}), (2, 'A', {moments})")
    kept = convert_table(tables.spark, name, key_buckets=buckets, key_columns="id" if buckets else ())
    for table in (name, kept):
        assert plain_rows(tables.spark.table(table), ["id", "name", "city"]) == [(1, "A", "Bern"), (2, "A", "Bern")]
    told = {row[0]: row[1:] for row in sql(f"describe table extended {name}").collect()}
    assert (told["Comment"][0], told["id"][1], told["name"][0]) == ("it's theirs", "who", "varchar(9)")
    merge(batch(tables, (1, "B")), name, SPEC, at="2024-01-02")
    assert [row[:2] for row in versions(tables, name)] == [(1, "A"), (1, "B"), (2, "A")]
    assert len(folders_of(location(tables, name))) == (2 if buckets else 1)


def test_what_cannot_be_converted_stays(tables: Tables, dim: str) -> None:
    tables.spark.sql(f"create table {dim} using orc as select 1 as id")
    with pytest.raises(TargetError, match="no such table"):
        convert_table(tables.spark, f"{dim}_2")
    for buckets, keys in ((4, ()), (None, "id"), (4, "nobody")):
        with pytest.raises(ArgumentError, match="key_columns"):
            convert_table(tables.spark, dim, key_buckets=buckets, key_columns=keys)
    assert tables.spark.table(dim).count() == 1


@pytest.mark.parametrize(
    "options",
    [{"name": "/a/path"}, {"file_format": "csv"}, {"key_buckets": 1}, {"key_buckets": 65}, {"key_buckets": True}],
    ids=str,
)
def test_a_target_that_is_none(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="remedy"):
        HiveTarget(**{"name": "lab.dim", **options})


def insert(tables: Tables, dim: str, key: int) -> None:
    """What a writer does who knows nothing of merges."""
    values = f"{key} as id, 'other' as name, 'Bern' as city, timestamp '2024-01-01' as valid_from"
    rest = f"timestamp '{FOREVER}' as valid_to, true as is_current, 1 as version, '' as key_hash, '' as row_hash"
    tables.spark.sql(f"select {values}, {rest}").write.insertInto(dim)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "method"),
    [
        pytest.param(HiveTables, "write_state", marks=pytest.mark.slow),
        pytest.param(HiveTarget, "set_location", marks=pytest.mark.slow),
        (HiveSideTable, "take"),
    ],
    ids=["before the look", "before the switch", "after the switch"],
)
def test_rows_that_another_writer_adds_are_kept(
    tables: Tables, dim: str, between: Any, kind: type, method: str
) -> None:
    """Also those of a writer who had looked up the folder before the switch, and writes into it after it."""
    name = f"{dim}_{method}"
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, audit={})
    merge(batch(tables, (1, "A")), HiveTarget(name, "parquet"), spec, at="2024-01-01 10:00:00")
    folder = location(tables, name)
    tables.spark.sql(f"create table {name}_same using parquet location '{folder}'")
    between(kind, method, lambda: insert(tables, f"{name}_same", 2))
    result = merge(batch(tables, (1, "B")), name, spec, at="2024-01-02 10:00:00")
    assert result.attempts == (1 if method == "take" else 2)
    merge(batch(tables, (1, "B")), name, spec, at="2024-01-03 10:00:00")  # nothing else is new
    assert [row[:2] for row in versions(tables, name)] == [(1, "A"), (1, "B"), (2, "other")]
    assert tables.spark.table(f"{name}_audit").count() == 3


@pytest.mark.slow
def test_two_merges_from_one_state(tables: Tables, dim: str, between: Any) -> None:
    """One partition of the commits, and so one of the two: the other reads again."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, surrogate_key=SEQUENCE)
    merge(batch(tables, (1, "A")), HiveTarget(dim), spec, at="2024-01-01")
    between(Commits, "add", lambda: merge(batch(tables, (2, "A")), dim, spec, at="2024-01-02"))
    assert merge(batch(tables, (1, "B"), (3, "A")), dim, spec, at="2024-01-03").attempts == 2
    assert plain_rows(tables.spark.table(dim), ["id", "name", "sk"]) == [
        (1, "A", 1),
        (1, "B", 3),
        (2, "A", 2),
        (3, "A", 4),
    ]


@pytest.mark.slow
def test_two_merges_that_make_the_table(tables: Tables, dim: str, between: Any) -> None:
    between(Commits, "add", lambda: merge(batch(tables, (2, "A")), HiveTarget(dim), SPEC, at="2024-01-01"))
    assert merge(batch(tables, (1, "A")), HiveTarget(dim), SPEC, at="2024-01-02").attempts == 2
    assert [row[:2] for row in versions(tables, dim)] == [(1, "A"), (2, "A")]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["create_listed", "set_location", "take", "expire"])
def test_a_process_dies(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """After the call that decides, the next merge does what is left; readers see the old state or the new one."""
    name = f"{dim}_{moment}"
    spec = DimensionSpec(key_columns="id", attributes={"name": 4, "city": 1}, audit={})
    if moment != "create_listed":
        merge(batch(tables, (1, "A")), HiveTarget(name), spec, at="2024-01-01")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(HiveSideTable if moment == "take" else HiveTarget, moment, interrupt)
        merge(batch(tables, (1, "B")), HiveTarget(name), spec, at="2024-01-02")
    if moment != "create_listed":
        names = [row[0] for row in plain_rows(tables.spark.table(name), ["name"])]
        assert names == (["A"] if moment == "set_location" else ["B"])
        if moment != "expire":  # a look finishes nothing
            target = HiveTarget(name)
            with target.session(tables.spark), pytest.raises(StalePlan):
                target.snapshot(tables.spark)
            assert [row[0] for row in plain_rows(tables.spark.table(name), ["name"])] == names
    merge(batch(tables, (2, "A")), HiveTarget(name), spec, at="2024-01-03")
    assert plain_rows(tables.spark.table(name), ["id", "name"]) == [(1, "B"), (2, "A")]
    assert tables.spark.table(f"{name}_history").count() == (0 if moment == "create_listed" else 1)
    assert tables.spark.table(f"{name}_audit").count() == (2 if moment == "create_listed" else 3)


@pytest.mark.slow
def test_a_location_that_someone_has_set_back(tables: Tables, dim: str, caplog: pytest.LogCaptureFixture) -> None:
    merge(batch(tables, (1, "A")), HiveTarget(dim), SPEC, at="2024-01-01")
    before = location(tables, dim)
    merge(batch(tables, (1, "B")), dim, SPEC, at="2024-01-02")
    tables.spark.sql(f"alter table {dim} set location '{before}'")
    with caplog.at_level(logging.WARNING, "healing_tables"):
        merge(batch(tables, (1, "C")), dim, SPEC, at="2024-01-03")
    assert before in caplog.text
    assert [row[1] for row in versions(tables, dim)] == ["A", "C"]


@pytest.mark.slow
def test_a_reader_who_does_not_refresh(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session lists the files of a state once; they stay for an hour, and those of the last two states longer."""
    reader = tables.spark.newSession()

    def merged(number: int) -> list[int]:
        merge(batch(tables, (1, f"v{number}")), HiveTarget(dim), SPEC, at=f"2024-01-0{number}")
        commits = tables.spark.sql(f"select version from {dim}__commits order by version").collect()
        return [row.version for row in commits]

    for number in (1, 2, 3):
        assert merged(number) == list(range(1, number + 1))
        assert reader.table(dim).count() in range(1, number + 1)
    states = [
        folder for (folder,) in tables.spark.sql(f"select location from {dim}__commits order by version").collect()
    ]
    monkeypatch.setattr(hive_commits, "KEPT_SECONDS", 0)
    assert merged(4) == [3, 4]
    assert [tables.spark.read.orc(folder).count() for folder in states] == [0, 0, 3]
    assert len(versions(tables, dim)) == 4


@pytest.mark.slow
def test_a_number_that_is_forgotten(tables: Tables, dim: str, between: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge that has slept while others went on does not take a number that they had, and have dropped."""
    monkeypatch.setattr(hive_commits, "KEPT_SECONDS", 0)
    merge(batch(tables, (1, "A")), HiveTarget(dim), SPEC, at="2024-01-01")

    def others() -> None:
        for number in range(2, 6):
            merge(batch(tables, (number, "A")), dim, SPEC, at=f"2024-01-0{number}")

    between(Commits, "add", others)
    assert merge(batch(tables, (9, "B")), dim, SPEC, at="2024-01-07").attempts == 2
    assert [row[0] for row in versions(tables, dim)] == [1, 2, 3, 4, 5, 9]


@pytest.mark.slow
def test_a_change_log(tables: Tables, dim: str) -> None:
    """Begun over a table that is there; then changes may come in any order."""
    merge(batch(tables, (1, "A"), (2, "A")), HiveTarget(dim), SPEC, at="2024-01-01")
    with pytest.raises(LateChangeError):
        merge(batch(tables, (1, "C")), dim, SPEC, at="2023-01-01")
    logged = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, change_log=f"{dim}_changes")
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
    # it names no log, and uses the one that is recorded
    assert merge(batch(tables, (1, "D")), dim, SPEC, at="2024-01-05").unchanged is None
    tables.spark.sql(f"drop table {dim}")
    merge(batch(tables, (3, "A")), HiveTarget(dim), logged, at="2024-01-06")
    assert [row[:2] for row in versions(tables, dim)] == [(1, "A"), (1, "B"), (1, "C"), (1, "D"), (2, "A"), (3, "A")]


@pytest.mark.slow
def test_a_session_that_lists_partitions(tables: Tables, dim: str) -> None:
    """As builds of healing_table leave it that write partitions in parquet."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 4}, audit={})
    with with_settings(tables.spark, {"spark.sql.hive.manageFilesourcePartitions": "false"}):
        for number, name in ((1, "A"), (2, "B"), (3, "B")):
            merge(batch(tables, (1, name)).drop("city"), HiveTarget(dim), spec, at=f"2024-01-0{number}")
        assert tables.spark.conf.get("spark.sql.hive.manageFilesourcePartitions") == "false"
    assert plain_rows(tables.spark.table(f"{dim}_history"), ["id", "name"]) == [(1, "A")]
    assert tables.spark.table(f"{dim}_audit").count() == 2


@pytest.mark.slow
def test_a_number_is_given_once(tables: Tables, dim: str) -> None:
    """Also where the row that had the largest one has left the table."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 4}, surrogate_key=SEQUENCE)
    rows = batch(tables, (1, "A"), (2, "A")).drop("city")
    merge(rows, HiveTarget(dim), spec, at="2024-01-01")
    merge(rows.limit(1), dim, spec, at="2024-01-02", full_batch=True)
    merge(batch(tables, (3, "A")).drop("city"), dim, spec, at="2024-01-03")
    assert plain_rows(tables.spark.table(dim), ["id", "sk"]) == [(1, 1), (3, 3)]


@pytest.mark.slow
def test_a_new_column(tables: Tables, dim: str) -> None:
    merge(batch(tables, (1, "A")), HiveTarget(dim), SPEC, at="2024-01-01")
    spec = DimensionSpec(
        key_columns="id", attributes={"name": 2, "city": 1, "tier": 2}, on_schema_change="append_new_columns"
    )
    merge(batch(tables, (2, "A")).selectExpr("*", "'gold' as tier"), dim, spec, at="2024-01-02")
    assert plain_rows(tables.spark.table(dim), ["id", "tier"]) == [(1, None), (2, "gold")]


@pytest.mark.slow
def test_types_are_not_widened(tables: Tables, dim: str) -> None:
    """The metastore keeps the types of a table."""
    rows = tables.spark.createDataFrame
    merge(rows([(1, 1)], "id int, points int"), HiveTarget(dim), DimensionSpec(key_columns="id"), at="2024-01-01")
    spec = DimensionSpec(key_columns="id", on_schema_change="sync_all_columns")
    for call in (merge, dry_run):
        with pytest.raises(TargetError, match="int\n.*bigint in the batch\n.*remedy: copy the rows to a new table"):
            call(rows([(1, 2)], "id int, points bigint"), dim, spec, at="2024-01-02")
    more = rows([(1, 1, "x")], "id int, points int, mail string")
    assert merge(more, dim, spec, at="2024-01-02").inserted == 1


@pytest.mark.slow
def test_odd_names_and_values(tables: Tables, dim: str) -> None:
    """Of columns, and of the folder: the location of a schema may have blanks and more."""
    schema = f"{tables.schema}_odd"
    place = f"{schema_location(tables)}/odd place of 100%"
    tables.spark.sql(f"create database {schema} location '{place}'")
    query = "select '{}' as `the key, {{quoted}}`, '{}' as `a \\'name\\'`, named_struct('x', {}) as nested".format
    spec = DimensionSpec(key_columns="the key, {quoted}", audit={})
    for values, day in ((("a", "", "0.5"), 1), (("a", "\\\\", "-0.5"), 2)):
        merge(tables.spark.sql(query(*values)), HiveTarget(f"{schema}.d", "parquet"), spec, at=f"2024-01-0{day}")
    assert tables.spark.table(f"{schema}.d").count() == 2
