"""health: each finding at its threshold, and an exit code for schedulers."""

from __future__ import annotations

from typing import Any

import pytest
from damage import operation
from lab import Lab

pytestmark = pytest.mark.slow
# hours ago, status, rows added, changed, removed, unchanged
BUILDS: dict[str, list[tuple[Any, ...]]] = {
    "fine": [(30, "published", 100, 0, 0, 0), (1, "published", 10, 2, 5, 93)],
    "first": [(2, "published", 1000, 0, 0, 0)],
    "quiet": [(50, "published", 100, 0, 0, 0), (20, "unchanged", 0, 0, 0, 100)],
    "old": [(40, "published", 100, 0, 0, 0)],
    "refused": [(30, "published", 100, 0, 0, 0), (1, "refused", 0, 0, 0, 100)],
    "never": [(1, "refused", 5, 0, 0, 0)],
    "shrinking": [(1, "published", 0, 0, 6, 94)],
    "growing": [(1, "published", 51, 0, 0, 100)],
    "small": [(1, "published", 30, 0, 9, 10)],
    "merged": [(1, "published", 30, 0, 9, 40)],  # rows of the batch
    "old_capture": [(1, "published", 30, 0, 0, "null")],
}
MODES = {"merged": "merge", "old_capture": "capture"}
FOUND = {
    "fine": "",
    "first": "",
    "quiet": "",
    "old": "stale",
    "refused": "refused, stale",
    "never": "refused, stale",
    "shrinking": "shrinking",
    "growing": "growing",
    "small": "",
    "merged": "",
    "old_capture": "",
}
ROWS = {"fine": "105", "first": "1000", "quiet": "100", "never": "NULL", "growing": "151", "merged": "NULL"}
NOTES = {
    "never": "hours and rows are NULL: no successful build is logged",
    "merged": "rows is NULL: a merge does not count the rows that it leaves as they are, so it is not checked",
    "old_capture": "rows is NULL: the version of the package that wrote the row of the log did not count rows",
}


@pytest.fixture(scope="module")
def logged(lab: Lab) -> Lab:
    lab.model(
        "dim",
        "select 1 as id, timestamp '2024-01-01' as valid_from, timestamp '9999-12-31' as valid_to, true as is_current",
        materialized="healing_table",
        unique_key="id",
    )
    lab.dbt("run")
    for name, builds in BUILDS.items():
        mode = MODES.get(name, "rebuild")
        for hours, status, *rows in builds:
            counts = ", ".join(str(count) for count in rows)
            lab.spark.sql(
                f"insert into {lab.schema}.healing_log (relation, mode, status, reason, finished_at, rows_added, "
                f"rows_changed, rows_removed, rows_unchanged) select '{lab.schema}.{name}', '{mode}', '{status}', "
                f"'a check', now() - interval '{hours}' hour, {counts}"
            )
    return lab


def test_findings(logged: Lab) -> None:
    lines = operation(logged, "health")
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.count("|") == 5]
    table = {line[0].split(".")[-1]: line for line in cells}
    assert {name: table[name][5] for name in FOUND} == FOUND
    assert {name: table[name][4] for name in ROWS} == ROWS
    text = "\n".join(lines)
    for name, note in NOTES.items():
        assert f"  {logged.schema}.{name}: {note}" in text
    assert text.count(" NULL: ") == len(NOTES)
    assert "7 findings" in text and "51 rows" in text and "at most 0.05 of 100 rows" in text, text


def test_a_page(logged: Lab) -> None:
    file = logged.home / "report.html"
    lines = operation(logged, "report", html=str(file), days=2)
    assert f"healing_tables report: the page is {file}" in "\n".join(lines), lines
    text = file.read_text()
    assert f"<h1>Builds in {logged.schema}.healing_log</h1>" in text
    for name, finding in FOUND.items():
        assert f">{logged.schema}.{name}</a>" in text
        assert f'<td class="bad">{finding}</td>' in text
    assert ">100 added, 0 changed, 0 removed</title>" in text.replace("published: ", ">")
    assert "a number of days" in "\n".join(operation(logged, "report", days=0))
    assert "a folder that exists" in "\n".join(operation(logged, "report", html="/nowhere/at/all.html"))


def test_an_exit_code(logged: Lab) -> None:
    logged.spark.sql(f"delete from {logged.schema}.healing_log where relation not like '%.fine'")
    assert "1 table, nothing found" in "\n".join(operation(logged, "health"))
    assert "is stale" in "\n".join(operation(logged, "health", max_age_hours=0.5))
    assert "a number from 0 on" in "\n".join(operation(logged, "health", max_added_ratio=-1))
