"""A merge into Iceberg that dies at any of its steps, streams, and the change log."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame
from tables import Tables, plain_rows

from healing_tables import DimensionSpec, IcebergTarget, merge
from healing_tables.merge import outbox
from healing_tables.merge.outbox import Outbox
from healing_tables.targets import iceberg, sql_table

pytestmark = pytest.mark.usefixtures("interpreted")
TYPE_4 = DimensionSpec(key_columns="id", attributes={"name": 4, "city": 1}, audit={})


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    return f"{tables.schema}.{name.removeprefix('test_')}"


def batch(tables: Tables, *rows: tuple[int, str | None]) -> DataFrame:
    return tables.spark.createDataFrame([(*row, "Bern") for row in rows], "id int, name string, city string")


def rows(tables: Tables, name: str, *columns: str) -> list[tuple[Any, ...]]:
    tables.spark.sql(f"refresh table {name}")
    return plain_rows(tables.spark.table(name), columns)


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def interrupt_with_work(_: Any, __: Any, merges: Any) -> None:
    if list(merges):
        raise KeyboardInterrupt


# the step that it dies before, and whether the dimension has committed then
STEPS = {
    "stage": (Outbox, False),
    "apply": (IcebergTarget, False),
    "merge_statement": (sql_table, False),  # after the branch is made
    "heads": (IcebergTarget, False),  # after the MERGE into the branch
    "publish": (IcebergTarget, False),
    "deliver": (Outbox, True),
    "finish": (IcebergTarget, True),
}


@pytest.mark.parametrize("step", [pytest.param(step, marks=[pytest.mark.slow] * (step != "deliver")) for step in STEPS])
def test_a_process_dies(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    kind, is_done = STEPS[step]
    merge(batch(tables, (1, "A"), (2, "A")), IcebergTarget(dim), TYPE_4, at="2024-01-01")
    target = IcebergTarget(dim)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(kind, step, interrupt_with_work if step == "finish" else interrupt)
        if step == "heads":  # `unfinished` asks for them too
            patch.setattr(IcebergTarget, "unfinished", lambda *_: [])
        merge(batch(tables, (1, "B")), dim, TYPE_4, at="2024-01-02")
    assert rows(tables, dim, "id", "name") == [(1, "B" if is_done else "A"), (2, "A")]
    left = [branch.is_committed for branch in target.unfinished(tables.spark)]
    assert left == ([] if step in ("stage", "apply") else [is_done])
    merge(batch(tables, (2, "C")), dim, TYPE_4, at="2024-01-03")
    assert rows(tables, f"{dim}_history", "id", "name") == ([(1, "A")] if is_done else []) + [(2, "A")]
    assert len(rows(tables, f"{dim}_audit")) == 4 if is_done else 3
    # what never committed is dropped once it is old
    left = [branch.is_committed for branch in target.unfinished(tables.spark)]
    assert left == ([False] if step in ("merge_statement", "heads", "publish") else [])
    monkeypatch.setattr(iceberg, "ABANDONED", -1)
    monkeypatch.setattr(outbox, "ABANDONED", "interval -1 day")
    merge(batch(tables, (2, "C")), dim, TYPE_4, at="2024-01-04")
    assert target.unfinished(tables.spark) == []
    assert rows(tables, f"{dim}__pending") == []
    assert len(rows(tables, f"{dim}_history")) == 1 + is_done


def test_two_merges_from_one_snapshot(tables: Tables, dim: str, between: Any) -> None:
    """Both have written to their branches: one is published, the other merge reads and plans again."""
    spec = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1})
    merge(batch(tables, (1, "A")), IcebergTarget(dim), spec, at="2024-01-01")
    between(IcebergTarget, "publish", lambda: merge(batch(tables, (1, "B")), dim, spec, at="2024-01-02"))
    assert merge(batch(tables, (1, "C")), dim, spec, at="2024-01-03").attempts == 2
    assert rows(tables, dim, "name", "version") == [("A", 1), ("B", 2), ("C", 3)]
    assert IcebergTarget(dim).unfinished(tables.spark) == []


@pytest.mark.slow
def test_a_process_dies_while_another_recovers(
    tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch, between: Any
) -> None:
    """The other one reads the branches before the staged rows: it delivers them before it drops the branch."""
    merge(batch(tables, (1, "A"), (2, "A")), IcebergTarget(dim), TYPE_4, at="2024-01-01")

    def dies() -> None:
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Outbox, "deliver", interrupt)
            merge(batch(tables, (1, "B")), dim, TYPE_4, at="2024-01-02")

    between(IcebergTarget, "unfinished", dies)
    merge(batch(tables, (2, "C")), dim, TYPE_4, at="2024-01-03")
    assert rows(tables, f"{dim}_history", "id", "name") == [(1, "A"), (2, "A")]
    assert IcebergTarget(dim).unfinished(tables.spark) == []


@pytest.mark.slow
def test_an_answer_that_is_lost(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The branch is published although the client got an error."""
    spark, kind = tables.spark, type(tables.spark)
    then: Any = kind.sql

    def sql(session: Any, statement: str, *args: Any, **options: Any) -> Any:
        found = then(session, statement, *args, **options)
        if "fast_forward" in statement:
            found.collect()
            raise ConnectionError("reset")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(kind, "sql", sql)
        result = merge(batch(tables, (1, "A")), IcebergTarget(dim), TYPE_4, at="2024-01-01")
    assert (result.inserted, result.attempts) == (1, 1)
    assert result.commit_version == IcebergTarget(dim).version(spark)
    assert len(rows(tables, f"{dim}_audit")) == 1


@pytest.mark.slow
def test_a_publish_that_is_still_at_work(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client has an error already, and main changes while it looks."""
    kind = type(tables.spark)
    then: Any = kind.sql
    calls: list[str] = []
    looks: list[str] = []

    def sql(session: Any, statement: str, *args: Any, **options: Any) -> Any:
        if "fast_forward" in statement and not calls:
            calls.append(statement)
            raise ConnectionError("reset")
        return then(session, statement, *args, **options)

    def published_before_the_second_look(method: Any) -> Any:
        def look(*args: Any) -> Any:
            looks.extend(calls)
            if len(looks) == 2:
                then(tables.spark, calls[0]).collect()
            return method(*args)

        return look

    merge(batch(tables, (1, "A")), IcebergTarget(dim), TYPE_4, at="2024-01-01")
    with monkeypatch.context() as patch:
        patch.setattr(kind, "sql", sql)
        for method in ("described", "published"):
            patch.setattr(IcebergTarget, method, published_before_the_second_look(getattr(IcebergTarget, method)))
        assert merge(batch(tables, (1, "B")), dim, TYPE_4, at="2024-01-02").attempts == 1
    assert len(rows(tables, f"{dim}_audit")) == 2


def test_a_stream(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a micro-batch is that of its branch until it is a property of the table."""
    sink = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}).sink(IcebergTarget(dim), name="crm")
    other = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}).sink(IcebergTarget(dim), name="crm-2")
    for number, name in enumerate(["A", "B", "A"]):
        sink(batch(tables, (1, name)), number)
    sink(batch(tables, (1, "B")), 1)  # again: nothing
    assert rows(tables, dim, "name", "is_current") == [("A", False), ("A", True), ("B", False)]
    other(batch(tables, (2, "X")), 1)
    # dies after the publish
    for step in ("note_number", "finish"):
        number += 1
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(IcebergTarget, step, interrupt_with_work if step == "finish" else interrupt)
            sink(batch(tables, (1, f"died before {step}")), number)
        sink(batch(tables, (1, "again")), number)
        sink(batch(tables, (1, f"after {step}")), number + 1)
        number += 1
        sink(batch(tables, (1, "again")), number - 1)
    current = [("X",), ("after finish",)]
    assert plain_rows(tables.spark.table(dim).where("is_current"), ["name"]) == current
    assert tables.spark.table(dim).where("name = 'again'").isEmpty()
    properties = [row[0] for row in tables.spark.sql(f"show tblproperties {dim}").collect()]
    noted = [name for name in properties if name.startswith(iceberg.MICRO_BATCH)]
    assert sorted(noted) == ["healing_tables.micro_batch@crm-2:1", f"healing_tables.micro_batch@crm:{number}"]
    # a process that has slept since adds an earlier number: no harm
    IcebergTarget(dim).note_number(tables.spark, "@crm:", 1)
    assert IcebergTarget(dim).newest_number(tables.spark, "@crm:") == number


def logged(dim: str, **options: Any) -> DimensionSpec:
    return DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1}, change_log=f"{dim}_changes", **options)


def versions(tables: Tables, dim: str) -> list[tuple[Any, ...]]:
    tables.spark.sql(f"refresh table {dim}")
    return plain_rows(tables.spark.table(dim).selectExpr("id", "name", "day(valid_from)", "day(valid_to)"))


@pytest.mark.slow
def test_a_change_log(tables: Tables, dim: str, between: Any) -> None:
    """Late changes find their place, beside another writer to the log, and over what was stored before."""
    without = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1})
    merge(batch(tables, (1, "A")), IcebergTarget(dim), without, at="2024-01-01 00:00")
    merge(batch(tables, (1, "D")), dim, logged(dim), at="2024-01-07 00:00")
    between(Outbox, "stage", lambda: merge(batch(tables, (1, "B")), dim, logged(dim), at="2024-01-03 00:00"))
    assert merge(batch(tables, (1, "C")), dim, logged(dim), at="2024-01-05 00:00").attempts == 2
    assert versions(tables, dim) == [(1, "A", 1, 3), (1, "B", 3, 5), (1, "C", 5, 7), (1, "D", 7, 31)]
    # it names no log, and uses the one that is recorded
    merge(batch(tables, (1, "E")), dim, without, at="2024-01-08 00:00")
    assert len(rows(tables, f"{dim}_changes")) == 5
    assert rows(tables, f"{dim}__pending") == []
    for name in (dim, f"{dim}_changes"):
        assert IcebergTarget(name).unfinished(tables.spark) == []


@pytest.mark.slow
def test_a_batch_that_only_the_log_gets(tables: Tables, dim: str, between: Any) -> None:
    """No commit of the dimension shows it to another merge: the log does."""
    merge(batch(tables, (1, "A")), IcebergTarget(dim), logged(dim), at="2024-01-01 00:00")

    def adds() -> None:
        assert merge(batch(tables, (1, "A")), dim, logged(dim), at="2024-01-03 00:00").commit_version is None

    between(Outbox, "publish", adds)
    assert merge(batch(tables, (1, "B")), dim, logged(dim), at="2024-01-02 00:00").attempts == 2
    assert versions(tables, dim) == [(1, "A", 1, 2), (1, "A", 3, 31), (1, "B", 2, 3)]


@pytest.mark.slow
def test_a_change_log_that_begins_during_a_merge(tables: Tables, dim: str, between: Any) -> None:
    """The merge that does not know of it commits nothing, and plans again with it."""
    without = DimensionSpec(key_columns="id", attributes={"name": 2, "city": 1})
    merge(batch(tables, (1, "A")), IcebergTarget(dim), without, at="2024-01-01 00:00")

    def begins() -> None:
        assert merge(batch(tables, (1, "A")), dim, logged(dim), at="2024-01-02 00:00").commit_version is None

    between(IcebergTarget, "publish", begins)
    assert merge(batch(tables, (1, "B")), dim, without, at="2024-01-03 00:00").attempts == 2
    assert versions(tables, dim) == [(1, "A", 1, 3), (1, "B", 3, 31)]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["deliver", "check_log", "forget", "finish"])
def test_a_process_dies_with_a_change_log(tables: Tables, dim: str, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    merge(batch(tables, (1, "A")), IcebergTarget(dim), logged(dim, audit={}), at="2024-01-01 00:00")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        is_finish = step == "finish"
        patch.setattr(IcebergTarget if is_finish else Outbox, step, interrupt_with_work if is_finish else interrupt)
        merge(batch(tables, (1, "C")), dim, logged(dim, audit={}), at="2024-01-05 00:00")
    assert IcebergTarget(dim).unfinished(tables.spark)[0].is_committed
    merge(batch(tables, (1, "B")), dim, logged(dim, audit={}), at="2024-01-03 00:00")
    assert versions(tables, dim) == [(1, "A", 1, 3), (1, "B", 3, 5), (1, "C", 5, 31)]
    assert len(rows(tables, f"{dim}_changes")) == 3
    assert rows(tables, f"{dim}__pending") == []
    assert IcebergTarget(dim).unfinished(tables.spark) == []
