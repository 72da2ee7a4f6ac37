"""Adapters of vendors: rendered by their own macros, and the SQL run on the Spark of the tests; see on_*.py.

None of them was run at its vendor's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from people import MERGED, check_merges, check_people
from sessions import ROOT

VENDORS = {"databricks": "databricks", "glue": "glue", "fabric": "fabricspark"}  # the type of the adapter


@dataclass(frozen=True)
class Answer:
    """What on_<vendor>.py has seen."""

    vendor: str
    runs: dict[str, Any]
    rows: dict[str, list[list[str]]]
    statements: list[str]
    merged_in_python: list[list[str]] | None = None


def answer_of(vendor: str, home: Path) -> Answer:
    subprocess.run([str(ROOT / "tests" / "environments" / "setup.sh"), vendor], check=True)
    python = str(ROOT / ".environments" / vendor / "bin" / "python")
    path = os.pathsep.join([str(ROOT / "tests" / "shared"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}
    command = [python, str(ROOT / "tests" / "platforms" / f"on_{vendor}.py"), str(home)]
    run = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    return Answer(vendor, **json.loads((home / "answer.json").read_text()))


@pytest.fixture(scope="module", params=VENDORS)
def answer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    return answer_of(request.param, tmp_path_factory.mktemp(request.param))


def test_all_runs_succeed_that_should(answer: Answer) -> None:
    failed = {name: "\n".join(run["lines"])[-3000:] for name, run in answer.runs.items() if not run["succeeded"]}
    assert set(failed) == {"refused"}, failed


def test_rows(answer: Answer) -> None:
    check_people(answer.rows, **MERGED)
    check_merges(answer.rows)


def test_the_library_in_a_python_model(answer: Answer) -> None:
    """Of the page on Databricks."""
    if answer.vendor == "databricks":
        assert answer.merged_in_python == [["1", "a@b", "gold", "2024-01-01 00:00:00", "True"]]


def test_no_backslash_is_sent(answer: Answer) -> None:
    """dbt-glue puts the SQL into a Python literal, which would take one away."""
    assert [sql[:300] for sql in answer.statements if "\\" in sql and "SqlWrapper2:" not in sql] == []


def test_names_have_a_catalog(answer: Answer) -> None:
    """Each statement of a build that names the dimension, or a table beside it, names the catalog too."""
    if answer.vendor != "databricks":
        return
    sent = [re.sub(r"/[*].*?[*]/", "", sql, flags=re.DOTALL).strip() for sql in answer.statements]
    words = ("create", "merge", "insert", "drop", "alter")
    written = [sql for sql in sent if "dim_person" in sql and sql.lower().startswith(words)]
    assert len(written) > 5
    assert [sql[:200] for sql in written if "`spark_catalog`.`people`." not in sql] == []
