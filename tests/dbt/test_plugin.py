"""The plugin: Python models run on the session, errors show the user's lines, everything else stays as it was."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.spark.impl import SparkAdapter as StockAdapter
from dbt.adapters.spark.python_submissions import AllPurposeClusterPythonJobHelper
from lab import Lab

import dbt_healing_tables
from dbt_healing_tables.adapter import with_session_models
from dbt_healing_tables.progress import progress_of
from dbt_healing_tables.session import SessionJob

# every worker gets the function by value, and each model has a namespace of its own
NUMBERS = """
from __future__ import annotations

from dataclasses import dataclass

import pyspark.sql.functions as f


@dataclass
class Step:
    by: int


@f.udf(returnType="int", useArrow=False)
def stepped(n):
    return n + Step(by={step}).by


def model(dbt, session):
    dbt.config(materialized="table", file_format="delta")
    return dbt.ref("two").select(stepped("n").alias("n"))
"""
# two blank lines at the beginning, which dbt strips: line 8 raises
FAILING = """

def model(dbt, session):
    dbt.config(materialized="table")
    return checked(dbt.ref("two"))

def checked(frame):
    raise KeyError("no such rate")  # here
"""
NO_COLUMN = """def model(dbt, session):
    return dbt.ref("two").select("nowhere")
"""


@pytest.fixture(scope="module")
def built(lab: Lab) -> Lab:
    lab.model("two", "select cast(2 as int) as n")
    lab.model("three", "select n + 1 as n from {{ ref('two') }}", materialized="table")
    lab.write("models/four.py", NUMBERS.format(step=2))
    lab.write("models/five.py", NUMBERS.format(step=3))
    lab.write("models/failing.py", FAILING)
    lab.write("models/no_column.py", NO_COLUMN)
    lab.model("no_number", "select java_method('java.lang.Integer', 'parseInt', 'x') as n", materialized="table")
    lab.model("no_format", "select 1 as n", materialized="table", file_format="nothing")
    lab.write(
        "tests/no_rows.sql", "select id from range(2) where java_method('java.lang.Integer', 'parseInt', 'x') = id"
    )
    lab.dbt("run")
    return lab


@pytest.mark.parametrize("name, n", [("three", 3), ("four", 4), ("five", 5)])
def test_models_of_both_languages_run_on_the_session(built: Lab, name: str, n: int) -> None:
    assert built.results[name][0] == "success", built.results[name]
    assert built.rows(name) == [(n,)]


@pytest.mark.parametrize(
    "name, words",
    [("no_number", 'NumberFormatException: For input string: "x"'), ("no_format", "Failed to find the data source")],
)
def test_an_error_of_the_jvm_has_no_stack(built: Lab, name: str, words: str) -> None:
    status, message = built.results[name]
    assert status == "error"
    assert words in message and "Py4J" not in message
    assert len(message.splitlines()) < 10, message


def test_an_error_of_a_fetch_has_no_stack(built: Lab) -> None:
    built.dbt("test", "--select", "no_rows")
    status, message = built.results["no_rows"]
    assert status == "error"
    assert 'NumberFormatException: For input string: "x"' in message
    assert len(message.splitlines()) < 10, message
    assert "at java.base/" in (built.home / "logs" / "dbt.log").read_text()


def test_a_traceback_shows_the_users_lines_and_no_others(built: Lab) -> None:
    status, message = built.results["failing"]
    assert status == "error"
    # newer Pythons underline the part of the line that failed
    assert [line for line in message.splitlines() if line.strip(" ^~")] == [
        "Runtime Error in model failing (models/failing.py)",
        "  Traceback (most recent call last):",
        '    File "models/failing.py", line 5, in model',
        '      return checked(dbt.ref("two"))',
        '    File "models/failing.py", line 8, in checked',
        '      raise KeyError("no such rate")  # here',
        "  KeyError: 'no such rate'",
    ]


def test_an_error_of_spark_shows_the_line_that_asked(built: Lab) -> None:
    message = built.results["no_column"][1]
    assert 'File "models/no_column.py", line 2, in model' in message
    assert "UNRESOLVED_COLUMN" in message
    assert "site-packages" not in message


def adapter(method: str, stock: type[Any] = StockAdapter) -> Any:
    """An adapter without a connection: its class and the profile are enough here."""
    made = object.__new__(with_session_models(stock))
    made.config = SimpleNamespace(
        credentials=SimpleNamespace(method=method),
        project_root=".",
        packages_install_path="dbt_packages",
    )
    return made


def test_only_the_method_session_changes() -> None:
    session, thrift = adapter("session"), adapter("thrift")
    assert session.default_python_submission_method == "session"
    assert session.python_submission_helpers["session"].func is SessionJob
    assert session.python_submission_helpers["all_purpose_cluster"] is (AllPurposeClusterPythonJobHelper)
    assert thrift.default_python_submission_method == "all_purpose_cluster"
    assert "session" not in thrift.python_submission_helpers


def test_the_adapter_is_extended_once_and_keeps_its_name() -> None:
    once = with_session_models(StockAdapter)
    assert with_session_models(once) is once
    assert (once.__name__, once.type()) == ("SparkAdapter", "spark")
    assert set(once._available_) - set(StockAdapter._available_) == {
        "healing_tables_convert",
        "healing_tables_obstacle",
        "healing_tables_try",
    }


def test_it_steps_aside_for_a_session_helper_of_dbt_spark() -> None:
    class Newer(StockAdapter):
        @property
        def python_submission_helpers(self) -> dict[str, Any]:
            return {"session": object}

    newer = adapter("session", Newer)
    assert newer.python_submission_helpers == {"session": object}
    assert newer.healing_tables_obstacle(None) is None


@pytest.mark.parametrize(
    "method, submission, got",
    [
        ("session", None, None),
        ("thrift", None, "method thrift"),
        ("session", "job_cluster", "submission_method job_cluster"),
    ],
)
def test_the_adapter_says_why_a_merge_cannot_run(method: str, submission: str | None, got: str | None) -> None:
    obstacle = adapter(method).healing_tables_obstacle(submission)
    assert (obstacle and obstacle["got"]) == got


def test_an_adapter_of_another_kind_stays_and_nothing_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (plugin,) = dbt_healing_tables.plugins
    monkeypatch.delitem(sys.modules, "dbt.adapters.spark")
    plugin("a_project_on_postgres")
    broken = SimpleNamespace(Plugin=SimpleNamespace(adapter=object()))
    monkeypatch.setitem(sys.modules, "dbt.adapters.spark", broken)
    plugin("a_project_with_an_odd_dbt_spark")


def test_importing_the_plugin_costs_nothing() -> None:
    """Every dbt project in the environment imports it."""
    code = (
        "import sys, dbt.plugins.manager as _; before = set(sys.modules); import dbt_healing_tables; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['dbt_healing_tables']"


def test_progress_of_a_thread_goes_to_dbt_under_its_own_model(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    monkeypatch.setattr("dbt_healing_tables.progress.fire_event", lambda event, level: told.append(event.msg))
    logger = logging.getLogger("healing_tables")
    at_once = threading.Barrier(2)

    def run(label: str) -> None:
        with progress_of(label):
            at_once.wait()
            logger.info("%s rows", label)
            logger.debug("not for users")
            at_once.wait()

    threads = [threading.Thread(target=run, args=[label]) for label in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logger.warning("outside of dbt")
    assert sorted(told) == ["a a rows", "b b rows"]
    assert [record.getMessage() for record in caplog.records] == ["outside of dbt"]
