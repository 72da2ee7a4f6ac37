"""Two builds of one dimension at the same time, each in a process of its own, on one Spark Connect server.

The one that is overtaken begins again by itself; what is stored is never a mixture, and the log is true.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from clients import processes
from healed import arrive, check_log, healed_dimension
from lab import Lab

pytestmark = pytest.mark.usefixtures("interpreted")
ROUNDS = int(os.environ.get("HEALING_TABLES_ROUNDS", "1"))
HEAL, REBUILD = ["run"], ["run", "--full-refresh"]


def build(url: str, home: Path, number: int, told: Connection) -> None:
    """A dbt process: ready, then a run for each command; tells status, message, start and end."""
    os.environ["SPARK_REMOTE"] = url
    from dbt.cli.main import dbtRunner

    where = ["--project-dir", str(home), "--profiles-dir", str(home)]
    own = [
        "--target-path",
        str(home / f"target_{number}"),
        "--log-path",
        str(home / f"logs_{number}"),
    ]
    parsed = dbtRunner().invoke(["parse", "--quiet", *where, *own])
    told.send(parsed.success)
    while command := told.recv():
        started = time.monotonic()
        outcome = dbtRunner().invoke([*command, "--quiet", "--select", "dim_healed", *where, *own])
        ((result),) = outcome.result.results  # type: ignore[union-attr]
        told.send((str(result.status), result.message or "", started, time.monotonic()))


@contextmanager
def builders(lab: Lab, url: str) -> Iterator[list[Connection]]:
    """Two dbt processes that are ready; each takes a command, again and again."""
    pipes, running = [], []
    for number in range(2):
        here, there = processes.Pipe()
        process = processes.Process(target=build, args=(url, lab.home, number, there), daemon=True)
        process.start()
        there.close()
        pipes.append(here)
        running.append(process)
    for pipe in pipes:
        assert pipe.recv() is True
    yield pipes
    for pipe in pipes:
        pipe.send(None)
    for process in running:
        process.join()


def at_once(pipes: list[Connection], *commands: list[str]) -> list[tuple[str, str, float, float]]:
    for pipe, command in zip(pipes, commands, strict=True):
        pipe.send(command)
    return [pipe.recv() for pipe in pipes]


@pytest.mark.parametrize("publish", ["merge", "overwrite"])
def test_two_builds_at_once(lab: Lab, connect_url: str, publish: str) -> None:
    for table in ("changes", "dim_healed", "healing_log"):
        lab.spark.sql(f"drop table if exists {lab.schema}.{table}")
    healed_dimension(lab, publish=publish)
    arrive(lab, 0)
    lab.dbt("run")
    assert lab.succeeded, lab.results
    with builders(lab, connect_url) as pipes:
        for step, second in enumerate([HEAL, REBUILD] * ROUNDS, start=1):
            arrive(lab, step)
            results = at_once(pipes, HEAL, second)
            print(f"\n{publish}: {results}")
            (_, _, start, end), (_, _, other_start, other_end) = results
            assert max(start, other_start) < min(end, other_end), "one after the other"
            assert {status for status, *_ in results} == {"success"}, results
            lab.spark.catalog.refreshTable(f"{lab.schema}.dim_healed")
            lab.dbt("run", "--select", "anew")
            assert lab.rows("dim_healed") == lab.rows("anew")
            check_log(lab)
