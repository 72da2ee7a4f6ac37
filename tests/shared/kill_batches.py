"""The batches that processes merge while they are killed, and the comparison with an undisturbed run."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

from clients import Client, Job
from pyspark.sql import SparkSession
from tables import plain_rows

from healing_tables import DimensionSpec, HiveTarget, MergeResult, merge

KILLS = int(os.environ.get("HEALING_TABLES_KILLS", "1"))
KEYS = 6
AUDIT: tuple[str, ...] = (
    "key",
    "change_type",
    "change_reason",
    "changed_columns",
    "old_values",
    "new_values",
)
AUDIT += ("old_surrogate_key", "new_surrogate_key", "changed_at")
HISTORY = ("id", "name", "mail", "valid_from", "valid_to", "history_id", "change_reason")
SPECS: dict[str, dict[str, Any]] = {
    "type2": {"key_columns": "id", "attributes": {"name": 2}, "audit": {}},
    "type4": {"key_columns": "id", "attributes": {"name": 4, "mail": 1}, "audit": {}},
}
SPECS["type2"]["surrogate_key"] = {"name": "sk", "strategy": "sequence"}


def job(table: Any, options: dict[str, Any], number: int) -> Job:
    """Batch ``number``: some keys change, one is gone, the one before it is back."""
    rows = [
        (key, f"{key} since {(number + key) // 3}", f"mail {(number - key) // 2}")
        for key in range(KEYS)
        if key != number % KEYS
    ]
    schema = "id int, name string, mail string"
    if len(options["attributes"]) == 1:
        rows, schema = [row[:2] for row in rows], "id int, name string"  # type: ignore[misc]
    at = f"2024-01-01 {number // 60:02}:{number % 60:02}:00"
    return Job(table, options, rows, schema, at, {"full_batch": True})


def killed_merges(url: str, table: Any, options: dict[str, Any], luck: random.Random, seconds: float) -> int:
    """Processes that merge from batch 1 on, each killed at some moment, until KILLS died and a few batches are merged.

    Args: seconds: that the first merge may take.
    Returns: the number of the first batch that no process has said to be merged.
    """
    number, killed = 1, 0
    while killed < KILLS or number < 4:
        # the batch that the last one died in, again; and those after it
        client = Client(url, [job(table, options, n) for n in range(number, number + 5)])
        client.ready()
        client.start()
        time.sleep(luck.uniform(0, 2 * seconds))
        client.kill()
        done = client.finished()
        number += len(done)
        seconds = done[-1].seconds if done else seconds * 1.5
        killed += client.process.exitcode == -signal.SIGKILL
    return number


def merge_here(spark: SparkSession, job: Job, target: HiveTarget | None = None) -> MergeResult:
    """Args: target: for a table that is yet to be made."""
    batch = spark.createDataFrame(job.rows, job.schema)
    spec = DimensionSpec.from_dict(job.options)
    return merge(batch, target or job.table, spec, at=job.at, **job.merge_options)


def compare(spark: SparkSession, table: str, wanted: str, options: dict[str, Any]) -> None:
    """The dimension and its side tables against those of an undisturbed run; ``%s`` stands for the suffix."""
    tables: list[tuple[str, tuple[str, ...]]] = [("", ()), ("_audit", AUDIT)]
    if 4 in options["attributes"].values():
        tables.append(("_history", HISTORY))
    for suffix, columns in tables:
        expected = plain_rows(spark.sql(f"select * from {wanted % suffix}"), columns)
        assert plain_rows(spark.sql(f"select * from {table % suffix}"), columns) == expected, suffix
        assert expected
