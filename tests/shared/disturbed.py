"""A merge that another writer disturbs: dimensions of each kind, what the other one does, and the allowed results."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any

import pytest
from interleaved import before_statement, other_writer
from sessions import FORMAT
from tables import Tables, plain_rows

from healing_tables import DimensionSpec, HealingTablesError, TargetError, merge

TYPE_2: dict[str, Any] = {"key_columns": "id", "attributes": {"name": 2, "mail": 1, "city": 2}}
KINDS: dict[str, dict[str, Any]] = {
    "audit": TYPE_2 | {"audit": {}},
    "type4": TYPE_2 | {"attributes": {"name": 4, "mail": 1, "city": 4}, "audit": {}},
    "log": TYPE_2 | {"change_log": "%s_changes"},
    "logged_and_full": TYPE_2 | {"change_log": "%s_changes", "full_batch": True, "audit": {}},
    "sequence": TYPE_2 | {"surrogate_key": {"name": "sk", "strategy": "sequence"}},
    "full": TYPE_2 | {"full_batch": True},
}
VOLATILE = ("row_id", "dimension", "batch_id", "merge_id", "logged_at", "published_at", "sk")
numbers = count()
begun: dict[str, dict[str, str]] = {}  # of a dimension: its tables after two batches, and folders with copies of them
ACTIONS = ("same key", "other key", "column", "drop")
Actions = Mapping[str, Callable[[Tables, str], None]]  # of one format only


def day(number: int) -> str:
    return f"2024-01-0{number} 00:00:00"


class Case:
    """One dimension: two batches, the merge that is disturbed, the other writer, and a later merge.

    On Delta the two batches are merged once for each kind; a further case begins with copies of the files, so only one
    case of a kind is there at a time.
    """

    def __init__(self, tables: Tables, kind: str, own_actions: Actions) -> None:
        self.own_actions = own_actions
        self.lab, self.dim = tables, f"{tables.schema}.{kind}"
        if FORMAT != "delta":
            self.dim += f"_{next(numbers)}"
        options = {name: value % self.dim if name == "change_log" else value for name, value in KINDS[kind].items()}
        self.options = options
        if self.dim in begun:
            self.copy_tables()
        else:
            self.merge(1, (1, "A"), (2, "A"), (3, "A"))
            self.merge(2, (1, "B"), (2, "A"), (3, "A"))
            if FORMAT == "delta":
                begun[self.dim] = {table: self.kept(table) for table in self.tables()}

    def tables(self) -> list[str]:
        """The dimension and what belongs to it, by name."""
        schema, kind = self.dim.split(".")
        names = [row.tableName for row in self.lab.spark.sql(f"show tables in {schema}").collect()]
        return [f"{schema}.{name}" for name in names if name == kind or name.startswith(f"{kind}_")]

    def kept(self, table: str) -> str:
        location = self.lab.spark.sql(f"describe detail {table}").collect()[0]["location"].removeprefix("file:")
        return shutil.copytree(location, f"{location}.kept")

    def copy_tables(self) -> None:
        for table in self.tables():
            self.lab.spark.sql(f"drop table {table}")
        for table, kept in begun[self.dim].items():
            folder = shutil.copytree(kept, f"{kept}.{next(numbers)}")
            self.lab.spark.sql(f"create table {table} using delta location '{folder}'")

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
        elif action == "drop":
            sql(f"drop table {self.dim}").collect()
        else:
            self.own_actions[action](self.lab, self.dim)

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


def outcome(steps: list[Callable[[], None]], case: Case) -> tuple[list[str], dict[str, Any]]:
    """Why steps were refused, and what is stored after all of them."""
    refused = []
    for step in steps:
        try:
            step()
        except HealingTablesError as error:
            refused.append(str(error))
    return refused, case.state()


class Orders:
    """What may be stored after the two: after each order of them, and after one of them was refused.

    Each state is computed when it is first asked for, and kept.
    """

    def __init__(self, tables: Tables, kind: str, action: str, own_actions: Actions) -> None:
        self.tables, self.kind, self.action, self.own_actions = tables, kind, action, own_actions
        self.known: list[Any] = []
        self.rest = self.states()

    def case(self) -> Case:
        return Case(self.tables, self.kind, self.own_actions)

    def states(self) -> Iterator[Any]:
        for order in ("disturbed act", "act disturbed", "act", "disturbed"):
            case = self.case()
            steps: dict[str, Callable[[], None]] = {
                "disturbed": case.disturbed,
                "act": partial(case.act, self.action),
            }
            yield outcome([*[steps[name] for name in order.split()], case.later], case)[1]

    def __contains__(self, stored: Any) -> bool:
        if stored in self.known:
            return True
        for state in self.rest:
            self.known.append(state)
            if state == stored:
                return True
        return False


def check_places(tables: Tables, kind: str, own_actions: Actions, places: int) -> None:
    """`check` two actions before so many random statements; with HEALING_TABLES_ROUNDS all actions before all."""
    case = Case(tables, kind, own_actions)
    with other_writer(tables.spark, lambda: None, before_statement(-1)) as statements:
        case.disturbed()
    numbers, actions = range(1, statements.count + 1), [*ACTIONS, *own_actions]
    chosen = {action: list(numbers) for action in actions}
    if "HEALING_TABLES_ROUNDS" not in os.environ:
        choose = random.Random(kind)
        chosen = {action: choose.sample(numbers, places // 2) for action in choose.sample(actions, 2)}
    print(f"\n{kind}: {statements.count} statements, {chosen}")
    for action, found in chosen.items():
        orders = Orders(tables, kind, action, own_actions)
        for number in found:
            assert check(orders, before_statement(number))


def check_column(tables: Tables, own_actions: Actions, when: Callable[[Case], Callable[[int, str], bool]]) -> None:
    """Another writer adds a column that the merge does not know: it must not commit current rows with NULL there."""
    case = Case(tables, "audit", own_actions)
    with (
        other_writer(tables.spark, lambda: case.act("column"), when(case)) as statements,
        pytest.raises(TargetError, match=r"city\n.*a column of the spec"),
    ):
        case.disturbed()
    assert statements.has_acted
    names = {row.name for row in tables.spark.table(case.dim).where("is_current").collect()}
    assert names == {"A", "B"}
    case.later()
    current = tables.spark.table(case.dim).where("is_current and id in (1, 3)")
    assert plain_rows(current, ["id", "city"]) == [(1, "Oslo"), (3, "Oslo")]


def check(orders: Orders, when: Callable[[int, str], bool]) -> bool:
    """Whether the other writer came at all."""
    case, action = orders.case(), orders.action
    with other_writer(orders.tables.spark, lambda: case.act(action), when) as statements:
        refused, _ = outcome([case.disturbed], case)
    _, stored = outcome([case.later], case)
    case.check_numbers()
    if statements.has_acted:
        assert stored in orders, (orders.kind, action, statements.count, refused)
    return statements.has_acted
