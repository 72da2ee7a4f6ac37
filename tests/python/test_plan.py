"""The shape of the generated select: one Exchange and one Sort on the data, whatever the dimension has."""

from __future__ import annotations

import re

import pytest
from lab import Lab

RULES = ("first_non_null", "first_present", "most_recent_row", "most_recent_value")


def relation(name: str) -> str:
    return f"'relation': api.Relation.create(schema=target.schema, identifier='{name}')"


@pytest.fixture(scope="module")
def planned(lab: Lab) -> Lab:
    """`everything` has each kind of source, rule, tie and type; `wide` has 20 sources and 200 attributes."""
    columns = [
        ["id", "int"],
        ["at", "timestamp"],
        ["until", "timestamp"],
        ["seq", "int"],
        ["gone", "boolean"],
    ]
    values = [[f"c{i}", "string"] for i in range(8)]
    for name in ("log", "log_with_ties", "snapshots", "periods"):
        lab.table(name, columns + values, [])
    lab.table("calendar", [["at", "timestamp"]], [])
    sources = {
        "log": f"{relation('log')}, 'changed_at': 'at', 'deleted_when': 'gone'",
        "ties": f"{relation('log_with_ties')}, 'changed_at': 'at', 'tie_break_by': 'seq', 'on_tie': 'greatest'",
        "snapshots": f"{relation('snapshots')}, 'snapshot_at': 'at', {relation('calendar').replace('relation', 'calendar', 1)}",
        "periods": f"{relation('periods')}, 'valid_from': 'at', 'valid_to': 'until'",
    }
    attributes = {
        f"c{i}": {
            "from": list(sources),
            "rule": RULES[i % 4],
            "scd_type": (2, 2, 2, 2, 0, 1, 3, 6)[i],
        }
        for i in range(8)
    }
    attributes["c6"]["changed_at"] = True
    optional = {
        name: name for name in ("ended_by_delete", "last_updated", "change_reason", "change_source")
    }
    cut = "'since': '2024-01-01', 'until': '2024-06-01 12:00'"
    for model, more in (("everything", ""), ("cut", f", {cut}")):
        listed = ", ".join(f"'{name}': {{{options}{more}}}" for name, options in sources.items())
        lab.model(
            model,
            f"{{{{ healing_tables.dimension(sources={{{listed}}}, key_columns='id', attributes={attributes!r}, exists_in=['log', 'periods'], "
            f"column_names={optional!r}, surrogate_key='sk', valid_from_first='1900-01-01') }}}}",
        )
    lab.model(
        "simple",
        f"{{{{ healing_tables.dimension(sources={{'log': {{{relation('log')}, 'changed_at': 'at'}}}}, key_columns='id', attributes=['c0', 'c1']) }}}}",
    )
    lab.model(
        "effectivity",
        f"{{{{ healing_tables.effectivity({relation('log').split(': ', 1)[1]}, 'id', 'at', ['c0'], 'seq', 'gone') }}}}",
    )
    lab.model(
        "unified_timeline",
        "{{ healing_tables.unified_timeline({'a': ref('effectivity'), 'b': ref('effectivity')}, 'id', {'c0': {'from': ['a', 'b']}}) }}",
    )
    lab.model("compress", "{{ healing_tables.compress(ref('simple'), 'id', ['c0', 'c1']) }}")
    facts, periods = (relation(name).split(": ", 1)[1] for name in ("log", "periods"))
    for way in ("many", "few"):
        lab.model(
            f"as_of_{way}",
            f"{{{{ healing_tables.as_of({facts}, {periods}, 'id', 'at', {{'then': 'c0'}}, 'none', 'at', 'until', versions_per_key='{way}') }}}}",
        )
    lab.model(
        "changes_between",
        f"{{{{ healing_tables.changes_between({periods}, 'id', '2024-01-01', '2024-02-01', 'c0', 'at', 'until') }}}}",
    )
    for number in range(20):
        lab.table(f"w{number}", columns + [[f"w{number}_{i}", "string"] for i in range(10)], [])
    listed = ", ".join(
        f"'w{i}': {{{relation(f'w{i}')}, 'changed_at': 'at', 'exclude_columns': ['until', 'seq', 'gone']}}"
        for i in range(20)
    )
    lab.model(
        "wide",
        f"{{{{ healing_tables.dimension(sources={{{listed}}}, key_columns='id') }}}}",
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
