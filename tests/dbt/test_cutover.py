"""From a dbt snapshot to a captured log without losing a version; the cases are in cases/cutover.json."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
CUSTOMERS = [["id", "int"], ["name", "string"]]
LOG = [["id", "int"], ["at", "date"], ["name", "string"]]
# the snapshot has names and an end of time of its own, which the source option finds by itself
SNAPSHOT = """
version: 2
sources: [{name: raw, schema: %s, tables: [{name: customers}]}]
snapshots:
  - name: customers_snapshot
    relation: source('raw', 'customers')
    config:
      unique_key: id
      strategy: check
      check_cols: all
      file_format: delta
      hard_deletes: new_record
      dbt_valid_to_current: "to_date('2500-01-01')"
      snapshot_meta_column_names: {dbt_valid_from: began, dbt_valid_to: ended}
"""
OLD = "'relation': ref('customers_snapshot'), 'dbt_snapshot': true"
NEW = "'relation': ref('captured'), 'changed_at': 'captured_at', 'deleted_when': 'is_deleted'"


def raw(table: str) -> str:
    return f"'relation': api.Relation.create(schema=target.schema, identifier='{table}')"


def dim(lab: Lab, name: str, sources: str, attributes: str = "none", **config: Any) -> None:
    lab.model(
        name,
        f"{{{{ healing_tables.dimension({{{sources}}}, attributes={attributes}) }}}}",
        materialized="healing_table",
        unique_key="id",
        **config,
    )


@pytest.fixture(scope="module")
def moved(lab: Lab, interpreted: None) -> Lab:
    """A snapshot of two days, the old table rebuilt, a first capture, the cutover, one more day of both."""
    lab.write("models/schema.yml", SNAPSHOT % lab.schema)
    lab.model(
        "captured",
        "select id, name from {{ source('raw', 'customers') }}",
        materialized="capture",
        unique_key="id",
    )
    lab.table("customers", CUSTOMERS, [[1, "a"], [2, "b"], [3, "c"]])
    lab.dbt("snapshot")
    lab.table("customers", CUSTOMERS, [[1, "a2"], [3, "c"]])
    dim(lab, "dim_old", f"'old': {{{OLD}}}")
    lab.dbt("build")

    now = lab.spark.sql("select cast(unix_micros(current_timestamp()) as string)").collect()[0][0]
    cut = dt.datetime.fromtimestamp(int(now) / 1e6, dt.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    lab.notes["cut"] = [cut]
    sources = f"'old': {{{OLD}, 'until': '{cut}'}}, 'new': {{{NEW}, 'since': '{cut}'}}"
    dim(lab, "dim_new", sources, "{'*': {'rule': 'first_present'}}")
    log = [[1, "2024-01-01", "a"], [1, "2024-01-01", "b"], [1, "2024-02-01", "b"]]
    lab.table("log", LOG, [*log, [1, "2024-02-01", "c"], [2, "2024-05-01", "x"], [None, *log[0][1:]]])
    ties = f"{raw('log')}, 'changed_at': 'at', 'on_tie': 'greatest', 'since': '2024-03-01'"
    dim(lab, "dim_ties", f"'log': {{{ties}}}")
    lab.table("customers", CUSTOMERS, [[1, "a3"], [2, "b"]])
    lab.dbt("build", "--exclude", "dim_old")
    return lab


def query(lab: Lab, sql: str) -> list[tuple[Any, ...]]:
    rows = lab.spark.sql(sql.replace("LAB", lab.schema)).collect()
    return sorted((tuple(row) for row in rows), key=repr)


SAME = (
    "select id, name, began, if(ended = timestamp '2500-01-01', timestamp '9999-12-31 00:00:00', ended) "
    "from LAB.customers_snapshot version as of %s where dbt_is_deleted = 'False'"
)


def test_the_old_table_is_rebuilt_from_the_snapshot(moved: Lab) -> None:
    assert moved.results["dim_old"][0] == "success", moved.results["dim_old"]
    columns = moved.spark.table(f"{moved.schema}.dim_old").columns
    assert columns[:4] == ["id", "name", "valid_from", "valid_to"]
    history = query(moved, "describe history LAB.customers_snapshot")
    second = [row[0] for row in history][1]
    rebuilt = "select id, name, valid_from, valid_to from LAB.dim_old"
    old = SAME % second
    assert len(query(moved, old)) == 4
    assert query(moved, f"{old} except {rebuilt}") == []
    assert query(moved, f"{rebuilt} except {old}") == []


def test_no_version_is_lost_at_the_cutover(moved: Lab) -> None:
    assert moved.results["dim_new"][0] == "success", moved.results["dim_new"]
    ended = "select id, name, valid_from, valid_to from LAB.%s where valid_to <= timestamp '%sZ'"
    cut = moved.notes["cut"][0]
    assert len(query(moved, ended % ("dim_old", cut))) == 2
    assert query(moved, f"{ended % ('dim_old', cut)} except {ended % ('dim_new', cut)}") == []
    began = "select id, name, valid_from from LAB.%s where is_current"
    missing = f"{began % 'dim_old'} except select id, name, valid_from from LAB.dim_new"
    assert query(moved, missing) == []


def test_the_log_goes_on_where_the_snapshot_stops(moved: Lab) -> None:
    """Key 1 changed and 3 vanished after the cut, 2 came back; the snapshot of that day is not read."""
    rows = query(moved, "select id, name, is_current, version from LAB.dim_new")
    assert rows == [
        (1, "a", False, 1),
        (1, "a2", False, 2),
        (1, "a3", True, 3),
        (2, "b", False, 1),
        (2, "b", True, 2),
        (3, "c", False, 1),
    ]
    captured = query(moved, "select max(captured_at) from LAB.captured")
    assert query(moved, "select valid_from from LAB.dim_new where name = 'a3'") == captured
    assert query(moved, "select valid_to from LAB.dim_new where name = 'c'") == captured
    after = f"select 1 from LAB.customers_snapshot where began > timestamp '{moved.notes['cut'][0]}Z'"
    assert len(query(moved, after)) >= 3


def test_ties_are_counted_where_they_count(moved: Lab) -> None:
    """Of two ties before the cut the later one decides what is carried over."""
    assert query(moved, "select id, name, valid_from from LAB.dim_ties") == [
        (1, "c", dt.date(2024, 3, 1)),
        (2, "x", dt.date(2024, 5, 1)),
    ]
    assert any("dim_ties: 1 tie in source log" in text for text in moved.log)
    assert any("dim_ties: 1 row of source log set aside" in text for text in moved.log)


MISTAKES = {
    "'changed_at': 'at', 'since': 'soon'": ["log.since", "a moment in UTC", "soon"],
    "'changed_at': 'at', 'since': '2024-02-01', 'until': '2024-02-01 00:00'": [
        "log.since",
        "a moment before until, 2024-02-01 00:00",
    ],
    "'changed_at': 'at', 'until': '9999-12-31'": ["log.until", "before the end of time"],
    "'dbt_snapshot': true, 'changed_at': 'at'": [
        "valid_from with valid_to, or dbt_snapshot",
        "changes and periods",
    ],
    "'dbt_snapshot': true, 'valid_from': 'at'": ["log.valid_from", "sets the columns"],
    "'dbt_snapshot': 'yes'": ["log.dbt_snapshot", "true, or a map of", "yes"],
    "'dbt_snapshot': true": ["log.valid_from", "dbt_valid_from", "its columns are id, at, name"],
    "'dbt_snapshot': {'strategy': 'check', 'snapshot_meta_column_names': {'valid_to': 'x'}}": [
        "log.dbt_snapshot.strategy",
        "log.dbt_snapshot.snapshot_meta_column_names.valid_to",
    ],
}


def test_mistakes_are_told(moved: Lab) -> None:
    for number, options in enumerate(MISTAKES):
        dim(moved, f"wrong_{number}", f"'log': {{{raw('log')}, {options}}}")
    moved.dbt("run", "--select", "wrong_*")
    for number, parts in enumerate(MISTAKES.values()):
        status, message = moved.results[f"wrong_{number}"]
        assert status == "error"
        for part in parts:
            assert part in message, message
