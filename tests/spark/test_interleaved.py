"""Another writer acts between two statements of a merge: the result is that of some order of the two, or a refusal.

And each later merge does the same as after that order. Without a setting a few places of each kind are tried, with
HEALING_TABLES_ROUNDS every statement with every action.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count, product
from typing import Any

import pytest
from interleaved import before_statement, before_the_merge, other_writer
from tables import Tables, plain_rows

from healing_tables import DimensionSpec, HealingTablesError, TargetError, merge

pytestmark = pytest.mark.usefixtures("interpreted")
ALL = "HEALING_TABLES_ROUNDS" in os.environ
PLACES = 4  # of each kind
TYPE_2: dict[str, Any] = {"key_columns": "id", "attributes": {"name": 2, "mail": 1, "city": 2}}
KINDS: dict[str, dict[str, Any]] = {
    "audit": TYPE_2 | {"audit": {}},
    "type4": TYPE_2 | {"attributes": {"name": 4, "mail": 1, "city": 4}, "audit": {}},
    "log": TYPE_2 | {"change_log": "%s_changes"},
    "logged_and_full": TYPE_2 | {"change_log": "%s_changes", "full_batch": True, "audit": {}},
    "sequence": TYPE_2 | {"surrogate_key": {"name": "sk", "strategy": "sequence"}},
    "full": TYPE_2 | {"full_batch": True},
}
VOLATILE = ("row_id", "dimension", "batch_id", "merge_id", "logged_at", "sk")
numbers = count()


def day(number: int) -> str:
    return f"2024-01-0{number} 00:00:00"


class Case:
    """One dimension: a first batch, the merge that is disturbed, the other writer, and a later merge."""

    def __init__(self, tables: Tables, kind: str) -> None:
        self.lab, self.dim = tables, f"{tables.schema}.{kind}_{next(numbers)}"
        options = {name: value % self.dim if name == "change_log" else value for name, value in KINDS[kind].items()}
        self.options = options
        self.merge(1, (1, "A"), (2, "A"), (3, "A"))
        self.merge(2, (1, "B"), (2, "A"), (3, "A"))

    def merge(self, at: int, *rows: tuple[int, str], has_city: bool | None = None) -> None:
        stored = self.lab.spark.catalog.tableExists(self.dim)
        if has_city is None:
            has_city = stored and "city" in self.lab.spark.table(self.dim).columns
        attributes = dict(self.options["attributes"])
        if not has_city:
            del attributes["city"]
        spec = DimensionSpec(**{**self.options, "attributes": attributes}, on_schema_change="append_new_columns")
        columns = ["id", "name", "name as mail", *(["'Oslo' as city"] if has_city else [])]
        batch = self.lab.spark.createDataFrame(list(rows), "id int, name string")
        merge(batch.selectExpr(*columns), self.dim, spec, at=day(at), batch_id="b")

    def disturbed(self) -> None:
        self.merge(3, (1, "C"), (2, "A"), (3, "C"), has_city=False)

    def later(self) -> None:
        self.merge(6, (1, "L"), (2, "A"), (3, "C"), (4, "L"))

    def act(self, action: str) -> None:
        """Of the other writer, who may be refused as well."""
        with suppress(HealingTablesError):
            self.act_or_fail(action)

    def act_or_fail(self, action: str) -> None:
        sql = self.lab.spark.sql
        if action == "same key":
            self.merge(4, (1, "X"), (2, "A"), (3, "A"), has_city=False)
        elif action == "other key":
            self.merge(4, (1, "B"), (2, "A"), (3, "A"), (4, "X"), has_city=False)
        elif action == "column":
            sql(f"alter table {self.dim} add columns (city string)").collect()
        elif action == "optimize":
            sql(f"optimize {self.dim}").collect()
        elif action == "drop":
            sql(f"drop table {self.dim}").collect()
        else:
            # the state after the first batch
            versions = sql(f"describe history {self.dim}").where("operation = 'MERGE'")
            first = versions.agg({"version": "min"}).collect()[0][0]
            sql(f"restore table {self.dim} to version as of {first}").collect()

    def check_numbers(self) -> None:
        """The surrogate keys are unique and equal to those in the key map. A retried attempt may leave gaps."""
        if "surrogate_key" in self.options:
            given = [number for (number,) in self.lab.rows(f"{self.dim.split('.')[1]}__keys", "surrogate_key")]
            stored = [number for (number,) in plain_rows(self.lab.spark.table(self.dim), ["sk"])]
            assert len(set(stored)) == len(stored) and set(stored) <= set(given)
            assert len(set(given)) == len(given)

    def state(self) -> dict[str, Any]:
        found = {}
        for suffix in ("", "_history", "_audit", "_changes"):
            if self.lab.spark.catalog.tableExists(self.dim + suffix):
                frame = self.lab.spark.table(self.dim + suffix).drop(*VOLATILE)
                found[suffix] = plain_rows(frame.select(sorted(frame.columns)))
        return found


ACTIONS = ("same key", "other key", "column", "optimize", "drop", "restore")


def outcome(steps: list[Callable[[], None]], case: Case) -> tuple[list[str], dict[str, Any]]:
    """Why steps were refused, and what is stored after all of them."""
    refused = []
    for step in steps:
        try:
            step()
        except HealingTablesError as error:
            refused.append(str(error))
    return refused, case.state()


def orders(tables: Tables, kind: str, action: str) -> Iterator[Any]:
    """What is stored after each order of the two, and if one of them is refused; computed as far as it is asked for."""
    for order in ("disturbed act", "act disturbed"):
        case = Case(tables, kind)
        steps: dict[str, Callable[[], None]] = {
            "disturbed": case.disturbed,
            "act": partial(case.act, action),
        }
        yield outcome([*[steps[name] for name in order.split()], case.later], case)[1]
    case = Case(tables, kind)
    yield outcome([partial(case.act, action), case.later], case)[1]  # the merge is refused
    case = Case(tables, kind)
    yield outcome([case.disturbed, case.later], case)[1]  # the other writer is refused


def check(tables: Tables, kind: str, action: str, when: Callable[[int, str], bool]) -> bool:
    """Whether the other writer came at all."""
    case = Case(tables, kind)
    with other_writer(tables.spark, lambda: case.act(action), when) as statements:
        refused, _ = outcome([case.disturbed], case)
    _, stored = outcome([case.later], case)
    case.check_numbers()
    if statements.has_acted:
        assert stored in orders(tables, kind, action), (kind, action, statements.count, refused)
    return statements.has_acted


@pytest.mark.proof
def test_a_column_that_another_writer_adds_after_the_plan(tables: Tables) -> None:
    """The older writer does not know it: it must not commit current rows with NULL there."""
    case = Case(tables, "audit")
    when = before_the_merge(case.dim)
    with (
        other_writer(tables.spark, lambda: case.act("column"), when) as statements,
        pytest.raises(TargetError, match=r"city\n.*a column that the spec knows"),
    ):
        case.disturbed()
    assert statements.has_acted
    names = {row.name for row in tables.spark.table(case.dim).where("is_current").collect()}
    assert names == {"A", "B"}
    case.later()
    current = tables.spark.table(case.dim).where("is_current and id in (1, 3)")
    assert {row.city for row in current.collect()} == {"Oslo"}


@pytest.mark.proof
def test_a_new_column_does_not_stay_when_its_merge_fails(tables: Tables) -> None:
    case = Case(tables, "audit")
    tables.spark.sql(f"alter table {case.dim} add constraint short check (length(name) < 2)")
    before = case.state()
    with pytest.raises(TargetError, match="takes what the merge writes"):
        case.merge(3, (1, "long"), has_city=True)
    assert case.state() == before
    case.merge(3, (1, "C"), has_city=True)
    rows = plain_rows(tables.spark.table(case.dim).where("id = 1"), ["name", "city"])
    assert rows == [("A", None), ("B", None), ("C", "Oslo")]


@pytest.mark.proof
@pytest.mark.parametrize("kind", KINDS)
def test_another_writer_between_two_statements(tables: Tables, kind: str) -> None:
    case = Case(tables, kind)
    with other_writer(tables.spark, lambda: None, before_statement(-1)) as statements:
        case.disturbed()
    places = list(product(range(1, statements.count + 1), ACTIONS))
    if not ALL:
        places = random.Random(kind).sample(places, PLACES)
    print(f"\n{kind}: {statements.count} statements, {places}")
    for number, action in places:
        assert check(tables, kind, action, before_statement(number))
