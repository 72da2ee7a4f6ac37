"""The shape of the generated select: one Exchange and one Sort on the data, whatever the dimension has."""

from __future__ import annotations

import re

import pytest
from calls import CALLS, CATALOGUE, COLUMNS
from rendered import Rendered


def in_models(call: str) -> str:
    """A call of calls.py, where a relation that is another call is that model."""
    return re.sub(r"relation\('(\w+)'\)", lambda match: f"ref('{match[1]}')" if match[1] in CALLS else match[0], call)


@pytest.fixture(scope="module")
def planned(rendered: Rendered) -> Rendered:
    """The calls that have golden files, and `wide`, which has 20 sources and 200 attributes."""
    columns = [list(column) for column in COLUMNS.items()]
    for table, types in CATALOGUE.items():
        name = table.split(".")[1]
        if name not in CALLS:
            rendered.table(name, list(types.items()), [])
    for name, call in CALLS.items():
        rendered.model(name, f"{{{{ {in_models(call)} }}}}")
    for number in range(20):
        rendered.table(f"w{number}", columns + [[f"w{number}_{i}", "string"] for i in range(10)], [])
    listed = ", ".join(
        f"'w{i}': {{'relation': relation('w{i}'), 'changed_at': 'at', 'exclude_columns': ['until', 'seq', 'gone']}}"
        for i in range(20)
    )
    wide = f"healing_tables.dimension(sources={{{listed}}}, key_columns='id')"
    rendered.model(
        "wide",
        f"{{{{ {wide} }}}}",
    )
    return rendered


def plan_of(rendered: Rendered, model: str) -> str:
    sql = rendered.statement(model)
    rendered.spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        return str(rendered.spark.sql("explain " + sql).collect()[0][0])
    finally:
        rendered.spark.conf.set("spark.sql.adaptive.enabled", "true")


@pytest.mark.parametrize(("model", "windows"), [("everything", 6), ("cut", 6), ("wide", 4)])
def test_one_exchange_and_one_sort(planned: Rendered, model: str, windows: int) -> None:
    plan = plan_of(planned, model)
    # the calendar: an aggregate of its own, broadcast to the snapshots
    calendars = len(re.findall(r"\bBroadcastExchange\b", plan))
    assert calendars == (0 if model == "wide" else 1)
    exchanges = re.findall(r"(?<!Broadcast)Exchange (\w+)", plan)
    assert [kind for kind in exchanges if kind != "SinglePartition"] == ["hashpartitioning"]
    assert exchanges.count("SinglePartition") <= calendars
    assert len(re.findall(r"[+:]- \*?(?:\(\d+\) )?Sort \[", plan)) == 1
    assert len(re.findall(r"[+:]- \*?(?:\(\d+\) )?Window \[", plan)) == windows


def test_hashes_are_computed_on_surviving_rows(planned: Rendered) -> None:
    plan = plan_of(planned, "everything")
    assert "sha2" in plan[: plan.index("Window [")]
    assert "sha2" not in plan[plan.index("Window [") :]


def test_a_wide_dimension_is_planned(planned: Rendered) -> None:
    wide = planned.made("wide")
    assert wide.count() == 0
    assert len(wide.columns) == 1 + 200 + 7
