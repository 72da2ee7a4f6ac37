"""A build that dies at any moment leaves the old or the new table, never something between.

Inside a statement: a process of its own is killed, JVM and all (killed.py); each process first tells what the one
before left. Between two statements: dbt runs here and is stopped there; it has no clean-up that a killed process would
lack. A heal is stopped anywhere: the next one gives the undisturbed result, and the log is true. With
HEALING_TABLES_KILLS there are more moments inside a statement, and so many stopped heals.
"""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from dbt.adapters.spark import session as dbt_session
from healed import arrive, check_log, healed_dimension
from kill_batches import KILLS
from killed import FORMATS, KEYS, TABLES, dimensions, generate
from lab import Lab
from sessions import FORMAT

CHANGES = r"create table \S+dim_delta__candidate"
PUBLISH = r"create or replace table \S+dim_delta\s"
DROP = r"drop table if exists \S+dim_delta__candidate"
# or what follows after a kill that came just after the commit
MERGE = r"merge into \S+dim_healed|create or replace table \S+dim_healed\s"
SWAP = r"alter table \S+dim_parquet set location"
# on Iceberg
INSERT = r"insert into \S+dim_iceberg\.branch_"
FORWARD = r"call system\.fast_forward"
# (model, statement, seconds into it); the first of them without HEALING_TABLES_KILLS
INSIDE = {
    "delta": [
        ("dim_delta", PUBLISH, ("0.8", "0.15")),
        ("dim_parquet", SWAP, ("0.02",)),
        ("dim_healed", MERGE, ("0.15", "1.0")),
    ],
    "iceberg": [
        ("dim_iceberg", INSERT, ("0.3",)),
        ("dim_iceberg", FORWARD, ("0.02", "0.08")),
        ("dim_healed", MERGE, ("0.3",)),
        ("dim_healed", FORWARD, ("0.04",)),
    ],
}[FORMAT]
# (model, statement, before or after it, whether the model is new then)
BETWEEN = {
    "delta": [
        ("dim_delta", CHANGES, "before", False),
        ("dim_delta", CHANGES, "after", False),
        ("dim_delta", PUBLISH, "before", False),
        ("dim_delta", PUBLISH, "after", True),
        ("dim_delta", DROP, "before", True),
        ("dim_parquet", SWAP, "before", False),
        ("dim_parquet", SWAP, "after", True),
    ],
    "iceberg": [
        ("dim_iceberg", r"create or replace branch", "after", False),
        ("dim_iceberg", INSERT, "before", False),
        ("dim_iceberg", INSERT, "after", False),
        ("dim_iceberg", FORWARD, "before", False),
        ("dim_iceberg", FORWARD, "after", True),
        ("dim_iceberg", r"drop branch", "after", True),
    ],
}[FORMAT]


def build(home: Path, generation: int, *kill: str) -> tuple[int, dict[str, list[list[int]]]]:
    process = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).parent / "killed.py"),
            str(home),
            str(generation),
            *kill,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        timeout=300,
        check=False,
        text=True,
    )
    told = next(line for line in process.stdout.splitlines() if line.startswith("{"))
    return process.returncode, json.loads(told)


def test_killed_inside_a_statement(tmp_path: Path) -> None:
    allowed: dict[str, set[int]] = {name: set() for name in TABLES}
    moments = [(model, pattern, seconds) for model, pattern, times in INSIDE for seconds in times[:KILLS]]
    for generation, (model, pattern, seconds) in enumerate(moments, start=1):
        code, held = build(tmp_path, generation, model, pattern, seconds)
        assert code == -signal.SIGKILL, (generation, code)
        if generation > 1:
            check(held, allowed)
        for name in allowed:
            before = held[name][0][0] if generation > 1 else 0
            allowed[name] = {before, generation} if name == model else {before}
    _, held = build(tmp_path, -1)
    check(held, allowed)


def check(held: dict[str, list[list[int]]], allowed: dict[str, set[int]]) -> None:
    for name, generations in allowed.items():
        ((generation, rows),) = held[name]
        assert generation in generations
        assert rows == KEYS + generation


class Stopped(Exception):
    """The process died here."""


def test_stopped_between_statements(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    dimensions(lab)
    generate(lab, 0)
    lab.dbt("run")
    assert {status for status, _ in lab.results.values()} == {"success"}, lab.results
    held, tried = {f"dim_{name}": 0 for name in FORMATS}, set[str]()
    run = dbt_session.Cursor.execute
    for generation, (hit_one, pattern, when, is_new) in enumerate(BETWEEN, start=1):
        generate(lab, generation)
        # at the first point of each, the others are built beside it
        selected = [hit_one] if hit_one in tried else list(held)
        tried.add(hit_one)

        def execute(cursor: Any, sql: str, *parameters: Any) -> None:
            hit = re.search(pattern, sql) is not None  # noqa: B023
            if hit and when == "before":  # noqa: B023
                raise Stopped
            run(cursor, sql, *parameters)
            if hit:
                raise Stopped

        with monkeypatch.context() as patch:
            patch.setattr(dbt_session.Cursor, "execute", execute)
            results = lab.dbt("run", "--select", *selected)
        assert results[hit_one][0] == "error"
        assert [status for status, _ in results.values()].count("success") == len(selected) - 1
        for name, before in held.items():
            held[name] = generation if name in selected and (name != hit_one or is_new) else before
            lab.spark.catalog.refreshTable(f"{lab.schema}.{name}")
            rows = lab.spark.sql(f"select name, count(*) from {lab.schema}.{name} group by name")
            now_there = held[name]
            assert [tuple(row) for row in rows.collect()] == [(f"generation {now_there}", KEYS + now_there)]


def test_a_heal_stopped_anywhere(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    healed_dimension(lab)
    luck, statements, stopped = random.Random(KILLS), 0, 0
    modes: set[str] = set()
    run = dbt_session.Cursor.execute
    for step in range(KILLS + 1):
        arrive(lab, step)
        stop_at, when = luck.randrange(1, statements + 1) if step else 0, luck.random() < 0.5
        counted = [0]

        def execute(cursor: Any, sql: str, *parameters: Any) -> None:
            counted[0] += 1  # noqa: B023
            if counted[0] == stop_at and when:  # noqa: B023
                raise Stopped
            run(cursor, sql, *parameters)
            if counted[0] == stop_at:  # noqa: B023
                raise Stopped

        with monkeypatch.context() as patch, suppress(Exception):  # dbt's own look-ups may stop
            patch.setattr(dbt_session.Cursor, "execute", execute)
            stopped += lab.dbt("run", "--select", "dim_healed")["dim_healed"][0] == "error"
        results = lab.dbt("run")
        assert {status for status, _ in results.values()} == {"success"}, (step, results)
        assert lab.rows("dim_healed") == lab.rows("anew"), (step, stop_at, when)
        statements = max(statements, counted[0])
        modes |= check_log(lab)
    assert stopped and "heal" in modes
