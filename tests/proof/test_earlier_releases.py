"""Tables that an earlier release has built: this checkout goes on with them, then the earlier one again, and so on.

The dimensions are those of earlier_release.py, with the tables beside them: change log, audit, history, key map, log.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from earlier_release import BUILDS, MERGED
from sessions import ROOT

pytestmark = pytest.mark.slow
# the last commit before the merges as SQL, the audit of builds, erase and undo
RELEASES = {"0.1.0": "de5a5ee", "before merges as SQL": "c62eb84"}
# Columns that two runs have not in common
OWN = {"last_updated", "sk", "history_id"}


def code_of(commit: str, folder: Path) -> Path:
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", commit], capture_output=True, check=False)
    if archive.returncode:
        pytest.skip("a checkout without the history of the repository")
    folder.mkdir()
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    return folder


def run(code: Path, home: Path, *steps: str) -> dict[str, dict[str, Any]]:
    """What each step has written; all of it has succeeded."""
    paths = [code / "src", ROOT / "tests" / "shared"]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("earlier_release.py"), code, home, *steps],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    found = {step: json.loads((home / f"{step}.json").read_text()) for step in steps}
    for step, written in found.items():
        failed = {name: message for name, (status, message) in written["results"].items() if status != "success"}
        assert written["results"] and not failed, (step, failed)
    return {step: written["tables"] for step, written in found.items()}


def rows(table: list[dict[str, Any]], *own: str) -> list[str]:
    left_out = {*OWN, *own}
    return sorted(json.dumps({name: row[name] for name in sorted(row) if name not in left_out}) for row in table)


@pytest.mark.parametrize("release", RELEASES)
def test_back_and_forth(tmp_path: Path, release: str) -> None:
    earlier, home = code_of(RELEASES[release], tmp_path / "earlier"), tmp_path / "home"
    home.mkdir()
    old = run(earlier, home, "0", "1")["1"]
    new = run(ROOT, home, "again", "2")
    for name in [*BUILDS, *MERGED, "merged_four_history"]:
        assert rows(new["again"][name]) == rows(old[name]), name  # nothing has changed
    back = run(earlier, home, "again", "3")
    for name in [*BUILDS, *MERGED, "merged_four_history"]:
        assert rows(back["again"][name]) == rows(new["2"][name]), name
    last = run(ROOT, home, "again", "4", "read", "twins")
    found = last["twins"]
    for name in [*BUILDS, *MERGED]:
        assert rows(found[name]) == rows(found[f"{name}_twin"]), name
    assert rows(found["merged_four_history"]) == rows(found["merged_four_twin_history"])
    assert len(found["merged_four_history"]) > len(old["merged_four_history"]) > 0
    for name in (*BUILDS, "merged"):  # facts have stored these numbers
        numbers = {(row["id"], row["valid_from"]): row["sk"] for row in found[name]}
        assert len(set(numbers.values())) == len(found[name])
        kept = [numbers[row["id"], row["valid_from"]] == row["sk"] for row in old[name]]
        assert kept and all(kept), name
