"""Another writer acts between two statements of a merge into Iceberg; see tests/spark/test_interleaved.py."""

from __future__ import annotations

import pytest
from disturbed import KINDS, Actions, Orders, check, check_column, check_places
from tables import Tables

pytestmark = pytest.mark.usefixtures("interpreted")
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


def before_the_branch(number: int, statement: str) -> bool:
    return "create branch" in statement


@pytest.mark.slow
def test_another_writer_before_the_publish(tables: Tables) -> None:
    """The branch of the first one is not published: it reads and plans again."""
    assert check(Orders(tables, "audit", "same key", OWN_ACTIONS), before_the_publish)


@pytest.mark.slow
def test_a_column_that_another_writer_adds_after_the_plan(tables: Tables) -> None:
    """Schema changes belong to no branch, but the MERGE looks at the columns."""
    check_column(tables, OWN_ACTIONS, lambda _: before_the_branch)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_another_writer_between_two_statements(tables: Tables, kind: str) -> None:
    check_places(tables, kind, OWN_ACTIONS, PLACES)
