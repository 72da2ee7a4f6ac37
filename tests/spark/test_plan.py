"""The shape of the generated select: one Exchange and one Sort on the data, whatever the dimension has."""

from __future__ import annotations

import re

import pytest
from calls import CALLS, CATALOGUE, COLUMNS
from rendered import Rendered


def in_models(call: str) -> str:
    """A call of calls.py, where a relation is that model, or a view of files."""
    return re.sub(r"relation\('(\w+)'\)", lambda match: f"{'ref' if match[1] in CALLS else 'view'}('{match[1]}')", call)


@pytest.fixture(scope="module")
def planned(rendered: Rendered, tmp_path_factory: pytest.TempPathFactory) -> Rendered:
    """The calls that have golden files, and `wide`, with 20 sources and 200 attributes; over a folder without files."""
    wide = {f"w{n}": {**COLUMNS, **{f"w{n}_{i}": "string" for i in range(10)}} for n in range(20)}
    folder = str(tmp_path_factory.mktemp("no_files"))
    for name, columns in ({table.split(".")[1]: types for table, types in CATALOGUE.items()} | wide).items():
        ddl = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        rendered.spark.read.schema(ddl).parquet(folder).createOrReplaceGlobalTempView(name)
    for name, call in CALLS.items():
        rendered.model(name, f"{{{{ {in_models(call)} }}}}")
    listed = ", ".join(
        f"'{name}': {{'relation': view('{name}'), 'changed_at': 'at', 'exclude_columns': ['until', 'seq', 'gone']}}"
        for name in wide
    )
    rendered.model("wide", f"{{{{ healing_tables.dimension(sources={{{listed}}}, key_columns='id') }}}}")
    return rendered


def plan_of(rendered: Rendered, model: str) -> str:
    sql = rendered.statement(model)
    rendered.spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        return str(rendered.spark.sql("explain " + sql).collect()[0][0])
    finally:
        rendered.spark.conf.set("spark.sql.adaptive.enabled", "true")


@pytest.mark.parametrize(("model", "windows"), [("everything", 7), ("cut", 7), ("wide", 4)])
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
