"""The two ways of healing_merge on one dimension: the library, and SQL as dbt runs it where the library cannot run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import dbt.adapters.spark
from dbt.adapters.base.meta import available
from lab import Lab
from pyspark.sql import DataFrame

TWINS = ("", "_twin")
OBSTACLE = {"wanted": "the method session", "got": "method thrift", "remedy": "set method: session"}


@contextmanager
def without_library() -> Iterator[None]:
    """dbt as it is where the library cannot run."""

    def obstacle(_: Any, submission_method: str | None) -> dict[str, str]:
        return OBSTACLE

    with patch.object(dbt.adapters.spark.Plugin.adapter, "healing_tables_obstacle", available(obstacle)):
        yield


def merge_model(lab: Lab, name: str, batch: DataFrame | None = None, **options: Any) -> None:
    """A model that merges the table ``<name>_batch`` into its dimension.

    Args: batch: the rows of that table, if they change; options: of the merge; ``config``: others of dbt.
    """
    config = {"unique_key": options.pop("key_columns", "id"), **options.pop("config", {})}
    config["meta"] = {"healing_tables": options}
    lab.model(name, f"select * from {lab.schema}.{name}_batch", materialized="healing_merge", **config)
    if batch is not None:
        lab.spark.sql(f"drop table if exists {lab.schema}.{name}_batch")
        batch.write.saveAsTable(f"{lab.schema}.{name}_batch", format="parquet")


def merge_by_sql(lab: Lab, name: str, *args: str) -> dict[str, Any]:
    """Run that model; the row of the log."""
    with without_library():
        results = lab.dbt("run", "--select", name, *args)
    assert results[name][0] == "success", results[name][1]
    row = lab.newest(name)
    assert row["publish"] == ("log and heal" if row["status"] == "published" else None)
    assert row["reason"] == "as SQL: the library needs the method session; got method thrift"
    return row


def refused(lab: Lab, name: str) -> str:
    """The error of a run of that model."""
    with without_library():
        status, message = lab.dbt("run", "--select", name)[name]
    assert status == "error"
    return message


def same_tables(lab: Lab, name: str, *hidden: str) -> None:
    """The tables of a dimension and of its twin, ``<name>_twin``, have the same rows, but for the ids of runs.

    Args: hidden: names of columns, or of tables, that are not compared.
    """
    names = {row.tableName for row in lab.spark.sql(f"show tables in {lab.schema} like '{name}*'").collect()}
    own = ["merge_id", "logged_at", "batch_id", "row_id", "dimension", "published_at", "set_aside_at"]
    own += ["set_aside_batch_id"]
    for beside in {"", "_changes", "_audit", "_history", "__keys", "__set_aside"} - set(hidden):
        assert (name + beside in names) == (f"{name}_twin{beside}" in names), beside
        if name + beside in names:
            tables = [lab.spark.table(f"{lab.schema}.{name}{twin}{beside}").drop(*own, *hidden) for twin in TWINS]
            assert tables[0].dtypes == tables[1].dtypes, beside
            rows = [sorted(map(tuple, table.collect()), key=repr) for table in tables]
            assert rows[0] == rows[1], beside
