"""undo: a dimension is again what it was at a moment, in one commit that its audit has."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from audits import KEYS, begin, beside_audit, publishes, tell, write
from known import check_known_at, versions_by_publish
from lab import Lab
from sessions import FORMAT
from tables import plain_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]


@pytest.fixture(autouse=True)
def crm(lab: Lab) -> None:
    begin(lab)


def undo(lab: Lab, dimension: str, **arguments: Any) -> str:
    """What the operation prints."""
    lab.dbt("run-operation", "healing_tables.undo", "--args", json.dumps({"dimension": dimension, **arguments}))
    return "\n".join(lab.log)


def test_undo(lab: Lab) -> None:
    name, table = "dim", f"{lab.schema}.dim"
    write(lab, name, mode="heal")
    lab.build(name)
    tell(lab, 2, "1, 4", "Bea")
    tell(lab, 2, "4, 5", "", gone=True)
    tell(lab, 2, "100, 101", "New")
    lab.build(name)
    lab.spark.sql(f"delete from {table} where id = 7")
    then, version = versions_by_publish(lab.spark, table, f"{table}_audit")[1]
    before, wanted = lab.rows(name), plain_rows(lab.spark.sql(f"select * from {table} version as of {version}"))

    text = undo(lab, name, known_at=then)
    assert lab.succeeded, text
    # three keys changed, one ended, one is new; what somebody else has deleted is in no audit yet
    for part in ("to bring back 1 row, to change 4 rows, to remove 4 rows, of 6 keys", "nothing was written"):
        assert part in text, text
    assert lab.rows(name) == before
    assert len(publishes(lab, name)) == 2

    text = undo(lab, name, known_at=then, run=True)
    assert lab.succeeded, text
    assert lab.rows(name) == wanted
    assert beside_audit(lab.spark, table) == {}
    deleted, undone = publishes(lab, name)[2:]
    assert (deleted["by"], deleted["rows"]) == ("unknown", {"remove replaced": 1})
    assert (undone["by"], undone["why"]) == ("night", f"undo to {then}")
    assert sum(undone["rows"].values()) == 9
    logged = lab.newest(name)
    assert (logged["mode"], logged["status"]) == ("undo", "published")
    counts = [logged[f"rows_{what}"] for what in ("added", "changed", "removed", "unchanged")]
    assert counts == [1, 4, 4, len(before) - 8]
    assert logged["version_after"] != logged["version_before"]
    assert check_known_at(lab.spark, table) == 4
    assert "no difference" in undo(lab, name, known_at=then, run=True)
    assert not [row for row in lab.spark.sql(f"show tables in {lab.schema}").collect() if "candidate" in row.tableName]

    # the sources still have these changes
    row = lab.build(name)
    assert (row["mode"], row["reason"]) == ("rebuild", "the last publish was an undo")
    assert beside_audit(lab.spark, table) == {}
    assert [one["by"] for one in publishes(lab, name)[4:]] == ["night"]
    assert lab.build(name)["mode"] == "heal"

    # open, closed with a new version, open again, closed again: each as long as it was known
    lab.dbt("run-operation", "healing_tables.explain", "--args", json.dumps({"dimension": name, "key": 1}))
    known = "\n".join(lab.log).split("What was known")[1]
    lines = re.findall(r"^ +(20\S+ \S+) +\| (\(now\)|20\S+ \S+) +\| (\S+) +\| (\S+) +\| (\S+)", known, re.MULTILINE)
    first, second = ("2024-01-01", "name=Ada"), ("2024-01-02", "name=Bea")
    assert [(start, end, says) for _, _, start, end, says in lines] == [
        (first[0], "(open)", first[1]),
        (first[0], second[0], first[1]),
        (second[0], "(open)", second[1]),
        (first[0], "(open)", first[1]),
        (first[0], second[0], first[1]),
        (second[0], "(open)", second[1]),
    ]
    times = [(known_from, known_to) for known_from, known_to, *_ in lines]
    assert times[1] == times[2] and times[4] == times[5] and times[4][1] == "(now)"
    assert [times[0][1], times[1][1], times[3][1]] == [times[1][0], times[3][0], times[4][0]]


def test_refused(lab: Lab) -> None:
    write(lab, "young")
    lab.build("young")
    assert "a moment after the first publish" in undo(lab, "young", known_at="2020-01-01")
    write(lab, "bare", audit=None)
    lab.build("bare")
    assert "a model with an audit" in undo(lab, "bare", known_at="2024-01-01")
    lab.spark.sql(f"create or replace table {lab.schema}.others using {FORMAT} as select 1 as id")
    assert "a dimension that a healing_table of this project builds" in undo(lab, "others", known_at="2024-01-01")
    assert not lab.succeeded
    assert lab.spark.table(f"{lab.schema}.young").count() == KEYS
