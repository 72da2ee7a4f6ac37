"""Rows of a batch that are set aside, and columns that a batch lacks: the same on every kind of table."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from postgres_server import PASSWORD, Server
from pyspark.sql import DataFrame
from sessions import FORMAT
from tables import Tables, plain_rows

from healing_tables import (
    BatchError,
    DimensionSpec,
    FilesTarget,
    HiveTarget,
    LateChangeError,
    PostgresTarget,
    TargetError,
    merge,
    plan,
)
from healing_tables.merge.dry_run import dry_run
from healing_tables.targets.find import target_of

pytestmark = pytest.mark.usefixtures("interpreted")
OTHERS = [] if FORMAT == "iceberg" else ["hive", "files", "postgres"]
KINDS = ["sql", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
TIMED: dict[str, Any] = {"key_columns": "id", "changed_at": "at", "deleted_when": "op = 'D'"}
TYPES = DimensionSpec(attributes={"name": 2, "mail": 1}, change_log=False, **TIMED)
DDL = "id int, name string, mail string, op string, at string"


@pytest.fixture(params=KINDS)
def dim(request: pytest.FixtureRequest, tables: Tables, tmp_path: Path) -> Iterator[Any]:
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name.removeprefix("test_").lower())
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PGPASSWORD", PASSWORD)
            yield PostgresTarget(f"public.{name[-40:]}", server.url)
    elif request.param == "hive":
        yield HiveTarget(f"{tables.schema}.{name}", "parquet")
    elif request.param == "files":
        yield FilesTarget(f"{tmp_path}/dim")
    else:
        yield target_of(tables.spark, f"{tables.schema}.{name}")


def day(number: int) -> str:
    return f"2024-01-{number:02} 00:00:00"


def batch(tables: Tables, *rows: tuple[Any, ...], ddl: str = DDL) -> DataFrame:
    """Args: rows: without ``op`` and ``at`` where these are the last of ``ddl``; the last value is a day, or NULL."""
    given = [(*row[:-1], None if row[-1] is None else day(row[-1])) for row in rows]
    frame = tables.spark.createDataFrame(given, ddl)
    return frame.withColumn("at", frame["at"].cast("timestamp"))


def rows_of(tables: Tables, table: Any, *columns: str) -> list[tuple[Any, ...]]:
    found = table.read(tables.spark)
    return [] if found is None else plain_rows(found, columns)


def versions(tables: Tables, dim: Any) -> list[tuple[Any, ...]]:
    return rows_of(tables, dim, "id", "name", "mail", "valid_from", "is_current")


def aside(tables: Tables, dim: Any, *columns: str) -> list[tuple[Any, ...]]:
    return rows_of(tables, dim.beside("__set_aside"), *columns)


def test_rows_without_a_place(tables: Tables, dim: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The others are merged. The same batch again changes nothing, there neither."""
    given = batch(
        tables, (1, "A", "a", "U", 2), (None, "B", "b", "U", 2), (None, "B", "b", "U", 2), (3, "C", "c", "D", None)
    )
    with caplog.at_level(logging.WARNING, "healing_tables"):
        result = merge(given, dim, TYPES, batch_id="night 1")
    assert (result.rows_in_batch, result.inserted, result.set_aside, result.unchanged) == (4, 1, 3, 0)
    assert "3 rows set aside" in caplog.text and "__set_aside" in caplog.text
    assert versions(tables, dim) == [(1, "A", "a", day(2), True)]
    wanted = [
        (3, "C", "D", None, "NULL moment in at", "night 1"),
        (None, "B", "U", day(2), "NULL in key column id", "night 1"),
    ]
    shown = ("id", "name", "op", "at", "reason", "set_aside_batch_id")
    assert aside(tables, dim, *shown) == wanted

    again = merge(given, dim, TYPES, batch_id="night 2")
    assert (again.set_aside, again.unchanged, again.commit_version) == (3, 1, None)
    assert aside(tables, dim, *shown) == wanted
    # a batch with another column, and a row at the end of time
    other = batch(tables, (4, "D", "d", "U", "crm", 1), ddl=DDL.replace("at string", "origin string, at string"))
    other = other.selectExpr("id", "name", "mail", "op", "timestamp'9999-12-31 00:00:00' as at", "origin")
    assert merge(other, dim, TYPES).set_aside == 1
    assert aside(tables, dim, "id", "origin", "reason")[-2:] == [
        (4, "crm", "moment at or after the end of time in at"),
        (None, None, "NULL in key column id"),
    ]


def test_a_full_batch_with_rows_set_aside(tables: Tables, dim: Any) -> None:
    """A key does not end if its row is set aside. Rows without a key have no influence."""
    merge(batch(tables, (1, "A", "a", "U", 1), (2, "B", "b", "U", 1), (3, "C", "c", "U", 1)), dim, TYPES)
    result = merge(
        batch(tables, (1, "A", "a", "U", 2), (2, "B", "b", "U", None), (None, "C", "c", "U", 2)),
        dim,
        TYPES,
        at=day(3),
        full_batch=True,
    )
    assert (result.closed, result.set_aside) == (1, 2)
    assert [row[0] for row in versions(tables, dim) if row[-1]] == [1, 2]
    with pytest.raises(BatchError, match="only rows that are set aside \\(NULL moment in at: 1 row\\)"):
        merge(batch(tables, (1, "A", "a", "U", None)), dim, TYPES, at=day(4), full_batch=True)


def test_late_rows(tables: Tables, dim: Any) -> None:
    """They are refused with their moments, or set aside; the other rows of their keys are merged."""
    merge(batch(tables, (1, "A", "a", "U", 1), (1, "B", "a", "U", 5), (2, "A", "a", "U", 5)), dim, TYPES)
    given = batch(tables, (1, "X", "a", "U", 3), (1, "C", "a", "U", 7), (2, "Y", "a", "U", 5), (3, "N", "n", "U", 1))
    with pytest.raises(LateChangeError) as error:
        merge(given, dim, TYPES)
    assert [mistake.got for mistake in error.value.mistakes] == [
        "id = 1 at 2024-01-03 00:00:00 UTC",
        "id = 2 at 2024-01-05 00:00:00 UTC",
    ]
    assert len(versions(tables, dim)) == 3
    spec = DimensionSpec(attributes={"name": 2, "mail": 1}, on_late="set_aside", **TIMED)
    planned = dry_run(given, dim, spec)
    assert planned.set_aside == 2 and dict(planned.counts) == {"insert": 2, "close": 1}
    result = merge(given, dim, spec)
    assert (result.set_aside, result.inserted, result.closed, result.unchanged) == (2, 2, 1, 0)
    assert [(row[1], row[3]) for row in versions(tables, dim) if row[0] == 1] == [
        ("A", day(1)),
        ("B", day(5)),
        ("C", day(7)),
    ]
    late = "a late change, older than the newest stored change of its key and different from the version of its moment"
    tie = "a row that differs from the stored row with the same key and moment"
    assert aside(tables, dim, "id", "name", "reason") == [(1, "X", late), (2, "Y", tie)]
    # in a full batch, a key that has only late rows does not end
    result = merge(batch(tables, (1, "X", "a", "U", 4), (3, "N", "n", "U", 8)), dim, spec, at=day(9), full_batch=True)
    assert [row[:2] for row in versions(tables, dim) if row[-1]] == [(1, "C"), (3, "N")]
    assert (result.set_aside, result.closed) == (1, 1)


def test_columns_that_a_batch_lacks(tables: Tables, dim: Any) -> None:
    attributes = {"name": 2, "mail": 1, "tier": 3}
    spec = DimensionSpec(key_columns="id", changed_at="at", attributes=attributes, change_log=False)
    ddl = "id int, name string, mail string, tier string, at string"
    merge(batch(tables, (1, "A", "a", "gold", 1), (2, "B", "b", "tin", 1), ddl=ddl), dim, spec)
    lost = batch(tables, (1, "A2", 2), (1, "A3", 3), (2, "B", 3), (3, "C", 2), ddl="id int, name string, at string")
    with pytest.raises(BatchError) as error:
        merge(lost, dim, spec)
    assert [(mistake.where, mistake.remedy) for mistake in error.value.mistakes] == [
        (f"attributes: {name}", "add it to the batch, or set missing_columns: keep, or null")
        for name in ("mail", "tier")
    ]
    keep = DimensionSpec(key_columns="id", changed_at="at", attributes=attributes, missing_columns="keep")
    assert merge(lost, dim, keep).unchanged == 1
    shown = ("id", "name", "mail", "tier", "previous_tier")
    assert rows_of(tables, dim, *shown) == [
        (1, "A", "a", "gold", None),
        (1, "A2", "a", "gold", None),
        (1, "A3", "a", "gold", None),
        (2, "B", "b", "tin", None),
        (3, "C", None, None, None),
    ]
    assert merge(lost, dim, keep).commit_version is None
    empty = DimensionSpec(
        key_columns="id", changed_at="at", attributes={"*": 2, "mail": 1, "tier": 3}, missing_columns="null"
    )
    merge(batch(tables, (2, "B", 4), ddl="id int, name string, at string"), dim, empty)
    assert rows_of(tables, dim, *shown)[3] == (2, "B", None, None, "tin")


def test_all_other_columns_that_a_batch_lacks(tables: Tables, dim: Any) -> None:
    """With ``'*'``, the stored columns that the package did not add are attributes."""
    spec = DimensionSpec(
        key_columns="id",
        attributes={"*": 6},
        column_names={"last_updated": "changed"},
        surrogate_key={"name": "sk"},
        missing_columns="keep",
    )
    merge(tables.spark.sql("select 1 as id, 'A' as name, 'a' as mail"), dim, spec, at=day(1))
    columns = dim.read(tables.spark).columns
    merge(tables.spark.sql("select 1 as id, 'B' as name"), dim, spec, at=day(2))
    assert dim.read(tables.spark).columns == columns
    assert rows_of(tables, dim, "name", "mail", "current_mail", "previous_mail") == [
        ("A", "a", "a", None),
        ("B", "a", "a", "a"),
    ]


def test_attributes_that_arrive_later(tables: Tables, dim: Any, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {"key_columns": "id", "attributes": {"name": 2, "tier": 3}}
    with pytest.raises(BatchError, match="attributes: tier"):
        merge(tables.spark.sql("select 1 as id, 'A' as name"), dim, DimensionSpec(**options), at=day(1))
    spec = DimensionSpec(**options, on_schema_change="append_new_columns")
    with caplog.at_level(logging.WARNING, "healing_tables"):
        merge(tables.spark.sql("select 1 as id, 'A' as name"), dim, spec, at=day(1))
    assert "no column tier" in caplog.text
    assert "tier" not in dim.read(tables.spark).columns
    merge(tables.spark.sql("select 1 as id, 'A' as name, 'gold' as tier"), dim, spec, at=day(2))
    assert rows_of(tables, dim, "name", "tier", "previous_tier") == [("A", "gold", None)]
    with pytest.raises(BatchError, match="attributes: tier"):
        merge(tables.spark.sql("select 1 as id, 'B' as name"), dim, spec, at=day(3))


def test_a_plan_leaves_rows_out(tables: Tables) -> None:
    stored = None
    given = batch(tables, (1, "A", "a", "U", 2), (None, "B", "b", "U", 2), (2, "C", "c", "U", None))
    made = plan(given, stored, TYPES)
    assert [(row["action"], row["key"]["id"], row["rows"]) for row in made.collect()] == [("insert", 1, 1)]


def test_ties_with_what_is_stored(tables: Tables) -> None:
    """A row at the moment of a deletion, and one at the moment of a change of type 1: no order would help."""
    dim = f"{tables.schema}.ties"
    spec = DimensionSpec(attributes={"name": 2, "mail": {"scd_type": 1, "changed_at": True}}, change_log=False, **TIMED)
    merge(batch(tables, (1, "A", "a", "U", 1), (1, "A", "a", "D", 5)), dim, spec)
    merge(batch(tables, (2, "A", "a", "U", 1), (2, "A", "b", "U", 5)), dim, spec)
    for row in [(1, "B", "a", "U", 5), (2, "A", "c", "U", 5)]:
        with pytest.raises(
            LateChangeError, match=f"differs from the stored row with the same key and moment\n.*\n.*id = {row[0]} at"
        ):
            merge(batch(tables, row), dim, spec)


def test_a_table_of_rows_set_aside_gets_wider_types(tables: Tables, dim: Any) -> None:
    spec = DimensionSpec(key_columns="id", attributes=["name"])
    merge(tables.spark.sql("select cast(null as int) as id, 'A' as name, 1 as extra"), dim, spec)
    wide = tables.spark.sql("select cast(null as int) as id, 'A' as name, 5000000000 as extra")
    if isinstance(dim, HiveTarget):
        with pytest.raises(TargetError, match="__set_aside.extra\n.*the type bigint.*\n.*int"):
            merge(wide, dim, spec)
    else:
        merge(wide, dim, spec)
        assert aside(tables, dim, "extra") == [(1,), (5000000000,)]


def test_a_table_of_rows_set_aside_with_other_types(tables: Tables) -> None:
    dim = f"{tables.schema}.other_types"
    merge(
        tables.spark.sql("select cast(null as int) as id, 'A' as name, 1 as extra"),
        dim,
        DimensionSpec(key_columns="id", attributes=["name"]),
    )
    given = tables.spark.sql("select cast(null as int) as id, 'A' as name, array(1) as extra, map(1, 2) as more")
    with pytest.raises(TargetError, match="__set_aside.extra\n.*the type string.*\n.*int"):
        merge(given, dim, DimensionSpec(key_columns="id", attributes=["name"]))
    merge(given.drop("extra"), dim, DimensionSpec(key_columns="id", attributes=["name"]))
    assert plain_rows(tables.spark.table(f"{dim}__set_aside"), ["name", "extra", "more"]) == [
        ("A", 1, None),
        ("A", None, '{"1":2}'),
    ]
    own = tables.spark.sql("select cast(null as int) as id, 'A' as name, 'typo' as reason, now() as set_aside_at")
    merge(own, dim, DimensionSpec(key_columns="id", attributes=["name"]))
    row = tables.spark.table(f"{dim}__set_aside").where("reason = 'typo'").collect()[0]
    assert row["set_aside_reason"] == "NULL in key column id"


def test_rows_that_changed_nothing(tables: Tables) -> None:
    """Without a change log they leave no trace, so they are counted."""
    dim = f"{tables.schema}.no_trace"
    first = batch(
        tables, (1, "A", "a", "U", 10), (1, "B", "a", "U", 20), (1, "B", "a", "U", 30), (2, "A", "a", "D", 20)
    )
    assert merge(first, dim, TYPES).unchanged == 2
    result = merge(batch(tables, (2, "A", "a", "D", 21), (1, "B", "a", "U", 30), (1, "B", "z", "U", 31)), dim, TYPES)
    assert (result.unchanged, result.updated) == (2, 2)
    assert "2 rows without effect" in str(result)
    # type 4 moves rows to its history
    type_4 = DimensionSpec(attributes={"name": 4, "mail": 4}, change_log=False, **TIMED)
    rows = [
        (1, "A", "a", "U", 1),
        (1, "B", "a", "U", 2),
        (2, "A", "a", "U", 1),
        (2, "A", "a", "D", 2),
        (3, "A", "a", "D", 2),
    ]
    assert merge(batch(tables, *rows), f"{dim}_4", type_4).unchanged == 1
    assert merge(batch(tables, (1, "B", "a", "D", 3), (1, "C", "a", "U", 4)), f"{dim}_4", type_4).unchanged == 0


def test_a_recorded_change_log(tables: Tables, dim: Any) -> None:
    """Later merges and dry runs use it without naming it; a dry run writes nothing."""
    if isinstance(dim, PostgresTarget):
        pytest.skip("PostgreSQL keeps no change log")
    log = dim.beside("_changes").name
    spec = DimensionSpec(attributes={"name": 2, "mail": 1}, change_log=log, **TIMED)
    unnamed = replace(spec, change_log=None)
    planned = dry_run(batch(tables, (1, "A", "a", "U", 1), (1, "B", "a", "U", 5)), dim, spec)
    assert dict(planned.counts) == {"insert": 2}
    assert dim.read(tables.spark) is None and dim.beside("_changes").read(tables.spark) is None
    result = merge(batch(tables, (1, "A", "a", "U", 1), (1, "B", "a", "U", 5)), dim, spec)
    assert result.unchanged is None
    late = batch(tables, (1, "X", "a", "U", 3), (None, "X", "a", "U", 3))
    planned = dry_run(late, dim, unnamed)
    assert (planned.set_aside, dict(planned.counts)) == (1, {"insert": 1, "update": 2})
    assert len(versions(tables, dim)) == 2
    result = merge(late, dim, unnamed)
    assert (result.inserted, result.updated, result.set_aside) == (1, 2, 1)
    assert [(row[1], row[3]) for row in versions(tables, dim)] == [("A", day(1)), ("B", day(5)), ("X", day(3))]
    # a key whose row of a full batch is set aside is not absent, now and when the log is read again
    merge(batch(tables, (2, "N", "n", "U", 1), (1, "B", "b", "U", None)), dim, unnamed, at=day(8), full_batch=True)
    merge(batch(tables, (1, "Y", "a", "U", 2)), dim, unnamed)
    assert {row[:2] for row in versions(tables, dim) if row[-1]} == {(1, "B"), (2, "N")}
    # a batch without a column: the value before it in the log
    keep = DimensionSpec(attributes={"name": 2, "mail": 1}, missing_columns="keep", **TIMED)
    merge(batch(tables, (1, "Z", "U", 9), ddl="id int, name string, op string, at string"), dim, keep)
    assert ("Z", "a") in [row[1:3] for row in versions(tables, dim)]


def test_a_dry_run_of_a_new_change_log(tables: Tables) -> None:
    """It begins with the stored rows, as the merge does."""
    dim = f"{tables.schema}.dry"
    merge(batch(tables, (1, "A", "a", "U", 1), (1, "B", "a", "U", 5)), dim, TYPES)
    spec = DimensionSpec(attributes={"name": 2, "mail": 1}, change_log=f"{dim}_changes", **TIMED)
    planned = dry_run(batch(tables, (1, "X", "a", "U", 3)), dim, spec)
    assert dict(planned.counts) == {"insert": 1, "update": 2}  # the version after it has another number
    assert not tables.spark.catalog.tableExists(f"{dim}_changes")
    merge(batch(tables, (1, "X", "a", "U", 3)), dim, spec)
    assert len(plain_rows(tables.spark.table(dim))) == 3


def test_a_column_that_a_dimension_of_dates_lacks_a_moment_for(tables: Tables) -> None:
    """The moments of rows set aside keep their type."""
    dim = f"{tables.schema}.dates"
    rows = tables.spark.sql("select 1 as id, 'A' as name, date'2024-01-01' as at union all select 2, 'B', null")
    assert merge(rows, dim, DimensionSpec(key_columns="id", changed_at="at", on_late="set_aside")).set_aside == 1
    assert plain_rows(tables.spark.table(f"{dim}__set_aside"), ["id", "at"]) == [(2, None)]
    early = tables.spark.sql("select 1 as id, 'Z' as name, date'2023-01-01' as at")
    assert merge(early, dim, DimensionSpec(key_columns="id", changed_at="at", on_late="set_aside")).set_aside == 1
    assert plain_rows(tables.spark.table(f"{dim}__set_aside"), ["id", "at"])[0] == (1, dt.date(2023, 1, 1))
