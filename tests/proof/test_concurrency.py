"""Processes merge into the same two tables at once, through Spark Connect.

One server, since Delta's log on a local disk is safe between the threads of one JVM only: it looks whether the next
commit's file is there, then renames onto it. Object stores and HDFS have an atomic put-if-absent.

An attempt fails only where another writer has succeeded, so the number of attempts has a bound: no luck is needed.
With more than four batches per writer, the others commit so often that a merge could lose all of its 30 attempts.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from clients import Client, Job
from lab import Lab

from healing_tables import DimensionSpec, HiveTarget, merge

pytestmark = pytest.mark.usefixtures("interpreted")
WRITERS, KEYS = {"delta": 8, "orc": 4}, 3
BATCHES = int(os.environ.get("HEALING_TABLES_ROUNDS", "1"))  # per writer and table
OPTIONS = {
    "key_columns": "id",
    "attributes": {"name": 2},
    "surrogate_key": {"name": "sk", "strategy": "sequence"},
}


def jobs(lab: Lab, writer: int, kind: str = "delta") -> list[Job]:
    """Of the same keys, each time with a value of its own; and of keys that no other writer has."""
    found = []
    for number in range(BATCHES):
        name = f"writer {writer}, batch {number}"
        shared = [(key, name) for key in range(KEYS)]
        own = [((BATCHES * writer + number) * KEYS + key, name) for key in range(KEYS)]
        for table, rows in (("shared", shared), ("own", own)):
            found.append(Job(f"{lab.schema}.{table}_{kind}", OPTIONS, rows, "id int, name string"))
    return found


@pytest.mark.parametrize("kind", ["delta", "orc"])
def test_writers_at_once(lab: Lab, connect_url: str, kind: str) -> None:
    """The first writer creates the Delta table. The Hive table exists already; its attempts take longer."""
    writers = WRITERS[kind]
    if kind == "orc":
        empty = lab.spark.createDataFrame([], "id int, name string")
        for name in ("shared", "own"):
            merge(empty, HiveTarget(f"{lab.schema}.{name}_orc"), DimensionSpec.from_dict(OPTIONS))
    clients = [Client(connect_url, jobs(lab, writer, kind)) for writer in range(writers)]
    for client in clients:
        client.ready()
    for client in clients:
        client.start()
    done = [client.wait() for client in clients]
    attempts = Counter(merge.attempts for merges in done for merge in merges)
    print(f"\nattempts: {dict(sorted(attempts.items()))}")
    assert sum(attempts.values()) == 2 * writers * BATCHES
    assert max(attempts) > 1, "no writer met another: this run shows nothing"
    names = {f"writer {w}, batch {n}" for w in range(writers) for n in range(BATCHES)}

    shared = rows(lab, f"shared_{kind}")
    for key in range(KEYS):
        versions = sorted((row for row in shared if row["id"] == key), key=lambda row: row["version"])
        assert [row["version"] for row in versions] == list(range(1, len(names) + 1))
        assert {row["name"] for row in versions} == names  # with their number: each once
        starts = [row["valid_from"] for row in versions]
        assert sorted(set(starts)) == starts
        assert [row["valid_to"] for row in versions[:-1]] == starts[1:]
        assert [row["is_current"] for row in versions] == [False] * (len(names) - 1) + [True]
        # the batches of one writer stand in their order
        for writer in range(writers):
            mine = [row["name"] for row in versions if row["name"].startswith(f"writer {writer},")]
            assert mine == [f"writer {writer}, batch {n}" for n in range(BATCHES)]

    own = rows(lab, f"own_{kind}")
    wanted = {row for writer in range(writers) for job in jobs(lab, writer, kind)[1::2] for row in job.rows}
    assert Counter((row["id"], row["name"]) for row in own) == Counter(wanted)
    assert {(row["version"], row["is_current"]) for row in own} == {(1, True)}
    for table in (shared, own):
        # an attempt that lost keeps its numbers: none is given twice
        assert len({row["sk"] for row in table}) == len(table)


def rows(lab: Lab, table: str) -> list[dict[str, Any]]:
    return [row.asDict() for row in lab.spark.table(f"{lab.schema}.{table}").collect()]
