"""The same with a JVM for each process, killed with it (killed_merge.py).

A process takes half a minute.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

KILLS = 2


@contextmanager
def merging(home: Path, *arguments: object) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """A process that is ready to merge; killed at the end, JVM and all."""
    script = Path(__file__).parent / "killed_merge.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(home), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if line == "ready\n":
                break
        yield process, process.stdout
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_killed_jvm(tmp_path: Path) -> None:
    luck, number = random.Random(1), 1
    with merging(tmp_path, 0, 0) as (_, lines):
        started = time.monotonic()
        assert lines.readline() == "0\n"
        seconds = time.monotonic() - started  # a first merge, cold, as those that are killed
    for _ in range(KILLS):
        with merging(tmp_path, number, number + 5) as (process, lines):
            time.sleep(luck.uniform(0.1, 1.1) * seconds)
            assert process.poll() is None
            os.killpg(process.pid, signal.SIGKILL)
            done = len(lines.read().splitlines())
        print(f"\nkilled in the merge of batch {number + done}")
        number += done
    with merging(tmp_path, number, number, "compare") as (process, lines):
        assert lines.read().splitlines() == [str(number), "equal"]
        assert process.wait() == 0
