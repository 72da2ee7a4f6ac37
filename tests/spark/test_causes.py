"""What the rows of a batch say of their cause: reason, source and event, in the dimension, its log, history and
audit."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame
from tables import Tables, plain_rows

from healing_tables import BatchError, DimensionSpec, SpecError, merge
from healing_tables.merge.audit import AUDIT_COLUMNS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
OPTIONS: dict[str, Any] = {
    "key_columns": "id",
    "attributes": {"*": 2, "mail": 1},
    "changed_at": "at",
    "deleted_when": "why = 'left'",
    "change_reason": "why",
    "change_source": "Place",
    "correlation_id": "event",
    "audit": {"reason": "nightly", "source": "job"},
}
DDL = "id int, name string, mail string, why string, place string, event bigint, at string"
ROWS = [
    (1, "A", "a", "signed up", "web", 101, "2024-01-01"),
    (2, "C", "c", None, None, None, "2024-01-01"),
    (1, "B", "a", "promoted", "crm", 102, "2024-01-02"),
    (1, "B", "b", "typo", None, 103, "2024-01-03"),
    (1, None, None, "left", "crm", 104, "2024-01-04"),
]
# What the rows say, or else the texts of `audit`
VERSIONS = [
    (1, "A", "b", "signed up", "web"),
    (1, "B", "b", "promoted", "crm"),
    (2, "C", "c", "new", "job"),
]
SHOWN = ("id", "name", "mail", "change_reason", "change_source")
AUDITED = ("change_type", "key", "reason", "source", "correlation_id")


def batch(tables: Tables, *rows: tuple[Any, ...]) -> DataFrame:
    given = tables.spark.createDataFrame(list(rows), DDL)
    return given.selectExpr("* except (at)", "timestamp(at || ' 00:00:00Z') as at")


def rows_of(tables: Tables, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return plain_rows(tables.spark.table(table), columns)


@pytest.fixture
def dim(tables: Tables, request: pytest.FixtureRequest) -> str:
    return f"{tables.schema}.{request.node.name.split('[')[0].removeprefix('test_')}"


@pytest.mark.slow
def test_the_cause_of_each_change(tables: Tables, dim: str) -> None:
    spec = DimensionSpec.from_dict(OPTIONS)
    for rows in (ROWS[:2], ROWS[2:3], ROWS[3:4], ROWS[4:]):
        merge(batch(tables, *rows), dim, spec)
    assert rows_of(tables, dim, *SHOWN) == VERSIONS
    one, two = '{"id":1}', '{"id":2}'
    audited = [
        ("insert", one, "signed up", "web", "101"),
        ("insert", two, "nightly", "job", None),
        ("close", one, "promoted", "crm", "102"),
        ("insert", one, "promoted", "crm", "102"),
        ("update", one, "typo", "job", "103"),
        ("update", one, "typo", "job", "103"),
        ("close", one, "left", "crm", "104"),
    ]
    assert rows_of(tables, f"{dim}_audit", *AUDITED) == sorted(audited, key=repr)
    # no row says why a key is absent from a full batch; what is known already has no new cause
    known = (1, None, None, "left", "web", 105, "2024-01-04")
    result = merge(batch(tables, known), dim, spec, full_batch=True, at="2024-01-05")
    assert (result.closed, result.inserted, result.updated) == (1, 0, 0)
    audited.append(("close", two, "nightly", "job", None))
    assert rows_of(tables, f"{dim}_audit", *AUDITED) == sorted(audited, key=repr)
    detail = tables.spark.sql(f"describe detail {dim}_audit").collect()[0]
    assert list(detail["clusteringColumns"]) == ["changed_at"]


def test_all_changes_in_one_batch(tables: Tables, dim: str) -> None:
    """Also beside an audit of before, whose table has no column for the event."""
    columns = {name: kind for name, kind in AUDIT_COLUMNS.items() if name != "correlation_id"}
    listed = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    tables.spark.sql(f"create table {dim}_audit ({listed}) using delta")
    merge(batch(tables, *ROWS), dim, DimensionSpec.from_dict(OPTIONS))
    assert rows_of(tables, dim, *SHOWN) == VERSIONS
    assert rows_of(tables, f"{dim}_audit", *AUDITED) == [
        ("insert", '{"id":1}', "promoted", "crm", "102"),
        ("insert", '{"id":1}', "signed up", "web", "101"),
        ("insert", '{"id":2}', "nightly", "job", None),
    ]


@pytest.mark.slow
def test_a_change_log_keeps_causes(tables: Tables, dim: str) -> None:
    spec = DimensionSpec.from_dict({**OPTIONS, "change_log": f"{dim}_log"})
    for row in reversed(ROWS):
        merge(batch(tables, row), dim, spec)
    assert rows_of(tables, dim, *SHOWN) == VERSIONS
    logged = rows_of(tables, f"{dim}_log", "id", "change_reason", "change_source", "correlation_id")
    assert logged == sorted(((row[0], *row[3:5], None if row[5] is None else str(row[5])) for row in ROWS), key=repr)
    # a late row is the cause of all that it changes
    tables.spark.sql(f"delete from {dim}_audit")
    late = (1, "A", "a", "found later", "mail", 106, "2023-12-31")
    merge(batch(tables, late), dim, spec)
    assert rows_of(tables, f"{dim}_audit", *AUDITED) == [
        ("insert", '{"id":1}', "found later", "mail", "106"),
        ("remove", '{"id":1}', "found later", "mail", "106"),
    ]


@pytest.mark.slow
def test_a_log_that_begins_later_keeps_causes(tables: Tables, dim: str) -> None:
    merge(batch(tables, *ROWS[:3]), dim, DimensionSpec.from_dict(OPTIONS | {"change_log": False}))
    plain = {name: value for name, value in OPTIONS.items() if not name.startswith(("chan", "corr"))}
    logged = {"change_log": f"{dim}_log"}
    # a merge that does not ask for causes begins the log: what is stored stays
    attributes = {"name": 2, "mail": 1}
    without = DimensionSpec.from_dict({**plain, **logged, "attributes": attributes})
    merge(batch(tables, (3, "D", "d", None, None, None, "2024-01-02")), dim, without)
    spec = DimensionSpec.from_dict({**OPTIONS, **logged})
    merge(batch(tables, (1, "X", "x", "found later", None, None, "2023-12-31")), dim, spec)
    assert rows_of(tables, dim, *SHOWN) == [
        (1, "A", "a", "signed up", "web"),
        (1, "B", "a", "promoted", "crm"),
        (1, "X", "a", "found later", "job"),
        (2, "C", "c", "new", "job"),
        (3, "D", "d", "new", "job"),
    ]


@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param([ROWS], id="whole"),
        pytest.param([[row] for row in ROWS], id="cut", marks=pytest.mark.slow),
    ],
)
def test_the_history_tells_why_a_row_left(tables: Tables, dim: str, cuts: list[list[Any]]) -> None:
    dim = f"{dim}_{len(cuts)}"
    spec = DimensionSpec.from_dict({**OPTIONS, "attributes": {"name": 4, "mail": 1}})
    for rows in cuts:
        merge(batch(tables, *rows), dim, spec)
    assert rows_of(tables, dim, *SHOWN) == [(2, "C", "c", "new", "job")]
    assert rows_of(tables, f"{dim}_history", "id", "name", "change_reason") == [
        (1, "A", "promoted"),
        (1, "B", "left"),
    ]


def test_columns_that_are_none(tables: Tables) -> None:
    with pytest.raises(SpecError, match="change_source\n.*wanted: a text"):
        DimensionSpec.from_dict({**OPTIONS, "change_source": 3})
    spec = DimensionSpec.from_dict({**OPTIONS, "change_reason": "reason"})
    with pytest.raises(BatchError, match="change_reason: reason\n.*a column of the batch"):
        merge(batch(tables, ROWS[0]), f"{tables.schema}.none", spec)
