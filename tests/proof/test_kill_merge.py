"""A merge that is killed at any moment is made good by the next run: dimension, history and audit.

The processes are clients of a Spark Connect server, killed by SIGKILL (HEALING_TABLES_KILLS of them per kind of
dimension; without it one). The server may still be running the statement of a process that is gone, beside the next
run.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from clients import Client, Done, Job
from kill_batches import KILLS, SPECS, compare, job, merge_here
from lab import Lab

from healing_tables.merge.outbox import Outbox
from healing_tables.targets.delta import DeltaTarget

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture(scope="module")
def undisturbed(lab: Lab) -> Callable[[str, int], str]:
    """A table of all batches up to a number; asked again, it goes on from there."""
    done = Counter[str]()

    def merged(kind: str, last: int) -> str:
        table = f"{lab.schema}.undisturbed_{kind}"
        for number in range(done[kind], last + 1):
            merge_here(lab.spark, job(table, SPECS[kind], number))
        done[kind] = last + 1
        return table

    return merged


def test_a_killed_writer_that_came_first(
    lab: Lab, undisturbed: Callable[[str, int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It commits between the plan and the MERGE of this merge, which then has nothing left to do but to deliver."""
    table, options = f"{lab.schema}.came_first", SPECS["type4"]
    merge_here(lab.spark, job(table, options, 0))
    apply, calls = DeltaTarget.apply, []

    def late(self: Any, *args: Any, **settings: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
                patch.setattr(Outbox, "deliver", killed)
                merge_here(lab.spark, job(table, options, 1))
        return apply(self, *args, **settings)

    monkeypatch.setattr(DeltaTarget, "apply", late)
    result = merge_here(lab.spark, job(table, options, 1))
    assert (result.attempts, result.commit_version) == (2, None)
    monkeypatch.undo()
    compare(lab.spark, f"{table}%s", undisturbed("type4", 1) + "%s", options)


@pytest.mark.parametrize("kind", SPECS)
def test_killed_again_and_again(lab: Lab, connect_url: str, undisturbed: Callable[[str, int], str], kind: str) -> None:
    options, table = SPECS[kind], f"{lab.schema}.killed_{kind}"
    luck, left = random.Random(kind), Left(lab, table)
    seconds = run(connect_url, [job(table, options, n) for n in range(3)])[-1].seconds
    number = 3
    while sum(left.found.values()) < KILLS:
        # the batch that the last one died in, again; and those after it
        client = Client(connect_url, [job(table, options, n) for n in range(number, number + 5)])
        client.ready()
        client.start()
        time.sleep(luck.uniform(0, 1.5 * seconds))
        client.kill()
        done = client.finished()
        number += len(done)
        seconds = done[-1].seconds if done else seconds  # a JVM becomes faster for minutes
        assert client.process.exitcode in (-signal.SIGKILL, 0)
        if client.process.exitcode == -signal.SIGKILL:
            left.look()
    run(connect_url, [job(table, options, number)])
    print(f"\n{kind}: {number + 1} batches, {seconds:.1f} s a merge; kills left {dict(left.found)}")
    compare(lab.spark, f"{table}%s", undisturbed(kind, number) + "%s", options)


def run(url: str, jobs: list[Job]) -> list[Done]:
    client = Client(url, jobs)
    client.ready()
    client.start()
    return client.wait()


class Left:
    """What processes left when they were killed, counted; for the report."""

    def __init__(self, lab: Lab, table: str) -> None:
        self.lab, self.table = lab, table
        self.found: Counter[str] = Counter()
        self.known: set[str] = set()

    def look(self) -> None:
        pending = self.lab.spark.table(f"{self.table}__pending").select("merge_id").distinct()
        ids = {str(row[0]) for row in pending.collect()}
        target = DeltaTarget(self.table)
        commits = target.commits_since(self.lab.spark, -1, sorted(ids))
        committed = ids & {commit.merge_id for commit in commits}
        new = ids - self.known
        what = "rows for a commit that never came" if new else "nothing"
        self.found["rows to deliver" if committed else what] += 1
        self.known = ids


def killed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt
