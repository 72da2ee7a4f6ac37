"""Kill the process while it builds and publishes: the target is the old or the new table, never between.

Each process first tells what the one before left, then builds the next generation and dies at its moment.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from killed import KEYS

CANDIDATE = r"create or replace table \S+dim_delta__candidate"
PUBLISH = r"create or replace table \S+dim_delta\s"
SWAP = r"alter table \S+dim_parquet set location"
# (statement, when, seconds into it, generation step of dim_delta, of dim_parquet: 0 old, 1 new, None either)
MOMENTS = [
    (CANDIDATE, "during", "0.2", 0, 0),
    (CANDIDATE, "after", "0", 0, 0),
    (PUBLISH, "before", "0", 0, 0),
    (PUBLISH, "during", "0.05", None, 0),
    (PUBLISH, "during", "0.4", None, 0),
    (PUBLISH, "during", "0.9", None, 0),
    (PUBLISH, "after", "0", 1, 0),
    (r"dim_parquet__candidate\S*\s+using parquet", "during", "0.3", 1, 0),
    (SWAP, "before", "0", 1, 0),
    (SWAP, "during", "0.02", 1, None),
    (SWAP, "after", "0", 1, 1),
]


def build(home: Path, generation: int, *kill: str) -> tuple[int, dict[str, list[list[int]]]]:
    process = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "killed.py"), str(home), str(generation), *kill],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        timeout=300,
        check=False,
        text=True,
    )
    told = next(line for line in process.stdout.splitlines() if line.startswith("{"))
    return process.returncode, json.loads(told)


def test_old_or_new_never_between(tmp_path: Path) -> None:
    code, _ = build(tmp_path, 0)
    assert code == 0
    allowed = {"dim_delta": {0}, "dim_parquet": {0}}
    for generation, (pattern, when, seconds, delta, parquet) in enumerate(MOMENTS, start=1):
        code, held = build(tmp_path, generation, pattern, when, seconds)
        assert code == -signal.SIGKILL, (generation, when, code)
        check(held, allowed)
        for name, step in (("dim_delta", delta), ("dim_parquet", parquet)):
            before = {held[name][0][0]}
            allowed[name] = {0: before, 1: {generation}, None: before | {generation}}[step]
    _, held = build(tmp_path, len(MOMENTS) + 1)
    check(held, allowed)
    _, held = build(tmp_path, -1)
    check(held, {name: {len(MOMENTS) + 1} for name in allowed})


def check(held: dict[str, list[list[int]]], allowed: dict[str, set[int]]) -> None:
    for name, generations in allowed.items():
        ((generation, rows),) = held[name]
        assert generation in generations
        assert rows == KEYS + generation
