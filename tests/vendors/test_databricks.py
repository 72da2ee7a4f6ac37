"""dbt-databricks: rendered by its own macros, and the SQL run on the Spark of the tests; see on_databricks.py.

It was never run on Databricks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

import pytest
from people import PEOPLE, STATES, VISITS
from sessions import ROOT

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What on_databricks.py has seen."""
    home = tmp_path_factory.mktemp("databricks")
    subprocess.run([str(ROOT / "tests" / "environments" / "setup.sh"), "databricks"], check=True)
    python = str(ROOT / ".environments" / "databricks" / "bin" / "python")
    path = os.pathsep.join([str(ROOT / "tests" / "shared"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": path}
    command = [python, str(ROOT / "tests" / "vendors" / "on_databricks.py"), str(home)]
    run = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    found: dict[str, Any] = json.loads((home / "answer.json").read_text())
    return found


def test_all_runs_succeed_but_merges(answer: dict[str, Any]) -> None:
    """A merge is refused before it begins, and says what to do instead."""
    failed = {name: "\n".join(run["lines"])[-3000:] for name, run in answer["runs"].items() if not run["succeeded"]}
    wanted = {"refused", "merge 1", "merge 2"}
    assert set(failed) == wanted, {name: text for name, text in failed.items() if name not in wanted}
    message = answer["runs"]["merge 1"]["results"]["dim_merged"][1]
    assert "the adapter databricks without it" in message
    assert "append the batches to a log and heal a healing_table from it" in message


def test_rows(answer: dict[str, Any]) -> None:
    found = {name: [[cell[:10] for cell in row] for row in rows] for name, rows in answer["rows"].items()}
    assert found == {"dim_person": PEOPLE, "person_states": STATES, "correct_visits": VISITS}


def test_names_have_a_catalog(answer: dict[str, Any]) -> None:
    """Each statement of a build that names the dimension, or a table beside it, names the catalog too."""
    sent = [re.sub(r"/[*].*?[*]/", "", sql, flags=re.DOTALL).strip() for sql in answer["statements"]]
    words = ("create", "merge", "insert", "drop", "alter")
    written = [sql for sql in sent if "dim_person" in sql and sql.lower().startswith(words)]
    assert len(written) > 5
    assert [sql[:200] for sql in written if "`spark_catalog`.`people`." not in sql] == []
