"""The materialization healing_merge with file_format iceberg."""

from __future__ import annotations

from typing import Any

import pytest
from lab import Lab
from tables import plain_rows

pytestmark = pytest.mark.slow
COLUMNS = [["id", "int"], ["name", "string"], ["tier", "string"]]
FIRST = [[1, "Ann", "gold"], [2, "Cid", "gold"]]
SECOND = [[1, "Bea", "gold"], [2, "Cid", "gold"], [3, "Eve", "new"]]
MERGED = [(1, "Ann", False), (1, "Bea", True), (2, "Cid", True), (3, "Eve", True)]
PYTHON = """
def model(dbt, session):
    dbt.config(
        materialized="healing_merge",
        unique_key="id",
        file_format="iceberg",
        meta={"healing_tables": {"attributes": ["name"]}},
    )
    return session.table("%s.players").select("id", "name")
"""


def rows(lab: Lab, name: str, *columns: str) -> list[tuple[Any, ...]]:
    lab.spark.sql(f"refresh table {lab.schema}.{name}")
    return plain_rows(lab.spark.table(f"{lab.schema}.{name}"), columns)


def players(lab: Lab, given: list[list[Any]]) -> None:
    frame = lab.spark.createDataFrame([tuple(row) for row in given], ", ".join(map(" ".join, COLUMNS)))
    frame.writeTo(f"{lab.schema}.players").using("iceberg").createOrReplace()


def test_models(lab: Lab) -> None:
    """From SQL and Python; with a log of builds; a full refresh."""
    lab.spark.sql(f"create database if not exists {lab.schema}")
    models = {
        "dim_two": {"attributes": ["name", "tier"]},
        "dim_four": {"attributes": {"name": 4, "tier": 4}, "audit": {}, "allow_full_refresh": True},
        "dim_logged": {"attributes": ["name", "tier"], "change_log": "said"},
    }
    for name, meta in models.items():
        config = {"tblproperties": {"write.merge.mode": "copy-on-write"}} if name == "dim_two" else {}
        lab.model(
            name,
            f"select * from {lab.schema}.players",
            materialized="healing_merge",
            file_format="iceberg",
            unique_key="id",
            meta={"healing_tables": meta},
            **config,
        )
    lab.write("models/dim_py.py", PYTHON % lab.schema)
    for given in (FIRST, SECOND, SECOND):
        players(lab, given)
        found = lab.dbt("run")
        assert {status for status, _ in found.values()} == {"success"}, found
    for name in ("dim_two", "dim_py", "dim_logged"):
        assert rows(lab, name, "id", "name", "is_current") == MERGED
        assert [row[0] for row in lab.spark.sql(f"select name from {lab.schema}.{name}.refs").collect()] == ["main"]
    assert rows(lab, "dim_four", "id", "name") == [(1, "Bea"), (2, "Cid"), (3, "Eve")]
    assert rows(lab, "dim_four_history", "id", "name") == [(1, "Ann")]
    mode = lab.spark.sql(f"show tblproperties {lab.schema}.dim_two ('write.merge.mode')").collect()[0][1]
    assert mode == "copy-on-write"
    log = lab.spark.table(f"{lab.schema}.healing_log").where("dimension like '%dim_two%'")
    assert plain_rows(log, ["status", "rows_added"]) == [("published", 2), ("published", 2), ("unchanged", 0)]
    found = lab.dbt("run", "--full-refresh", "--select", "dim_four")
    assert found["dim_four"][0] == "success", found
    assert rows(lab, "dim_four", "id", "name") == [(1, "Bea"), (2, "Cid"), (3, "Eve")]
    assert rows(lab, "dim_four_history") == []
