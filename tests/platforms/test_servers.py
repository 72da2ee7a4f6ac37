"""dbt on servers of Spark: what works in dbt's own process works there, and gives the same rows.

What does not (a Python model over Thrift) says what to do instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from people import MERGED, check_merges, check_people
from pyspark.sql import SparkSession
from sessions import ROOT
from spark_servers import SERVERS, SparkServer, jars_of

PYTHON_MODEL = "example of a merge"


@dataclass(frozen=True)
class Answer:
    """What on_server.py has seen on a server."""

    server: str
    runs: dict[str, Any]
    rows: dict[str, list[list[str]]]

    def text(self, run: str) -> str:
        return "\n".join(self.runs[run]["lines"])


def profiles(server: SparkServer) -> str:
    outputs = {}
    for profile, schema in (("healing_tables", "warehouse"), ("people", "people")):
        output = {"type": "spark", "schema": schema, "threads": 2, **server.output}
        if server.settings:
            output["server_side_parameters"] = dict(server.settings)
        outputs[profile] = {"target": "dev", "outputs": {"dev": output}}
    return yaml.safe_dump(outputs)


@pytest.fixture(scope="module", params=list(SERVERS))
def answer(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Answer:
    home = tmp_path_factory.mktemp(request.param)
    with SERVERS[request.param](home, jars_of(spark)) as server:
        (home / "profiles.yml").write_text(profiles(server))
        command = [sys.executable, str(ROOT / "tests" / "platforms" / "on_server.py"), str(home)]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:] + server.log.read_text()[-3000:]
    found = json.loads((home / "answer.json").read_text())
    return Answer(request.param, found["runs"], found["rows"])


def test_all_runs_succeed_that_should(answer: Answer) -> None:
    refused = {"refused", "tied"} | ({PYTHON_MODEL} if answer.server == "thrift" else set())
    failed = {name: answer.text(name)[-3000:] for name, run in answer.runs.items() if not run["succeeded"]}
    assert set(failed) == refused, {name: text for name, text in failed.items() if name not in refused}


def test_rows(answer: Answer) -> None:
    check_people(answer.rows, **MERGED)
    check_merges(answer.rows)


def test_batches_are_healed(answer: Answer) -> None:
    assert "rebuild from 1 source, nothing is stored yet" in answer.text("batch 1")
    for batch, keys in ((2, 2), (3, 1)):
        assert f", {keys} changed key" in answer.text(f"batch {batch}"), answer.text(f"batch {batch}")[-2000:]
    assert "unchanged, nothing to publish" in answer.text("no news")
    assert "unchanged, nothing to publish" in answer.text("examples again")


def test_operations_say_what_they_say_elsewhere(answer: Answer) -> None:
    assert "Anne" in answer.text("explain")
    assert "heal" in answer.text("history")
    assert "2 facts changed in one commit" in answer.text("rekey_facts"), answer.text("rekey_facts")[-2000:]


def test_a_refusal_is_a_few_lines(answer: Answer) -> None:
    """It names the check, the table and the remedy, without the Java trace of the server."""
    status, message = answer.runs["refused"]["results"]["dim_refused"]
    assert status == "error"
    assert "no_overlaps" in message and "the target is unchanged" in message, message
    assert "\tat " not in message and len(message.splitlines()) < 25, message


def test_a_mistake_in_the_rows_is_a_few_lines(answer: Answer) -> None:
    """Spark raises it while it runs the query: the stack of Java is in dbt's log file."""
    message = answer.runs["tied"]["results"]["dim_tied"][1]
    assert "unresolved tie" in message and "remedy: give the source tie_break_by" in message, message
    assert "\tat " not in message and len(message.splitlines()) < 12, message


def test_a_python_model_that_cannot_run_says_what_to_do(answer: Answer) -> None:
    if answer.server != "thrift":
        return
    message = answer.runs[PYTHON_MODEL]["results"]["dim_player"][1]
    for part in ("method thrift", "or write it as a SQL model"):
        assert part in message, message
