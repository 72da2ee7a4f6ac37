"""What the cases do not reach, on a client of Spark Connect: side tables, integer keys, a conflict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from kill_batches import SPECS, compare, job, merge_here
from pyspark.sql import SparkSession
from sessions import functions_of, without_codegen
from tables import Tables, plain_rows

from healing_tables import DimensionSpec, merge
from healing_tables.targets.conflicts import is_conflict
from healing_tables.targets.delta import DeltaTarget

OPTIONS = SPECS["type4"] | {"surrogate_key": {"name": "sk", "strategy": "sequence"}}


def test_side_tables_and_integer_keys(tables: Tables, connect_tables: Tables) -> None:
    """Both kinds of session write the same."""
    for home, is_connect in ((tables, False), (connect_tables, True)):
        with functions_of(is_connect), without_codegen(home.spark):
            results = [merge_here(home.spark, job(f"{home.schema}.sides", OPTIONS, number)) for number in range(2)]
        assert results[-1].inserted and results[-1].updated and results[-1].closed
    compare(tables.spark, f"{connect_tables.schema}.sides%s", f"{tables.schema}.sides%s", OPTIONS)


@pytest.fixture(scope="module")
def connect_tables(connect: SparkSession) -> Tables:
    return Tables(connect, schema="tables_of_connect")


@pytest.fixture
def remote(connect_tables: Tables) -> Iterator[Tables]:
    with functions_of(True), without_codegen(connect_tables.spark):
        yield connect_tables


def test_another_writer(remote: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a MERGE that met another commit is known as what it is, though another kind of session raised it."""
    table, options = f"{remote.schema}.two_writers", SPECS["type2"]
    merge_here(remote.spark, job(table, options, 0))
    apply = DeltaTarget.apply
    errors: list[Any] = []

    def late(self: Any, *args: Any, **settings: Any) -> Any:
        if not errors:
            errors.append(None)
            merge_here(remote.spark, job(table, options, 1))
        try:
            return apply(self, *args, **settings)
        except Exception as error:
            errors.append(error)
            raise

    monkeypatch.setattr(DeltaTarget, "apply", late)
    assert merge_here(remote.spark, job(table, options, 2)).attempts == 2
    assert [is_conflict(error) for error in errors[1:]] == [True]
    monkeypatch.undo()
    # test_kill_merge.py compares all of it with an undisturbed run, after such a conflict
    rows = remote.spark.table(table).select("id", "name", "version", "is_current")
    assert plain_rows(rows) == [
        (0, "0 since 0", 1, True),
        (1, "1 since 0", 1, False),
        (1, "1 since 1", 2, True),
        (2, "2 since 0", 1, False),
        (2, "2 since 1", 2, False),
        (3, "3 since 1", 1, True),
        (4, "4 since 1", 1, False),
        (4, "4 since 2", 2, True),
        (5, "5 since 1", 1, False),
        (5, "5 since 2", 2, True),
    ]


def test_a_binary_key(remote: Tables) -> None:
    """A client reads no text from bytes that are none."""
    table = f"{remote.schema}.binary_key"
    spec = DimensionSpec(key_columns="id")
    for day in (1, 2):
        row = remote.spark.sql(f"select X'fffe' as id, 'day {day}' as name")
        merge(row, table, spec, at=f"2024-01-0{day}")
    rows = remote.spark.table(table).selectExpr("hex(id)", "version")
    assert plain_rows(rows) == [("FFFE", 1), ("FFFE", 2)]
