"""The default end of an open version: a moment that Python and every time zone can show."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from lab import Lab

from healing_tables import DimensionSpec, merge

pytestmark = pytest.mark.slow

OLD_END, END, ENDED = "9999-12-31 23:59:59", "9999-12-31 00:00:00", "2024-02-01 00:00:00"
KEPT = ("id", "name", "valid_from", "is_current", "version", "key_hash", "row_hash")
CHANGES = """
select id, concat('first ', id) as name, timestamp '2024-01-01 00:00:00Z' as at from range(25)
union all select id, concat('second ', id), timestamp '2024-02-01 00:00:00Z' from range(12)
"""
CALL = "{{ healing_tables.dimension({'crm': {'relation': ref('changes'), 'changed_at': 'at'}}%s) }}"


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    """A dimension with the old end that is built again with the default; one whose open end is NULL."""

    def model(name: str, more: str = "", **meta: object) -> None:
        own = {"unique_key": "id", "meta": {"healing_tables": meta}}
        lab.model(name, CALL % more, materialized="healing_table", **own)

    lab.model("changes", CHANGES)
    model("dim", f", valid_to_current='{OLD_END}'", mode="heal")
    model("dim_null", valid_to_current=None)
    lab.dbt("run")
    lab.notes["before"] = [repr(row) for row in lab.rows("dim", *KEPT)]
    assert {row[0] for row in lab.rows("dim", "valid_to")} == {ENDED, OLD_END}
    model("dim", mode="heal")
    lab.dbt("run", "--select", "dim")
    return lab


@pytest.fixture
def oslo(built: Lab) -> Iterator[Lab]:
    """The Python process and the session are in Oslo, one hour east of UTC in December."""
    before = os.environ.get("TZ", "UTC")
    os.environ["TZ"] = "Europe/Oslo"
    time.tzset()
    built.spark.conf.set("spark.sql.session.timeZone", "Europe/Oslo")
    yield built
    built.spark.conf.set("spark.sql.session.timeZone", "UTC")
    os.environ["TZ"] = before
    time.tzset()


def test_python_shows_the_default_in_a_zone_east_of_utc(oslo: Lab) -> None:
    oslo.dbt("show", "--select", "dim")
    assert oslo.succeeded
    found = {str(row.valid_to) for row in oslo.spark.table(f"{oslo.schema}.dim").collect()}
    assert found == {"2024-02-01 01:00:00", "9999-12-31 01:00:00"}


def test_a_build_over_the_old_end_loses_no_version(built: Lab) -> None:
    assert built.results["dim"][0] == "success"
    assert [repr(row) for row in built.rows("dim", *KEPT)] == built.notes["before"]
    assert {row[0] for row in built.rows("dim", "valid_to")} == {ENDED, END}
    log = built.spark.table(f"{built.schema}.healing_log").where("dimension = 'dim'")
    last = log.orderBy("finished_at", ascending=False).collect()[0]
    # a heal would leave the old end on the keys without news
    assert (last["mode"], last["rows_changed"], last["rows_removed"]) == ("rebuild", 25, 0)


def test_pandas_holds_a_dimension_whose_open_end_is_null(built: Lab) -> None:
    frame: Any = built.spark.table(f"{built.schema}.dim_null").toPandas()
    assert frame["valid_to"].isna().sum() == 25
    assert str(frame["valid_to"].max()) == ENDED


def test_a_model_takes_over_a_table_and_its_tests_know_the_open_end(lab: Lab) -> None:
    """NULL would fail valid_order, and 'Y' single_current, if the tests took the defaults."""
    lab.spark.sql(
        f"create table {lab.schema}.dim_taken using delta as select 0L as id, 'first' as name, "
        "timestamp '2024-01-01' as valid_from, cast(null as timestamp) as valid_to, 'Y' as is_current"
    )
    options = {"attributes": {"name": 2}, "changed_at": "at"}
    lab.model(
        "dim_taken",
        "select 0L as id, 'second' as name, timestamp '2024-02-01' as at "
        "union all select 1L, 'new', timestamp '2024-02-01'",
        materialized="healing_merge",
        unique_key="id",
        meta={"healing_tables": options},
    )
    tests = [{"healing_tables.temporal_integrity": {"arguments": {"tracked_columns": ["name"]}}}]
    lab.write("models/taken.yml", json.dumps({"version": 2, "models": [{"name": "dim_taken", "data_tests": tests}]}))
    lab.dbt("build", "--select", "dim_taken")
    assert {status for status, _ in lab.results.values()} == {"success", "pass"}, lab.results
    assert lab.rows("dim_taken", "id", "name", "valid_to", "is_current") == [
        (0, "first", ENDED, "N"),
        (0, "second", None, "Y"),
        (1, "new", None, "Y"),
    ]
    lab.model(
        "dim_taken",
        "select 2L as id, 'x' as name, timestamp '2024-03-01' as at",
        materialized="healing_merge",
        unique_key="id",
        meta={"healing_tables": {**options, "valid_to_current": END}},
    )
    lab.dbt("run", "--select", "dim_taken")
    _, message = lab.results["dim_taken"]
    assert "valid_to_current (valid_to)" in message and f"{END} UTC" in message and "NULL in 2 rows" in message


@pytest.mark.parametrize("change_log", [None, pytest.param("changes_of_dim", marks=pytest.mark.slow)])
def test_a_merge_keeps_the_old_end_where_it_is_stored(lab: Lab, change_log: str | None) -> None:
    name = f"{lab.schema}.dim_merged_{change_log}"
    log = None if change_log is None else f"{lab.schema}.{change_log}"
    new = DimensionSpec(key_columns="id", attributes={"name": 2}, change_log=log)
    old = DimensionSpec(key_columns="id", attributes={"name": 2}, change_log=log, valid_to_current=OLD_END)
    rows = lab.spark.sql("select id, concat('first ', id) as name from range(25)")
    merge(rows, name, old, at="2024-01-01 00:00:00")
    assert merge(rows, name, new, at="2024-01-02 00:00:00").commit_version is None
    second = lab.spark.sql("select 0L as id, 'second' as name")
    merge(second, name, new, at=ENDED)
    found = lab.spark.table(name).selectExpr("id", "name", "string(valid_to)", "is_current")
    assert sorted(tuple(row) for row in found.collect()) == [
        (0, "first 0", ENDED, False),
        (0, "second", OLD_END, True),
        *((id, f"first {id}", OLD_END, True) for id in range(1, 25)),
    ]
