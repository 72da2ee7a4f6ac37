"""Processes that merge into one dimension: killed at any moment while readers look, and several at once.

They are clients of a Spark Connect server, killed by SIGKILL (HEALING_TABLES_KILLS of them; without it one).
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from clients import Client, Job
from kill_batches import AUDIT, HISTORY, KILLS, SPECS, job, killed_merges, merge_here
from pyspark.sql import DataFrame, SparkSession
from tables import plain_rows

WRITERS, BATCHES, KEYS = 4, 3, 3
NUMBERS = ("old_surrogate_key", "new_surrogate_key", "old_values", "new_values", "sk")


class Place(Protocol):
    """Where a dimension is.

    Attributes:
        keeps_numbers: a killed merge takes no number of a sequence with it.
    """

    @property
    def keeps_numbers(self) -> bool: ...

    def target(self, name: str) -> Any: ...

    def rows(self, target: Any, spark: SparkSession, suffix: str = "") -> DataFrame:
        """Of the dimension, or of a table beside it."""

    def state(self, target: Any, spark: SparkSession) -> frozenset[Any]:
        """What a reader sees."""


def check_kills_while_readers_look(spark: SparkSession, connect_url: str, place: Place, kind: str) -> None:
    """Kill merges until enough have died. Readers see states of an undisturbed run only, which the end equals."""
    options, luck = SPECS[kind], random.Random(kind)
    table, undisturbed = (place.target(f"{name}_{kind}") for name in ("killed", "undisturbed"))
    first = merge_here(spark, job(table, options, 0))
    seen: set[Any] = set()
    errors: list[str] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            try:
                seen.add(place.state(table, spark))
            except Exception as error:  # noqa: BLE001  (whatever it is: the test shows it)
                errors.append(str(error).splitlines()[0])

    reader = threading.Thread(target=look)
    reader.start()
    try:
        number = killed_merges(connect_url, table, options, luck, seconds=first.seconds)
        merge_here(spark, job(table, options, number))
    finally:
        is_over.set()
        reader.join()
    states = []
    for n in range(number + 1):
        merge_here(spark, job(undisturbed, options, n))
        states.append(place.state(undisturbed, spark))
    print(f"\n{kind}: {number + 1} batches, {KILLS} kills, {len(seen)} states seen")
    assert errors == []
    if kind == "type4" or place.keeps_numbers:
        assert seen <= set(states)
    assert len(seen) > 1
    for suffix, columns in (("", ()), ("_audit", AUDIT), *([("_history", HISTORY)] if kind == "type4" else [])):
        found, wanted = (compared(place, target, spark, suffix, columns) for target in (table, undisturbed))
        assert found == wanted and wanted, suffix


def compared(place: Place, target: Any, spark: SparkSession, suffix: str, columns: Sequence[str]) -> list[Any]:
    rows = place.rows(target, spark, suffix)
    if not place.keeps_numbers:
        rows, columns = rows.drop("sk"), tuple(name for name in columns if name not in NUMBERS)
    return plain_rows(rows, columns)


def check_writers_at_once(spark: SparkSession, connect_url: str, place: Place) -> None:
    """Four processes change the same keys at the same time, each three times: no change is lost, no number is twice."""
    table = place.target("raced")
    options = {
        "key_columns": "id",
        "attributes": {"name": 2},
        "audit": {},
        "surrogate_key": {"name": "sk", "strategy": "sequence"},
    }
    clients = []
    for writer in range(WRITERS):
        jobs = [
            Job(table, options, [(key, f"writer {writer}, batch {n}") for key in range(KEYS)], "id int, name string")
            for n in range(BATCHES)
        ]
        clients.append(Client(connect_url, jobs))
    for client in clients:
        client.ready()
    for client in clients:
        client.start()
    attempts = Counter(done.attempts for client in clients for done in client.wait())
    print(f"\nattempts: {dict(sorted(attempts.items()))}")
    assert sum(attempts.values()) == WRITERS * BATCHES
    assert max(attempts) > 1, "no writer met another: this run shows nothing"
    stored = place.rows(table, spark).collect()
    for key in range(KEYS):
        rows = sorted((row for row in stored if row.id == key), key=lambda row: int(row.version))
        assert [row.version for row in rows] == list(range(1, WRITERS * BATCHES + 1))
        assert {row.name for row in rows} == {f"writer {w}, batch {n}" for w in range(WRITERS) for n in range(BATCHES)}
        assert [row.valid_to for row in rows[:-1]] == [row.valid_from for row in rows[1:]]
        assert [row.is_current for row in rows] == [False] * (len(rows) - 1) + [True]
    numbers = {row.sk for row in stored}
    assert len(numbers) == len(stored) == KEYS * WRITERS * BATCHES
    assert place.rows(table, spark, "_audit").count() == KEYS * (2 * WRITERS * BATCHES - 1)
