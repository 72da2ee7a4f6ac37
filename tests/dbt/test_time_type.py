"""TIME, a type of Spark 4.1 behind a setting: as keys and attributes, in hashes, builds and merges by both ways."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from lab import Lab
from sessions import FORMAT, SPARK
from tables import plain_rows
from ways import merge_by_sql, merge_model

from healing_tables import DimensionSpec, HealingTablesError, HiveTarget, merge

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SPARK < (4, 1), reason="TIME came with Spark 4.1"),
    pytest.mark.skipif(FORMAT != "delta", reason="a catalog of Iceberg has no tables of files"),
]
ROWS = {
    1: "(time '08:00:00', time '10:00:00', date '2024-01-01'), (time '08:00:00.5', null, date '2024-01-01')",
    2: "(time '08:00:00', time '10:00:00.000001', date '2024-02-01')",
}
SHOWN = ["opens", "closes", "valid_from", "is_current", "key_hash", "row_hash"]
OPTIONS: dict[str, Any] = {"attributes": ["closes"], "changed_at": "seen"}


@pytest.fixture
def lab_with_times(lab: Lab) -> Iterator[Lab]:
    lab.spark.conf.set("spark.sql.timeType.enabled", "true")
    yield lab
    lab.spark.conf.unset("spark.sql.timeType.enabled")


def batch(lab: Lab, number: int) -> Any:
    return lab.spark.sql(f"select * from values {ROWS[number]} as b (opens, closes, seen)")


def test_times(lab_with_times: Lab) -> None:
    lab = lab_with_times
    call = """{{ healing_tables.dimension(sources={'hours': {'relation': ref('hours'), 'changed_at': 'seen'}},
        key_columns='opens', attributes=['closes']) }}"""
    lab.model("hours", f"select * from values {ROWS[1]}, {ROWS[2]} as b (opens, closes, seen)")
    lab.model("built", call, materialized="healing_table", unique_key="opens", file_format="parquet")
    lab.dbt("run", "--select", "hours", "built")
    assert lab.succeeded, lab.log
    rows = sorted(plain_rows(lab.spark.table(f"{lab.schema}.built"), SHOWN), key=repr)
    assert len(rows) == 3 and len({row[4] for row in rows}) == 2 and len({row[5] for row in rows}) == 3
    assert hashlib.sha256(b"08:00:00.5").hexdigest() in {row[4] for row in rows}
    lab.build("built")
    assert lab.newest("built")["status"] == "unchanged"
    for number in ROWS:
        log = f"{lab.schema}.merged_changes"
        spec = DimensionSpec(key_columns="opens", change_log=log, **OPTIONS)
        merge(batch(lab, number), HiveTarget(f"{lab.schema}.merged", "parquet"), spec)
        config = {"file_format": "parquet"}
        merge_model(lab, "by_sql", batch(lab, number), key_columns="opens", config=config, **OPTIONS)
        merge_by_sql(lab, "by_sql")
    for name in ("merged", "by_sql"):
        assert sorted(plain_rows(lab.spark.table(f"{lab.schema}.{name}"), SHOWN), key=repr) == rows, name


def test_a_format_without_times(lab_with_times: Lab) -> None:
    """Delta has none, and names the columns; nothing is written."""
    lab = lab_with_times
    call = """{{ healing_tables.dimension(sources={'hours': {'relation': ref('hours'), 'changed_at': 'seen'}},
        key_columns='opens', attributes=['closes']) }}"""
    lab.model("hours", f"select * from values {ROWS[1]} as b (opens, closes, seen)")
    lab.model("in_delta", call, materialized="healing_table", unique_key="opens")
    assert "closes: TimeType(6)" in lab.dbt("run", "--select", "hours", "in_delta")["in_delta"][1]
    with pytest.raises(HealingTablesError, match=r"closes: TimeType\(6\)"):
        merge(batch(lab, 1), f"{lab.schema}.merged_delta", DimensionSpec(key_columns="opens", **OPTIONS))
    names = {row["tableName"] for row in lab.spark.sql(f"show tables in {lab.schema}").collect()}
    assert not names & {"in_delta", "merged_delta"}
