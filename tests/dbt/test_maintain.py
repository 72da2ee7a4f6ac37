"""maintain: files before and after, what it refuses, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from damage import COLUMNS, HEALTHY, commits, operation, stored, tables
from lab import Lab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("interpreted")]
REFUSED = "dim_many__candidate_fedcba9876543210fedcba9876543210"
YOUNG = "dim_busy__candidate_0123456789abcdef0123456789abcdef"


def files_of(lab: Lab, name: str) -> list[str]:
    """All parquet files of a table, those of older versions too."""
    home = lab.spark.sql(f"describe detail {lab.schema}.{name}").first()
    assert home is not None
    place = Path(str(home["location"]).removeprefix("file:"))
    return sorted(str(path) for path in place.rglob("*.parquet"))


def scattered(lab: Lab, name: str, how: str = "") -> None:
    """A table of several files."""
    stored(lab, name, COLUMNS, HEALTHY * 3, partitioned=how, files=6)


@pytest.fixture(scope="module")
def seen(lab: Lab, interpreted: None) -> dict[str, Any]:
    scattered(lab, "dim_many")
    scattered(lab, "dim_parted", "partitioned by (id)")
    scattered(lab, "dim_liquid", "cluster by (id)")
    scattered(lab, "dim_busy")
    stored(lab, YOUNG, COLUMNS, HEALTHY)
    stored(lab, REFUSED, COLUMNS, HEALTHY)
    lab.spark.sql(
        f"create table {lab.schema}.healing_log using delta as select '{lab.schema}.dim_many' as relation, "
        "'refused' as status, 'fedcba98-7654-3210-fedc-ba9876543210' as invocation_id"
    )
    lab.table("dim_parquet", COLUMNS, HEALTHY)
    where = {"key_columns": ["id"]}
    found: dict[str, Any] = {"files before": files_of(lab, "dim_many")}
    found["many"] = operation(lab, "maintain", dimension=f"{lab.schema}.dim_many", **where)
    found["files"] = files_of(lab, "dim_many")
    found["many commits"] = commits(lab, "dim_many")
    found["short"] = operation(lab, "maintain", dimension=f"{lab.schema}.dim_many", **where, retention_hours=0)
    found["files after short"] = files_of(lab, "dim_many")
    found["allowed"] = operation(
        lab,
        "maintain",
        dimension=f"{lab.schema}.dim_many",
        retention_hours=0,
        allow_short_retention=True,
    )
    found["files after allowed"] = files_of(lab, "dim_many")
    setting = "spark.databricks.delta.retentionDurationCheck.enabled"
    found["setting"] = lab.spark.conf.get(setting, "unset")
    for name in ("parted", "liquid", "busy", "parquet"):
        found[name] = operation(lab, "maintain", dimension=f"{lab.schema}.dim_{name}", **where)
        found[f"{name} tables"] = tables(lab)
    found["busy commits"] = commits(lab, "dim_busy")
    found["forced"] = operation(
        lab,
        "maintain",
        dimension=f"{lab.schema}.dim_busy",
        **where,
        force=True,
    )
    found["forced commits"] = commits(lab, "dim_busy")
    return found


def told(seen: dict[str, Any], name: str) -> str:
    return "\n".join(line for line in seen[name] if "maintain" in line or "   " in line)


def test_files_are_brought_together_by_key(seen: dict[str, Any]) -> None:
    text = told(seen, "many")
    assert "before: 6 files" in text and "after: 1 files" in text
    assert "zorder by (`id`)" in text
    assert "OPTIMIZE" in seen["many commits"]
    assert "partition" not in text


def test_old_files_stay_for_a_week(seen: dict[str, Any]) -> None:
    assert "more than 168 hours" in told(seen, "many")
    assert set(seen["files before"]) <= set(seen["files"])
    assert len(seen["files"]) == len(seen["files before"]) + 1
    text = told(seen, "short")
    assert "wanted: at least 168 hours" in text and "allow_short_retention: true" in text
    assert seen["files after short"] == seen["files"]


def test_a_short_retention_has_to_be_allowed(seen: dict[str, Any]) -> None:
    assert len(seen["files after allowed"]) == 1
    assert seen["setting"] in ("unset", "true")
    assert "one file: nothing to optimize" in told(seen, "allowed")


def test_partitions_and_clustering_are_respected(seen: dict[str, Any]) -> None:
    text = told(seen, "parted")
    assert "zorder" not in text and "optimize" in text
    text = told(seen, "liquid")
    assert "zorder" not in text and "optimize" in text


def test_a_build_at_work_is_left_alone(lab: Lab, seen: dict[str, Any]) -> None:
    text = told(seen, "busy")
    assert YOUNG in text and "force: true" in text
    assert "OPTIMIZE" not in seen["busy commits"] and YOUNG in seen["busy tables"]
    assert f"a build has left {lab.schema}.{YOUNG}, 0.0 hours old;" in told(seen, "forced")
    assert "drop_candidates --args '{build_hours: 0}' drops it" in told(seen, "forced")
    assert "OPTIMIZE" in seen["forced commits"]


def test_the_candidate_of_a_refused_build_is_no_build_at_work(seen: dict[str, Any]) -> None:
    assert f"a build has left lab_test_maintain.{REFUSED}, 0.0 hours old;" in told(seen, "many")
    assert "run-operation healing_tables.drop_candidates drops it" in told(seen, "many")


def test_a_parquet_table_has_nothing_to_do(seen: dict[str, Any]) -> None:
    assert "a parquet table has neither OPTIMIZE nor VACUUM" in told(seen, "parquet")
