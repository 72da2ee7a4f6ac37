"""Processes that merge into PostgreSQL: killed at any moment while readers look, and several at once.

They are clients of a Spark Connect server, killed by SIGKILL (HEALING_TABLES_KILLS of them; without it three).
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from typing import Any

import pytest
from clients import Client, Job
from kill_batches import AUDIT, HISTORY, SPECS, job, killed_merges, merge_here
from lab import Lab
from postgres_server import Server
from tables import plain_rows

from healing_tables import PostgresTarget

pytestmark = pytest.mark.usefixtures("interpreted")
KILLS = int(os.environ.get("HEALING_TABLES_KILLS", "3"))
WRITERS, BATCHES, KEYS = 4, 3, 3


def state(server: Server, table: PostgresTarget) -> frozenset[Any]:
    return frozenset(server.ask(f"select t::text from {table.sql_name} t"))


@pytest.mark.parametrize("kind", ["type2", "type4"])
def test_killed_while_readers_look(lab: Lab, connect_url: str, postgres: Server, kind: str) -> None:
    options, luck = SPECS[kind], random.Random(kind)
    table, undisturbed = (PostgresTarget(f"{name}_{kind}", postgres.connection) for name in ("killed", "undisturbed"))
    merge_here(lab.spark, job(table, options, 0))
    seen: set[Any] = set()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            seen.add(state(postgres, table))

    reader = threading.Thread(target=look)
    reader.start()
    try:
        number = killed_merges(connect_url, table, options, KILLS, luck, seconds=5.0)
        merge_here(lab.spark, job(table, options, number))
    finally:
        is_over.set()
        reader.join()
    states = []
    for n in range(number + 1):
        merge_here(lab.spark, job(undisturbed, options, n))
        states.append(state(postgres, undisturbed))
    print(f"\n{kind}: {number + 1} batches, {KILLS} kills, {len(seen)} states seen")
    if kind == "type4":  # numbers of transactions that were killed are not given again
        assert seen <= set(states)
    assert len(seen) > 1
    for suffix, columns in (("", ()), ("_audit", AUDIT), *([("_history", HISTORY)] if kind == "type4" else [])):
        found, wanted = (
            plain_rows(without_numbers(target.beside(suffix).rows(lab.spark)), columns and without_numbers_of(columns))
            for target in (table, undisturbed)
        )
        assert found == wanted and wanted, suffix


def without_numbers(rows: Any) -> Any:
    return rows.drop("sk")


def without_numbers_of(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        name for name in columns if name not in ("old_surrogate_key", "new_surrogate_key", "old_values", "new_values")
    )


def test_writers_at_once(lab: Lab, connect_url: str, postgres: Server) -> None:
    table = PostgresTarget("raced", postgres.connection)
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
    for key in range(KEYS):
        rows = postgres.ask(
            f"select version, name, valid_from, valid_to, is_current, sk from raced where id = {key} order by version"
        )
        assert [row[0] for row in rows] == list(range(1, WRITERS * BATCHES + 1))
        assert {row[1] for row in rows} == {f"writer {w}, batch {n}" for w in range(WRITERS) for n in range(BATCHES)}
        assert [row[3] for row in rows[:-1]] == [row[2] for row in rows[1:]]
        assert [row[4] for row in rows] == [False] * (len(rows) - 1) + [True]
    numbers = [row[0] for row in postgres.ask("select sk from raced")]
    assert len(numbers) == len(set(numbers)) == KEYS * WRITERS * BATCHES
