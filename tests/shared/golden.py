"""Files with the expected text of generated SQL, which are reviewed like code."""

from __future__ import annotations

import os
from pathlib import Path


def check(file: Path, text: str) -> None:
    """Compare a text with a file; with UPDATE_GOLDEN in the environment (`make golden`), write the file first."""
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), file.name
