"""The cases that the rules are judged by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

CASES = Path(__file__).parent / "cases"


def load(name: str) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], json.loads((CASES / f"{name}.json").read_text()))
