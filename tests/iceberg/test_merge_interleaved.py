"""Another writer acts between two statements of a merge into Iceberg; see tests/spark/test_interleaved.py."""

from __future__ import annotations

import os
import random
from itertools import product

import pytest
from disturbed import ACTIONS, KINDS, Actions, Case, check
from interleaved import before_statement, other_writer
from tables import Tables, plain_rows

from healing_tables import TargetError

pytestmark = pytest.mark.usefixtures("interpreted")
ALL = "HEALING_TABLES_ROUNDS" in os.environ
PLACES = 2  # of each kind


def compact(tables: Tables, dim: str) -> None:
    options = "map('rewrite-all', 'true')"
    tables.spark.sql(f"call lake.system.rewrite_data_files(table => '{dim}', options => {options})").collect()


def rollback(tables: Tables, dim: str) -> None:
    """The state after the first batch."""
    history = tables.spark.sql(f"select snapshot_id from {dim}.history order by made_current_at").collect()
    first = history[1][0]  # after the empty one
    tables.spark.sql(f"call lake.system.rollback_to_snapshot('{dim}', {first})").collect()


OWN_ACTIONS: Actions = {"compact": compact, "rollback": rollback}


def before_the_publish(number: int, statement: str) -> bool:
    return "fast_forward" in statement


@pytest.mark.proof
def test_another_writer_before_the_publish(tables: Tables) -> None:
    """The branch of the first one is not published: it reads and plans again."""
    assert check(tables, "audit", "same key", before_the_publish, OWN_ACTIONS)


@pytest.mark.proof
def test_a_column_that_another_writer_adds_after_the_plan(tables: Tables) -> None:
    """Schema changes belong to no branch, but the MERGE looks at the columns."""
    case = Case(tables, "audit", OWN_ACTIONS)
    with (
        other_writer(
            tables.spark, lambda: case.act("column"), lambda _, statement: "create branch" in statement
        ) as statements,
        pytest.raises(TargetError, match=r"city\n.*a column that the spec knows"),
    ):
        case.disturbed()
    assert statements.has_acted
    assert {row.name for row in tables.spark.table(case.dim).where("is_current").collect()} == {"A", "B"}
    case.later()
    current = tables.spark.table(case.dim).where("is_current and id in (1, 3)")
    assert plain_rows(current, ["id", "city"]) == [(1, "Oslo"), (3, "Oslo")]


@pytest.mark.proof
@pytest.mark.parametrize("kind", KINDS)
def test_another_writer_between_two_statements(tables: Tables, kind: str) -> None:
    case = Case(tables, kind, OWN_ACTIONS)
    with other_writer(tables.spark, lambda: None, before_statement(-1)) as statements:
        case.disturbed()
    places = list(product(range(1, statements.count + 1), [*ACTIONS, *OWN_ACTIONS]))
    if not ALL:
        places = random.Random(kind).sample(places, PLACES)
    print(f"\n{kind}: {statements.count} statements, {places}")
    for number, action in places:
        assert check(tables, kind, action, before_statement(number), OWN_ACTIONS)
