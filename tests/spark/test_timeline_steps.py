"""The steps of a merge's plan (plan/timeline.py, plan/columns.py), one by one: what goes in, and what each adds."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame
from tables import Tables

from healing_tables import DimensionSpec
from healing_tables.definition.layout import Layout
from healing_tables.plan.batch import events as events_of
from healing_tables.plan.columns import new_values
from healing_tables.plan.plan import on_timeline, resolved
from healing_tables.plan.timeline import versions, with_kept_values, with_outcomes, with_transitions

SPEC = DimensionSpec(
    key_columns="id",
    attributes={"city": 2, "phone": 1},
    changed_at="at",
    deleted_when="op = 'D'",
    missing_columns="keep",
)
STORED = "id int, city string, phone string, valid_from timestamp, valid_to timestamp, is_current boolean"
BATCH = "id int, city string, phone string, at timestamp, op string"
OPEN = "9999-12-31"
# One key: two stored versions; a change, a deletion, a return, and a change of type 1
TWO_VERSIONS = [(1, "A", "p", "2024-01-01", "2024-01-05", False), (1, "B", "p", "2024-01-05", OPEN, True)]
NEWS = [
    (1, "C", "p", "2024-01-08", "U"),
    (1, None, None, "2024-01-09", "D"),
    (1, "C", "p", "2024-01-12", "U"),
    (1, "C", "q", "2024-01-13", "U"),
]


def frame(tables: Tables, rows: list[tuple[Any, ...]], columns: str) -> DataFrame:
    return tables.spark.createDataFrame(rows, columns.replace("timestamp", "string")).selectExpr(
        *(f"cast({part.split()[0]} as {part.split()[1]})" for part in columns.split(", "))
    )


def timeline(
    tables: Tables, stored: list[tuple[Any, ...]], batch: list[tuple[Any, ...]], columns: str = BATCH
) -> tuple[DataFrame, Layout, Any]:
    """Stored rows and events as `with_outcomes` takes them."""
    given, table = frame(tables, batch, columns), frame(tables, stored, STORED)
    layout, spec, moment, is_full = resolved(given, table, SPEC, None, None)
    events = events_of(given, layout, spec, moment).where("reason is null")
    return on_timeline(events, table, layout, spec, moment, is_full, None), layout, spec


def found(rows: DataFrame, *columns: str, order: str = "k1, at, kind") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in rows.orderBy(*order.split(", ")).selectExpr(*columns).collect()]


def day(column: str) -> str:
    return f"date_format(timestamp_micros({column}), 'MM-dd')"


@pytest.mark.parametrize(
    ("stored", "event", "outcome"),
    [
        ([], (1, "A", "p", "2024-01-03", "U"), "event"),
        (TWO_VERSIONS, (1, "C", "p", "2024-01-08", "U"), "event"),
        (TWO_VERSIONS, (1, "A", "p", "2024-01-03", "U"), "unchanged"),
        (TWO_VERSIONS, (1, "A", "old", "2024-01-03", "U"), "unchanged"),  # a newer row has hidden this phone
        (TWO_VERSIONS, (1, "Z", "p", "2024-01-03", "U"), "late"),
        (TWO_VERSIONS, (1, "Z", "p", "2024-01-05", "U"), "tied"),
        (TWO_VERSIONS, (1, None, None, "2024-01-03", "D"), "late"),
        ([(1, "A", "p", "2024-01-01", "2024-01-05", False)], (1, None, None, "2024-01-05", "D"), "unchanged"),
        ([TWO_VERSIONS[1], (1, "C", "p", "2024-01-04", OPEN, True)], (1, "D", "p", "2024-01-08", "U"), "damaged"),
    ],
)
def test_outcome(tables: Tables, stored: list[Any], event: tuple[Any, ...], outcome: str) -> None:
    items, layout, _ = timeline(tables, stored, [event])
    outcomes = found(with_outcomes(items, layout), "kind", "outcome")
    of_stored = "damaged" if outcome == "damaged" else "stored"
    assert sorted(outcomes) == sorted([(0, of_stored)] * len(stored) + [(1, outcome)])


def test_two_rows_of_one_moment_are_refused(tables: Tables) -> None:
    items, layout, _ = timeline(tables, [], [(1, "A", "p", "2024-01-03", "U"), (1, "B", "p", "2024-01-03", "U")])
    assert found(with_outcomes(items, layout), "outcome") == [("refused",)]


def test_values_of_columns_that_the_batch_lacks_are_kept(tables: Tables) -> None:
    news = [(1, "C", "2024-01-08", "U"), (2, "X", "2024-01-08", "U")]
    items, layout, _ = timeline(tables, TWO_VERSIONS, news, "id int, city string, at timestamp, op string")
    places = {attribute.name: f"state.a{n}" for n, attribute in enumerate(layout.attributes, start=1)}
    kept = found(with_kept_values(items, layout), "k1", "kind", places["city"], places["phone"])
    assert kept == [(1, 0, "A", "p"), (1, 0, "B", "p"), (1, 1, "C", "p"), (2, 1, "X", None)]


def test_transitions(tables: Tables) -> None:
    items, layout, _ = timeline(tables, TWO_VERSIONS, NEWS)
    steps = with_transitions(with_outcomes(items, layout), layout)
    assert found(steps, day("at"), "is_present", "was_present", "state_before.a1", "starts", "overwrites", "part") == [
        ("01-01", False, None, None, False, False, 1),
        ("01-05", True, False, "A", False, False, 2),
        ("01-08", True, True, "B", True, False, 3),
        ("01-09", False, True, "C", False, False, 3),
        ("01-12", True, False, "C", True, False, 4),
        ("01-13", True, True, "C", False, True, 4),
    ]


def test_unchanged_events_hide_nothing(tables: Tables) -> None:
    """An event that changes nothing is no state before the next one."""
    items, layout, _ = timeline(tables, TWO_VERSIONS, [(1, "A", "p", "2024-01-03", "U"), *NEWS[:1]])
    steps = with_transitions(with_outcomes(items, layout), layout)
    assert found(steps, day("at"), "state_before.a1") == [("01-01", None), ("01-05", "A"), ("01-08", "B")]


def test_versions(tables: Tables) -> None:
    items, layout, _ = timeline(tables, TWO_VERSIONS, NEWS)
    parts = versions(with_transitions(with_outcomes(items, layout), layout), layout)
    shown = ["kind", day("at"), day("ended_at"), day("next_from"), "was_present", "new_number", "is_last", "rows"]
    assert found(parts, *shown, order="part") == [
        (0, "01-01", "01-05", None, False, 0, False, None),
        (0, "01-05", None, "01-08", False, 0, False, None),
        (1, "01-08", "01-09", "01-12", True, 1, False, 2),
        (1, "01-12", None, None, False, 2, True, 2),
    ]


def test_new_values(tables: Tables) -> None:
    """A new phone, of type 1, is in all rows of the key; the deletion ends the version before the return."""
    items, layout, spec = timeline(tables, TWO_VERSIONS, NEWS)
    parts = versions(with_transitions(with_outcomes(items, layout), layout), layout)
    dates = [f"cast(cast(new.{name} as date) as string)" for name in ("valid_from", "valid_to")]
    rows = found(
        new_values(parts, layout, spec),
        "action",
        "reason",
        "new.city",
        "new.phone",
        *dates,
        "new.is_current",
        order="new.valid_from",
    )
    assert rows == [
        ("update", "overwritten", "A", "q", "2024-01-01", "2024-01-05", False),
        ("close", "changed", "B", "q", "2024-01-05", "2024-01-08", False),
        ("insert", "changed", "C", "q", "2024-01-08", "2024-01-09", False),
        ("insert", "returned", "C", "q", "2024-01-12", OPEN, True),
    ]
