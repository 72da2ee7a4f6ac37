"""Batches that come again, whole or in part: what is known changes nothing, and hides nothing that happened since."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame
from tables import Tables, plain_rows

from healing_tables import (
    ArgumentError,
    BatchError,
    DimensionSpec,
    SpecError,
    TargetError,
    merge,
    plan,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
END = "9999-12-31 00:00:00"
TIMED: dict[str, Any] = {"key_columns": "id", "changed_at": "at", "deleted_when": "gone"}
TYPE_2 = DimensionSpec(attributes=["a"], **TIMED)
# name: (spec, rows of (day, gone, a, b))
BATCHES: dict[str, tuple[DimensionSpec, list[tuple[int, bool, str | None, str | None]]]] = {
    "types 2 and 1": (
        DimensionSpec(attributes={"a": 2, "b": 1}, **TIMED),
        [(1, False, "A", "x"), (2, False, "A", "y"), (3, False, "A", "z")],
    ),
    "types 2 and 3": (
        DimensionSpec(attributes={"a": 2, "b": 3}, **TIMED),
        [(1, False, "A", "u"), (2, False, "A", "v"), (3, False, "A", "w")],
    ),
    "deletions that the one row does not show": (
        DimensionSpec(attributes={"a": 1}, column_names={"last_updated": "last_updated"}, **TIMED),
        [
            (1, False, "x", None),
            (2, True, None, None),
            (3, False, "y", None),
            (4, True, None, None),
        ],
    ),
}


def day(number: int) -> str:
    return f"2024-01-{number:02} 00:00:00"


def batch(tables: Tables, *rows: tuple[int, bool, str | None, str | None], key: int = 1) -> DataFrame:
    frame = tables.spark.createDataFrame(
        [(key, day(number), gone, a, b) for number, gone, a, b in rows],
        "id int, at string, gone boolean, a string, b string",
    )
    return frame.withColumn("at", frame["at"].cast("timestamp"))


def versions(tables: Tables, table: str) -> list[tuple[Any, ...]]:
    return plain_rows(tables.spark.table(table), ["a", "valid_from", "valid_to", "is_current"])


@pytest.mark.parametrize("name", BATCHES)
def test_the_same_batch_again_commits_nothing(tables: Tables, name: str) -> None:
    spec, rows = BATCHES[name]
    table = f"{tables.schema}.again_{list(BATCHES).index(name)}"
    assert merge(batch(tables, *rows), table, spec).commit_version is not None
    assert merge(batch(tables, *rows), table, spec).commit_version is None


def test_a_known_row_does_not_hide_the_end_after_it(tables: Tables) -> None:
    table = f"{tables.schema}.known"
    merge(batch(tables, (1, False, "A", None)), table, TYPE_2)
    merge(batch(tables, (3, True, None, None)), table, TYPE_2)
    # ended already: to end it again is no event, whatever stands before it
    ended = merge(batch(tables, (1, False, "A", None), (4, True, None, None)), table, TYPE_2)
    assert ended.commit_version is None
    merge(batch(tables, (1, False, "A", None), (5, False, "A", None)), table, TYPE_2)
    assert versions(tables, table) == [
        ("A", day(1), day(3), False),
        ("A", day(5), END, True),
    ]


def test_a_return_is_an_update(tables: Tables) -> None:
    """A dimension without versions: the row of a key that comes back with its old values changes at that moment."""
    table = f"{tables.schema}.returns"
    spec = DimensionSpec(attributes={"a": 1}, column_names={"last_updated": "last_updated"}, **TIMED)
    for row in [(1, False, "A", None), (3, True, None, None), (5, False, "A", None)]:
        merge(batch(tables, row), table, spec)
    assert plain_rows(tables.spark.table(table), ["a", "valid_from", "last_updated"]) == [("A", day(1), day(5))]


def test_the_end_of_time_is_no_moment(tables: Tables) -> None:
    table = f"{tables.schema}.forever"
    spec = DimensionSpec(attributes=["a"], valid_to_current="2024-01-20", **TIMED)
    merge(batch(tables, (1, False, "A", None)), table, spec)
    for late in (20, 25):
        result = merge(batch(tables, (late, False, "B", None)), table, spec)
        assert (result.set_aside, result.commit_version) == (1, None)
    reasons = plain_rows(tables.spark.table(f"{table}__set_aside"), ["reason"])
    assert reasons == [("moment at or after the end of time in at",)] * 2
    assert versions(tables, table) == [("A", day(1), "2024-01-20 00:00:00", True)]


def test_an_attribute_named_as_the_moment_of_another(tables: Tables) -> None:
    table = f"{tables.schema}.named"
    frame = batch(tables, (1, False, "A", "x")).selectExpr("id", "a", "b as a_changed_at")
    spec = DimensionSpec(key_columns="id", attributes={"a": 1, "a_changed_at": 1})
    merge(frame, table, spec, at="2024-01-01")
    merge(frame.selectExpr("id", "'B' as a", "a_changed_at"), table, spec, at="2024-01-02")
    assert plain_rows(tables.spark.table(table), ["a", "a_changed_at"]) == [("B", "x")]


def test_a_name_that_is_taken_stays_taken(tables: Tables) -> None:
    table = f"{tables.schema}.taken"
    spec = DimensionSpec(key_columns="id")
    merge(tables.spark.sql("select 1 as id, 'a' as a"), table, spec)
    with pytest.raises(BatchError, match="version"):
        merge(tables.spark.sql("select 1 as id, 'a' as a, 7 as version"), table, spec)


def test_flags_of_another_type(tables: Tables) -> None:
    table = f"{tables.schema}.flags"
    frame = tables.spark.sql("select 1 as id, 'a' as a")
    merge(frame, table, DimensionSpec(key_columns="id", current_values=["Y", "N"]))
    with pytest.raises(TargetError, match="is_current"):
        merge(frame.selectExpr("id", "'b' as a"), table, DimensionSpec(key_columns="id", current_values=[True, False]))


def test_a_bound_that_is_left_out(tables: Tables) -> None:
    with pytest.raises(TargetError, match="valid_to"):
        merge(
            tables.spark.sql("select 1 as id, 'a' as a"),
            f"{tables.schema}.unbound",
            DimensionSpec(key_columns="id", column_names={"valid_to": None}),
        )
    assert not tables.spark.catalog.tableExists(f"{tables.schema}.unbound")


def test_an_audit_table_of_someone_else(tables: Tables) -> None:
    tables.spark.sql(f"create table {tables.schema}.notes (dimension string, text string) using delta")
    spec = DimensionSpec(key_columns="id", audit={"table": f"{tables.schema}.notes"})
    with pytest.raises(TargetError, match="choose another name"):
        merge(tables.spark.sql("select 1 as id, 'a' as a"), f"{tables.schema}.audited", spec)
    assert not tables.spark.catalog.tableExists(f"{tables.schema}.audited")


def test_odd_names_go_to_the_history_of_type_4(tables: Tables) -> None:
    table = f"{tables.schema}.odd"
    spec = DimensionSpec(key_columns="id", attributes={"*": 4})
    for number, price in enumerate((1, 2), start=1):
        merge(
            tables.spark.sql(f"select 1 as id, {price} as `unit price`"),
            table,
            spec,
            at=f"2024-01-0{number}",
        )
    assert plain_rows(tables.spark.table(f"{table}_history"), ["unit price"]) == [(1,)]


def test_arguments_of_other_kinds(tables: Tables) -> None:
    with pytest.raises(SpecError) as refused:
        DimensionSpec(key_columns=5, tie_break_by=5, attributes=5)  # type: ignore[arg-type]
    assert {mistake.where for mistake in refused.value.mistakes} >= {
        "key_columns",
        "tie_break_by",
        "attributes",
    }
    with pytest.raises(SpecError):
        DimensionSpec.from_dict([1])  # type: ignore[arg-type]
    one, spec = tables.spark.sql("select 1 as id"), DimensionSpec(key_columns="id")
    for at in ("soon", "9999-12-31 00:00:00", "2024-02-30"):
        with pytest.raises(ArgumentError, match=at):
            merge(one, f"{tables.schema}.x", spec, at=at)
        with pytest.raises(ArgumentError, match=at):
            plan(one, None, spec, at)
    past = DimensionSpec(key_columns="id", valid_to_current="2023-12-31")
    with pytest.raises(ArgumentError, match="before the end of time"):  # now is after it
        merge(one, f"{tables.schema}.x", past)
    assert not tables.spark.catalog.tableExists(f"{tables.schema}.x")
