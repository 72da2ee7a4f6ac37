"""Merges into a Hive table that are killed at any moment, while readers look: they see the state of some batch, whole.

The processes are clients of a Spark Connect server, killed by SIGKILL (HEALING_TABLES_KILLS of them; without it one).
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from kill_batches import KILLS, SPECS, compare, job, killed_merges, merge_here
from lab import Lab
from pyspark.sql import SparkSession
from tables import plain_rows

from healing_tables import HiveTarget

pytestmark = pytest.mark.usefixtures("interpreted")


class Readers:
    """Sessions that look at a table again and again, one of them a new one each time."""

    def __init__(self, lab: Lab, table: str) -> None:
        self.lab, self.table, self.is_over = lab, table, False
        self.seen: set[frozenset[Any]] = set()
        self.errors: list[str] = []
        self.threads = [threading.Thread(target=self.look, args=(is_new,)) for is_new in (True, False)]
        for thread in self.threads:
            thread.start()

    def look(self, is_new: bool) -> None:
        session = self.lab.spark.newSession()
        while not self.is_over:
            session = self.lab.spark.newSession() if is_new else session
            try:
                self.seen.add(state(session, self.table))
            except Exception as error:  # noqa: BLE001  (whatever it is: the test shows it)
                self.errors.append(str(error).splitlines()[0])
            time.sleep(0.05)

    def stop(self) -> None:
        self.is_over = True
        for thread in self.threads:
            thread.join()


def state(spark: SparkSession, table: str) -> frozenset[Any]:
    return frozenset(plain_rows(spark.sql(f"select * from {table}")))


@pytest.mark.parametrize(("kind", "buckets"), [("type2", None), ("type2", 4), ("type4", None)])
def test_killed_while_readers_look(lab: Lab, connect_url: str, kind: str, buckets: int | None) -> None:
    options, luck = SPECS[kind], random.Random(kind)
    table, undisturbed = (f"{lab.schema}.{name}_{kind}_{buckets}" for name in ("killed", "undisturbed"))
    for name in (table, undisturbed):
        first = merge_here(lab.spark, job(name, options, 0), HiveTarget(name, key_buckets=buckets))
    readers = Readers(lab, table)
    try:
        number = killed_merges(connect_url, table, options, luck, seconds=first.seconds)
        merge_here(lab.spark, job(table, options, number))
    finally:
        readers.stop()
    states = [state(lab.spark, undisturbed)]
    for n in range(1, number + 1):
        merge_here(lab.spark, job(undisturbed, options, n))
        states.append(state(lab.spark, undisturbed))
    print(f"\n{kind}, {buckets} buckets: {number + 1} batches, {KILLS} kills, {len(readers.seen)} states seen")
    assert readers.errors == []
    assert readers.seen <= set(states)
    assert len(readers.seen) > 1
    compare(lab.spark, f"{table}%s", f"{undisturbed}%s", options)
