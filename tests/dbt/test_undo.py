"""undo: a dimension is again what it was at a moment, in one commit that its audit has."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from audits import AUDIT, KEYS, begin, beside_audit, publishes, tell, write
from damage import operation
from dying_dbt import WRITES, dies_before
from known import check_known_at, versions_by_publish
from lab import Lab
from sessions import FORMAT
from tables import plain_rows
from ways import merge_by_sql, merge_model

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


def merge(lab: Lab, name: str, way: str, rows: str, **options: Any) -> None:
    """Args: way: sql or library; rows: id, name, day."""
    batch = lab.spark.sql(
        f"select id, name, to_timestamp(concat('2024-01-', day, ' 00:00:00Z')) as changed_at "
        f"from values {rows} as b(id, name, day)"
    )
    options = {"audit": AUDIT, "changed_at": "changed_at", "attributes": {"name": 2}, **options}
    merge_model(lab, name, batch, **options)
    if way == "sql":
        merge_by_sql(lab, name)
    else:
        assert lab.dbt("run", "--select", name)[name][0] == "success", lab.results


@pytest.mark.parametrize("way", ["sql", "library"])
def test_undo_of_merges(lab: Lab, way: str) -> None:
    name, table = f"merged_{way}", f"{lab.schema}.merged_{way}"
    merge(lab, name, way, "(1, 'Ann', '01'), (2, 'Bob', '01')")
    merge(lab, name, way, "(1, 'Anna', '05')")
    then, version = versions_by_publish(lab.spark, table, f"{table}_audit")[2]
    wanted = plain_rows(lab.spark.sql(f"select * from {table} version as of {version}"))
    merge(lab, name, way, "(1, 'Anne', '09'), (1, 'late', '03'), (3, 'Cid', '09')")
    by_hand = f"update {table} set name = 'by hand' where id = 2"
    if way == "sql":
        lab.spark.sql(by_hand)
    merge(lab, name, way, "(3, 'Cyd', '11')")
    if way == "sql":
        assert [one["by"] for one in publishes(lab, name)] == ["night", "night", "night", "unknown", "night"]
        assert beside_audit(lab.spark, table) == {}
    else:
        lab.spark.sql(by_hand)  # merges of the library do not look for such rows, the undo does
    before, logged = lab.rows(name), lab.spark.table(f"{table}_changes").count()

    text = undo(lab, name, known_at=then)
    assert lab.succeeded, text
    assert f"4 rows of 2 merges move from {table}_changes to {table}__withdrawn" in text, text
    assert (lab.rows(name), lab.spark.table(f"{table}_changes").count()) == (before, logged)

    text = undo(lab, name, known_at=then, run=True)
    assert lab.succeeded, text
    assert lab.rows(name) == wanted
    assert beside_audit(lab.spark, table) == {}
    assert lab.spark.table(f"{table}_changes").count() == logged - 4
    kept = lab.spark.table(f"{table}__withdrawn").collect()
    assert sorted(row.name for row in kept) == ["Anne", "Cid", "Cyd", "late"]
    assert {row.withdrawn_by for row in kept} == {f"undo to {then}"}
    assert "no difference" in undo(lab, name, known_at=then, run=True)

    # an undo can be undone
    last = sorted(versions_by_publish(lab.spark, table, f"{table}_audit").items())[-2][1][0]
    assert f"4 rows of 2 merges move back from {table}__withdrawn" in undo(lab, name, known_at=last, run=True)
    assert (lab.rows(name), lab.spark.table(f"{table}_changes").count()) == (before, logged)
    assert lab.spark.table(f"{table}__withdrawn").count() == 0
    undo(lab, name, known_at=then, run=True)
    assert (lab.rows(name), lab.spark.table(f"{table}_changes").count()) == (wanted, logged - 4)
    assert lab.spark.table(f"{table}__withdrawn").count() == 4

    # neither way brings the withdrawn rows back, also for keys whose versions are computed again
    merge(lab, name, way, "(1, 'Amy', '12'), (2, 'Ben', '12')")
    assert [row[:2] for row in lab.rows(name, "id", "name", "valid_from")] == [
        (1, "Amy"), (1, "Ann"), (1, "Anna"), (2, "Ben"), (2, "Bob")
    ]  # fmt: skip
    merge(lab, name, "library" if way == "sql" else "sql", "(1, 'Ava', '13'), (3, 'Cid', '09')")
    assert [row[:2] for row in lab.rows(name, "id", "name", "valid_from")] == [
        (1, "Amy"), (1, "Ann"), (1, "Anna"), (1, "Ava"), (2, "Ben"), (2, "Bob"), (3, "Cid")
    ]  # fmt: skip
    assert check_known_at(lab.spark, table) >= 9


def test_an_undo_that_is_killed(lab: Lab) -> None:
    """Before each of its statements: the next undo finishes it, and no row of the log is lost or twice."""
    name, table = "killed", f"{lab.schema}.killed"
    merge(lab, name, "sql", "(1, 'Ann', '01'), (2, 'Bob', '01')")
    then, wanted = versions_by_publish(lab.spark, table, f"{table}_audit")[1][0], lab.rows(name)
    kept: list[str] = []
    while True:
        merge(lab, name, "sql", f"(1, 'n{len(kept)}', '05'), (3, 'Cid', '09')")
        kept += [f"n{len(kept)}"]
        with dies_before(WRITES, len(kept)):
            undo(lab, name, known_at=then, run=True)
        is_whole = lab.succeeded
        undo(lab, name, known_at=then, run=True)
        assert lab.succeeded, lab.log
        assert lab.rows(name) == wanted
        assert beside_audit(lab.spark, table) == {}
        withdrawn = [row.name for row in lab.spark.table(f"{table}__withdrawn").collect()]
        assert sorted(withdrawn) == sorted([*kept, *["Cid"] * len(kept)])
        assert sorted(row.name for row in lab.spark.table(f"{table}_changes").collect()) == ["Ann", "Bob"]
        if is_whole:
            break
    assert len(kept) > 5


def test_undo_before_the_log_began(lab: Lab) -> None:
    """What the log has as its first rows is later than the moment: all of it is withdrawn, and it begins again."""
    name, table = "old", f"{lab.schema}.old"
    merge(lab, name, "library", "(1, 'Ann', '01')", change_log=False)
    then, _ = versions_by_publish(lab.spark, table, f"{table}_audit")[1]
    wanted = lab.rows(name)
    merge(lab, name, "library", "(1, 'Anna', '05')", change_log=False)
    merge(lab, name, "sql", "(1, 'Anne', '09'), (2, 'Bob', '09')")
    undo(lab, name, known_at=then, run=True)
    assert lab.rows(name) == wanted
    assert lab.spark.table(f"{table}_changes").count() == 0
    merge(lab, name, "sql", "(2, 'Bob', '10')")
    assert [row[:2] for row in lab.rows(name, "id", "name")] == [(1, "Ann"), (2, "Bob")]


def test_what_it_cannot_undo(lab: Lab) -> None:
    merge(lab, "typed", "sql", "(1, 'Ann', '01')", attributes={"name": 4})
    assert "none of type 4" in undo(lab, "typed", known_at="2024-01-01")


def test_a_repair_is_in_the_audit(lab: Lab) -> None:
    name, table = "broken", f"{lab.schema}.broken"
    write(lab, name)
    lab.build(name)
    lab.spark.sql(f"insert into {table} select * from {table} where id = 3")
    operation(lab, "repair", dimension=name, dry_run=False)
    assert lab.succeeded, lab.log
    assert beside_audit(lab.spark, table) == {}
    first, damaged, repaired = publishes(lab, name)
    assert (first["by"], damaged["by"], repaired["by"]) == ("night", "unknown", "night")
    assert (damaged["rows"], repaired["why"]) == ({"insert new": 1}, "repair")
    assert repaired["rows"] == {"remove replaced": 1}
    lab.build(name)
    assert len(publishes(lab, name)) == 3


def test_refused(lab: Lab) -> None:
    write(lab, "young")
    lab.build("young")
    assert "a moment after the first publish" in undo(lab, "young", known_at="2020-01-01")
    write(lab, "bare", audit=None)
    lab.build("bare")
    assert "a model with an audit" in undo(lab, "bare", known_at="2024-01-01")
    lab.spark.sql(f"create or replace table {lab.schema}.others using {FORMAT} as select 1 as id")
    assert "a dimension that a healing_table or a healing_merge of this project writes" in undo(
        lab, "others", known_at="2024-01-01"
    )
    assert not lab.succeeded
    assert lab.spark.table(f"{lab.schema}.young").count() == KEYS
