"""A sharded build that is killed inside a part is continued by the next process, with the parts that were committed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from killed_shards import KEYS

ROWS = r"(create table|insert into) \S+_rows_parts"
CHANGES = r"(create table|insert into) \S+_changes_parts"


def build(home: Path, news: int, *kill: str) -> dict[str, Any] | None:
    """What the process tells; none if it was killed."""
    process = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "killed_shards.py"), str(home), str(news), *kill],
        stdout=subprocess.PIPE,
        start_new_session=True,
        timeout=300,
        check=False,
        text=True,
    )
    assert process.returncode == (-signal.SIGKILL if kill else 0)
    told = [line for line in process.stdout.splitlines() if line.startswith("{")]
    return json.loads(told[-1]) if told else None


def test_killed_inside_parts(tmp_path: Path) -> None:
    """The first build dies in its second part; the one that continues dies, too; a rebuild with news dies once."""
    assert build(tmp_path, 0, ROWS, "2", "0.2") is None
    # the first statement is the copy of the part that is there
    assert build(tmp_path, 0, ROWS, "3", "0.05") is None
    told = build(tmp_path, 0)
    assert told is not None
    assert told["is_right"] and told["row"]["rows_added"] == told["row"]["keys_affected"] == KEYS
    # how far a statement came in that time is not certain: it may have been committed
    assert told["parts"] in ([3, 4], [4]), told
    assert sum("continues with the" in text for text in told["others"]) == 1
    check_nothing_left(told)

    assert build(tmp_path, 100, CHANGES, "4", "0.05") is None
    told = build(tmp_path, 0)
    assert told is not None
    assert told["is_right"] and told["row"]["publish"] == "merge" and told["row"]["keys_affected"] == 100
    assert told["parts"] in ([4], []), told
    check_nothing_left(told)

    assert build(tmp_path, 100, CHANGES, "3", "0.05") is None
    told = build(tmp_path, 200)
    assert told is not None
    assert told["is_right"] and told["parts"] == [1, 2, 3, 4]
    assert any("the sources changed since" in text for text in told["others"])
    check_nothing_left(told)


def check_nothing_left(told: dict[str, Any]) -> None:
    assert not [name for name in told["beside"] if "__candidate_" in name], told["beside"]
