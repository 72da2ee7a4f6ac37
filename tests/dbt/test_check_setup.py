"""check_setup: what it prints, and that nothing stays behind. Without Delta: test_dbt_without_delta.py."""

from __future__ import annotations

import re
from importlib.metadata import version

import dbt.adapters.spark
import pytest
from damage import operation, tables
from dbt.adapters.spark.impl import SparkAdapter
from lab import Lab
from sessions import with_settings

import dbt_healing_tables


@pytest.mark.slow
def test_a_set_up_without_the_library(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is optional, and nothing reads as a failure."""
    monkeypatch.setattr(dbt.adapters.spark.Plugin, "adapter", SparkAdapter)
    monkeypatch.setattr(dbt_healing_tables.plugins[0], "initialize", lambda self: None)
    lines = operation(lab, "check_setup")
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.count("|") == 2]
    found = {line[0]: line[1:] for line in cells}
    assert found["dbt-spark"][0] == "see dbt --version"
    assert found["Python library"][0] == "not installed"
    assert found["Python library"][1].startswith(
        "optional, for Python models of healing_merge: install the Python library"
    )
    assert any("this set-up works" in line for line in lines)


@pytest.mark.slow
def test_a_set_up_that_works(lab: Lab) -> None:
    slow = {"spark.sql.shuffle.partitions": "200", "spark.databricks.delta.snapshotPartitions": "50"}
    before = tables(lab)
    with with_settings(lab.spark, slow):
        lines = operation(lab, "check_setup")
    assert tables(lab) == before
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.count("|") == 2]
    found = {line[0]: line[1:] for line in cells}
    assert found["Spark"] == [lab.spark.version, ""]
    assert found["metastore"] == ["hive", ""]
    assert found["dbt-core"] == [version("dbt-core"), ""]  # the pinned parser is installed
    assert found["dbt-spark"] == [version("dbt-spark"), ""]
    assert found["this package"] == found["Python library"] == [version("dbt-healing-tables"), ""]
    assert found["time zone of the session"][0] == "UTC"
    assert found["spark.sql.shuffle.partitions"][0] == "200"
    assert "on one machine 2 is quicker" in found["spark.databricks.delta.snapshotPartitions"][1]
    last = next(line for line in lines if "this set-up works" in line)
    assert re.search(r"a delta table in \w+ \(.*Delta-Lake/\d.*\) was created.*this set-up works", last)
