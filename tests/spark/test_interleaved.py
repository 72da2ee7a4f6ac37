"""Another writer acts between two statements of a merge: the result is that of some order of the two, or a refusal.

And each later merge does the same as after that order. Without a setting a few places of each kind are tried, with
HEALING_TABLES_ROUNDS every statement with every action.
"""

from __future__ import annotations

import pytest
from disturbed import KINDS, Actions, Case, check_column, check_places
from interleaved import before_the_merge
from tables import Tables, plain_rows

from healing_tables import TargetError

pytestmark = pytest.mark.usefixtures("interpreted")
PLACES = 2  # of each kind


def optimize(tables: Tables, dim: str) -> None:
    tables.spark.sql(f"optimize {dim}").collect()


def restore(tables: Tables, dim: str) -> None:
    """The state after the first batch."""
    versions = tables.spark.sql(f"describe history {dim}").where("operation = 'MERGE'")
    first = versions.agg({"version": "min"}).collect()[0][0]
    tables.spark.sql(f"restore table {dim} to version as of {first}").collect()


OWN_ACTIONS: Actions = {"optimize": optimize, "restore": restore}


@pytest.mark.slow
def test_a_column_that_another_writer_adds_after_the_plan(tables: Tables) -> None:
    """The older writer does not know it: it must not commit current rows with NULL there."""
    check_column(tables, OWN_ACTIONS, lambda case: before_the_merge(case.dim))


@pytest.mark.slow
def test_a_new_column_does_not_stay_when_its_merge_fails(tables: Tables) -> None:
    case = Case(tables, "audit", OWN_ACTIONS)
    tables.spark.sql(f"alter table {case.dim} add constraint short check (length(name) < 2)")
    before = case.state()
    with pytest.raises(TargetError, match="accepts the rows of the merge"):
        case.merge(3, (1, "long"), has_city=True)
    assert case.state() == before
    case.merge(3, (1, "C"), has_city=True)
    rows = plain_rows(tables.spark.table(case.dim).where("id = 1"), ["name", "city"])
    assert rows == [("A", None), ("B", None), ("C", "Oslo")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_another_writer_between_two_statements(tables: Tables, kind: str) -> None:
    check_places(tables, kind, OWN_ACTIONS, PLACES)
