"""The example in examples/retail with its services and Airflow: a night by the scheduler, and one by `dags test`."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from airflow_home import EXAMPLE, prepare_airflow, run_airflow
from compare import BRIAN, in_postgres
from generate_days import LOADS
from scheduler import logs_of, running_airflow
from services import find_postgres, services
from spark_settings import write_settings

CONSUMERS = ["retail_rebuild", "retail_to_postgres", "retail_to_s3"]
RUNS = "select dag_id, run_type, state from dag_run order by 1"


@dataclass(frozen=True)
class Retail:
    """``services`` and ``airflow``: the variables of their environments."""

    services: dict[str, str]
    airflow: dict[str, str]

    def run(self, script: str, *arguments: str) -> str:
        """What a script of the example prints, with the services in its environment."""
        environment = {**os.environ, **self.services, "SPARK_CONF_DIR": self.airflow["SPARK_CONF_DIR"]}
        command = [sys.executable, str(EXAMPLE / f"{script}.py"), *arguments]
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        return done.stdout

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query, of Airflow's database."""
        with closing(sqlite3.connect(Path(self.airflow["AIRFLOW_HOME"]) / "airflow.db")) as database:
            return database.execute(query).fetchall()

    def secrets(self) -> list[str]:
        return [self.services["PGPASSWORD"], self.services["AWS_SECRET_ACCESS_KEY"]]


@pytest.fixture(scope="module")
def retail() -> Iterator[Retail]:
    if find_postgres() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    subprocess.run([EXAMPLE / "airflow" / "setup.sh"], check=True, timeout=900)
    with services() as found:
        yield Retail(found, prepare_airflow(found, write_settings(Path(found["RETAIL_HOME"]))))


@pytest.fixture(scope="module")
def first_split(retail: Retail) -> str:
    """What the producer prints in the first night."""
    retail.run("stream", "--load", LOADS[0].isoformat())
    return run_airflow(retail.airflow, "dags", "test", "retail_split", LOADS[0].isoformat())


@pytest.fixture(scope="module")
def triggered(retail: Retail, first_split: str) -> list[dict[str, Any]]:
    """The runs that the assets of the first night trigger, when they have ended."""
    with running_airflow(retail.airflow) as airflow:
        runs = [airflow.wait_for_run(dag, 1) for dag in CONSUMERS]
        for run in runs:
            if run["state"] != "success":
                for task in airflow.tasks(run):
                    print("\n".join(airflow.log(run["dag_id"], run["dag_run_id"], task)[-60:]))
                print(logs_of(Path(retail.airflow["AIRFLOW_HOME"])))
    return runs


@pytest.fixture(scope="module")
def second_night(retail: Retail, triggered: list[dict[str, Any]]) -> dict[str, str]:
    """What `airflow dags test` prints, by DAG."""
    load = LOADS[1].isoformat()
    retail.run("stream", "--load", load)
    return {dag: run_airflow(retail.airflow, "dags", "test", dag, load) for dag in ["retail_split", *CONSUMERS]}


def test_the_producer_updates_both_assets_and_queues_the_consumers(retail: Retail, first_split: str) -> None:
    assert "buyer: 29 rows, valid from 1900-01-01 00:00" in first_split
    assert retail.ask(RUNS) == [("retail_split", "manual", "success")]
    events = "select a.uri, e.source_task_id from asset_event e join asset a on a.id = e.asset_id order by 1"
    batches = [f"s3://retail/batches/{side}.parquet" for side in ("buyer", "seller")]
    assert retail.ask(events) == [(batch, "split") for batch in batches]
    queued = "select q.target_dag_id, a.uri from asset_dag_run_queue q join asset a on a.id = q.asset_id order by 1, 2"
    assert retail.ask(queued) == [(dag, batch) for dag in CONSUMERS for batch in batches]


def test_the_scheduler_runs_each_consumer_once_for_both_assets(retail: Retail, triggered: list[dict[str, Any]]) -> None:
    assert [(run["run_type"], run["state"]) for run in triggered] == [("asset_triggered", "success")] * 3
    assert [row for row in retail.ask(RUNS) if row[1] == "asset_triggered"] == [
        (dag, "asset_triggered", "success") for dag in CONSUMERS
    ]
    assert retail.ask("select count(*) from asset_dag_run_queue") == [(0,)]


def test_each_dag_passes_airflow_dags_test(retail: Retail, second_night: dict[str, str]) -> None:
    manual = [row for row in retail.ask(RUNS) if row[1] == "manual"]
    wanted = sorted([*CONSUMERS, "retail_split", "retail_split"])
    assert manual == [(dag, "manual", "success") for dag in wanted]
    for dag in ("retail_to_postgres", "retail_to_s3"):
        assert "32 rows in the batch: 15 inserted, 12 closed" in second_night[dag]
    assert "Done. PASS=5 WARN=0 ERROR=0" in second_night["retail_rebuild"]


def test_postgres_s3_and_a_rebuild_have_the_same_rows(retail: Retail, second_night: dict[str, str]) -> None:
    printed = retail.run("compare")
    assert "dim_buyer: 32 keys; rows: 44 in PostgreSQL, 44 in S3, 44 in dbt; the same in all places" in printed
    for row in BRIAN:
        assert re.search(r"\s+".join(row) + "$", printed, re.MULTILINE), printed


def test_only_keys_of_the_first_load_begin_in_1900(
    retail: Retail, second_night: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in retail.services.items():
        monkeypatch.setenv(name, value)
    rows = in_postgres("buyer")
    with psycopg.connect() as connection:
        new = connection.execute('select user_id::text from retail."user" where changed_at > %s', [LOADS[0]]).fetchall()
        before = connection.execute(
            "select distinct buyer_id::text from retail.user_trx where traded_at <= %s", [LOADS[0]]
        ).fetchall()
    first: dict[str | None, str] = {}
    for key, *_, start in (row[:5] for row in rows):
        first[key] = min(first.get(key, "9999"), start or "")
    assert new
    begin_in_1900 = {key for key, start in first.items() if start == "1900-01-01 00:00:00.000000"}
    assert begin_in_1900 == {row[0] for row in before}
    assert set(first.values()) == {"1900-01-01 00:00:00.000000", "2022-10-18 12:00:00.000000"}


def test_no_log_has_a_password(retail: Retail, first_split: str, second_night: dict[str, str]) -> None:
    logs = [path.read_text(errors="replace") for path in Path(retail.airflow["AIRFLOW_HOME"]).rglob("*.log")]
    assert any("rows in the batch" in log for log in logs)
    for text in [*logs, first_split, *second_night.values()]:
        for secret in retail.secrets():
            assert secret not in text
