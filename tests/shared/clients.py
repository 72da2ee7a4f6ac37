"""Processes that merge through Spark Connect, for the tests that kill them or let them race.

They are forked from a small process that has imported PySpark but connected to nothing (gRPC and fork do not mix
later on): one is ready in a moment, where a Python of its own takes seconds. What they send is a line per merge.
"""

from __future__ import annotations

import multiprocessing as mp
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from pyspark.sql import SparkSession
from sessions import without_codegen

from healing_tables import DimensionSpec, merge

processes = mp.get_context("forkserver")
processes.set_forkserver_preload(
    ["pyspark.sql.connect.session", "pyspark.sql.connect.functions", "grpc", "healing_tables"]
)


@dataclass(frozen=True)
class Job:
    """One merge.

    Attributes:
        options: of the DimensionSpec.
        at: None is now, anew in each attempt.
    """

    table: Any
    options: dict[str, Any]
    rows: list[tuple[Any, ...]]
    schema: str
    at: str | None = None
    merge_options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """A merge that came to its end."""

    attempts: int
    seconds: float


class Client:
    """A process with a session of its own that does jobs in order, from ``start`` on."""

    def __init__(self, url: str, jobs: Sequence[Job]) -> None:
        self.told, child = processes.Pipe()
        self.process = processes.Process(target=work, args=(url, list(jobs), child), daemon=True)
        self.process.start()
        child.close()

    def ready(self) -> None:
        """Wait until it has its session."""
        assert self.told.recv() == "ready"

    def start(self) -> None:
        self.told.send("start")

    def kill(self) -> None:
        """SIGKILL: no clean-up of any kind runs."""
        self.process.kill()
        self.process.join()

    def finished(self) -> list[Done]:
        """What it has told until now; of a process that is gone, everything."""
        found: list[Done] = []
        try:
            while self.told.poll():
                found.append(self.told.recv())
        except (EOFError, OSError):  # OSError: killed while it was telling
            pass
        return found

    def wait(self) -> list[Done]:
        self.process.join()
        found = self.finished()
        assert self.process.exitcode == 0, self.process.exitcode
        return found


def work(url: str, jobs: list[Job], tell: Connection) -> None:

    spark = SparkSession.builder.remote(url).create()
    with without_codegen(spark):
        tell.send("ready")
        tell.recv()
        for job in jobs:
            started = time.monotonic()
            spec = DimensionSpec.from_dict(job.options)
            batch = spark.createDataFrame(job.rows, job.schema)
            result = merge(batch, job.table, spec, at=job.at, **job.merge_options)
            tell.send(Done(result.attempts, time.monotonic() - started))
