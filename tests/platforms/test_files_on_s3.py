"""Dimensions on S3, as files and in Delta; the JVM with the jars for it is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from s3_server import S3Server, running

HERE = Path(__file__).parent


@pytest.fixture(scope="module", params=[0, 10], ids=["calm", "busy"])
def s3(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    """Also one that answers each tenth request by 503: clients ask again."""
    with running(request.param) as server:
        yield server


@pytest.fixture(scope="module")
def seen(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, HERE / "files_on_s3.py", tmp_path_factory.mktemp("s3"), str(s3.port), s3.bucket],
        env={**os.environ, **s3.environment},
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        timeout=900,
    )
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_a_dimension_in_files(seen: dict[str, Any], s3: S3Server, file_format: str) -> None:
    assert seen[f"{file_format} commits"] == [1, 2]
    assert seen[file_format] == [[1, "B"], [2, ""]]
    assert seen[f"{file_format}_history"] == [[1, "A"], [2, None]]
    files = s3.keys(f"lake ü#%/{file_format}/_data/rows/")
    assert [name for name in files if "part-" in name and name.endswith(f".{file_format}")]


def test_a_delta_table(seen: dict[str, Any]) -> None:
    assert seen["delta"] == [[1, "B"]]


def test_writers_at_once(seen: dict[str, Any], s3: S3Server) -> None:
    """A commit file is created once: no change is lost, and some merge has planned again."""
    assert len(seen["attempts"]) == 9 and max(seen["attempts"]) > 1
    assert seen["raced"] == [[0, "v2"], [1, "v2"], [2, "v2"]]
    assert seen["raced history"] == [[writer, f"v{number}"] for writer in range(3) for number in range(2)]
    assert len(s3.keys("raced/_commits/")) == 9
