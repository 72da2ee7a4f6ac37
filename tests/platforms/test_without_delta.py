"""A session without Delta Lake, or with a part of it only: one error, with the settings to add.

Hive tables need none of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("parts", [[], ["jar"], ["jar", "extension"], ["jar", "catalog"]], ids="-".join)
def test_a_part_is_missing(tmp_path: Path, parts: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "without_delta.py", tmp_path, *parts],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        timeout=300,
    )
    errors = [line for line in done.stdout.splitlines() if "Error" in line]
    assert len(errors) == 2
    for error in errors:
        assert error.startswith("TargetError: ")
        for setting in ("spark.jars.packages", "spark.sql.extensions", "spark_catalog"):
            assert setting in error
        assert "CONVERT TO DELTA" not in error
    if "catalog" not in parts:
        assert "merged: ['a', 'b']" in done.stdout
