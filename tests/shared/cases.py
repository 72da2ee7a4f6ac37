"""The cases that the rules are judged by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from merge_lists import types_of

from healing_tables import DimensionSpec

CASES = Path(__file__).parent / "cases"


def load(name: str) -> list[dict[str, Any]]:
    return cast(list[dict[str, Any]], json.loads((CASES / f"{name}.json").read_text()))


def spec_of(case: dict[str, Any]) -> DimensionSpec:
    """Of a case of merges."""
    params = case["params"]
    return DimensionSpec(
        key_columns=params["key"],
        attributes=types_of(case),
        valid_to_current=params.get("end", "9999-12-31 23:59:59"),
    )


def merge_cases(*quick: str) -> list[Any]:
    """The cases of merges as parameters: two of them, and those named, run in `make test`."""
    return [
        pytest.param(case, id=case["id"], marks=[pytest.mark.slow] * (case["id"] not in {"M26", "M35", *quick}))
        for case in load("merge")
    ]
