"""The shape of the generated select: one Exchange and one Sort on the data, whatever the dimension has."""

from __future__ import annotations

import re

import pytest
from calls import CALLS, CATALOGUE, COLUMNS
from lab import Lab


def in_dbt(call: str) -> str:
    """A call of calls.py in a model: a relation is another model, or a table of the target's schema."""

    def relation(match: re.Match[str]) -> str:
        name = match[1]
        table = f"api.Relation.create(schema=target.schema, identifier='{name}')"
        return f"ref('{name}')" if name in CALLS else table

    return re.sub(r"relation\('(\w+)'\)", relation, call)


@pytest.fixture(scope="module")
def planned(lab: Lab) -> Lab:
    """The calls that have golden files, and `wide`, which has 20 sources and 200 attributes."""
    columns = [list(column) for column in COLUMNS.items()]
    for table, types in CATALOGUE.items():
        name = table.split(".")[1]
        if name not in CALLS:
            lab.table(name, list(types.items()), [])
    for name, call in CALLS.items():
        lab.model(name, f"{{{{ {in_dbt(call)} }}}}")
    for number in range(20):
        lab.table(f"w{number}", columns + [[f"w{number}_{i}", "string"] for i in range(10)], [])
    listed = ", ".join(
        f"'w{i}': {{'relation': relation('w{i}'), 'changed_at': 'at', 'exclude_columns': ['until', 'seq', 'gone']}}"
        for i in range(20)
    )
    wide = f"healing_tables.dimension(sources={{{listed}}}, key_columns='id')"
    lab.model(
        "wide",
        f"{{{{ {in_dbt(wide)} }}}}",
        materialized="table",
        file_format="parquet",
    )
    lab.dbt("run")
    assert {status for status, _ in lab.results.values()} == {"success"}, lab.results
    return lab


def plan_of(lab: Lab, model: str) -> str:
    sql = next((lab.home / "target" / "compiled").rglob(f"{model}.sql")).read_text()
    lab.spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        return str(lab.spark.sql("explain " + sql).collect()[0][0])
    finally:
        lab.spark.conf.set("spark.sql.adaptive.enabled", "true")


@pytest.mark.parametrize(("model", "windows"), [("everything", 6), ("cut", 6), ("wide", 4)])
def test_one_exchange_and_one_sort(planned: Lab, model: str, windows: int) -> None:
    plan = plan_of(planned, model)
    # the calendar: an aggregate of its own, broadcast to the snapshots
    calendars = len(re.findall(r"\bBroadcastExchange\b", plan))
    assert calendars == (0 if model == "wide" else 1)
    exchanges = re.findall(r"(?<!Broadcast)Exchange (\w+)", plan)
    assert [kind for kind in exchanges if kind != "SinglePartition"] == ["hashpartitioning"]
    assert exchanges.count("SinglePartition") <= calendars
    assert len(re.findall(r"[+:]- \*?(?:\(\d+\) )?Sort \[", plan)) == 1
    assert len(re.findall(r"[+:]- \*?(?:\(\d+\) )?Window \[", plan)) == windows


def test_hashes_are_computed_on_surviving_rows(planned: Lab) -> None:
    plan = plan_of(planned, "everything")
    assert "sha2" in plan[: plan.index("Window [")]
    assert "sha2" not in plan[plan.index("Window [") :]


def test_a_wide_dimension_builds(planned: Lab) -> None:
    assert planned.spark.table(f"{planned.schema}.wide").count() == 0
    assert len(planned.spark.table(f"{planned.schema}.wide").columns) == 1 + 200 + 7
