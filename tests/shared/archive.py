"""The archive that installs the package without git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from sessions import ROOT


def archive_of(folder: Path) -> Path:
    """What `git archive` makes of the working tree, as code hosts do of a commit: all files in one folder."""
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")
    git = ["git", "-C", str(ROOT), "-c", "user.name=test", "-c", "user.email=test@localhost"]
    # with an index of its own: two tests that do this at once would wait for one lock, and git does not wait
    index = subprocess.run(
        [*git, "rev-parse", "--git-path", "index"], check=True, text=True, capture_output=True
    ).stdout
    shutil.copy(ROOT / index.strip(), folder / "index")
    own = {**os.environ, "GIT_INDEX_FILE": str(folder / "index")}
    made = subprocess.run([*git, "stash", "create"], check=True, text=True, capture_output=True, env=own)
    changed = made.stdout.strip()
    file = folder / "healing-tables.tar.gz"
    options = ["--worktree-attributes", "--prefix=healing-tables-0/", "--output", str(file), changed or "HEAD"]
    subprocess.run([*git, "archive", *options], check=True)
    return file
