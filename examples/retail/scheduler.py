"""A running Airflow: the scheduler, the processor of DAG files and the server of the API, on loopback; its REST API."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from airflow_home import AIRFLOW, EXAMPLE
from services import free_port

FINISHED = ("success", "failed")


class Airflow:
    """Its REST API. Args: url: of the server; password: of the user admin."""

    def __init__(self, url: str, password: str) -> None:
        self.url = url
        self.password = password
        self.token = ""

    def sign_in(self) -> None:
        self.token = self.ask("/auth/token", {"username": "admin", "password": self.password})["access_token"]

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """GET, or with a body POST. Raises: OSError (urllib.error.URLError)."""
        request = urllib.request.Request(self.url + path, headers={"Accept": "application/json"})
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def trigger(self, dag: str, logical_date: str) -> str:
        """The id of the new run."""
        return str(self.ask(f"/api/v2/dags/{dag}/dagRuns", {"logical_date": logical_date})["dag_run_id"])

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """Of a DAG, the oldest first."""
        return list(self.ask(f"/api/v2/dags/{dag}/dagRuns?order_by=id&limit=100")["dag_runs"])

    def tasks(self, run: Mapping[str, Any]) -> list[str]:
        """Of a run, in the order in which they started."""
        path = f"/api/v2/dags/{run['dag_id']}/dagRuns/{run['dag_run_id']}/taskInstances?order_by=start_date"
        return [task["task_id"] for task in self.ask(path)["task_instances"]]

    def log(self, dag: str, run: str, task: str) -> list[str]:
        """What a task of a run has printed in its first attempt."""
        found = self.ask(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/1?full_content=true")
        return [line["event"] if isinstance(line, dict) else str(line) for line in found["content"]]

    def wait_for_run(self, dag: str, number: int, seconds: float = 600) -> dict[str, Any]:
        """The run of that number, from 1, when it has ended. Raises: TimeoutError."""
        for _ in range(int(seconds)):
            runs = self.runs(dag)
            if len(runs) >= number and runs[number - 1]["state"] in FINISHED:
                return runs[number - 1]
            time.sleep(1)
        raise TimeoutError(
            f"{dag}: wanted run {number} to end within {seconds:.0f} s; got {[r['state'] for r in runs]}"
        )


@contextmanager
def running_airflow(environment: Mapping[str, str]) -> Iterator[Airflow]:
    """Raises: RuntimeError with the log of a process that does not start."""
    home = Path(environment["AIRFLOW_HOME"])
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    given = {**environment, "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/"}
    with ExitStack() as stack:

        def start(*command: str) -> subprocess.Popen[bytes]:
            return stack.enter_context(process(command, given, home))

        # a task that starts before the server of the API fails
        server = start("api-server", "--host", "127.0.0.1", "--port", port, "--workers", "1")
        airflow = wait_for_airflow(url, home, server)
        # it would serve its logs on all addresses; the server of the API reads the files
        start("scheduler", "--skip-serve-logs")
        start("dag-processor")
        wait_for_dags(airflow, home)
        yield airflow


@contextmanager
def process(command: Sequence[str], environment: Mapping[str, str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (home / f"{command[0]}.log").open("w") as log:
        started = subprocess.Popen([str(AIRFLOW), *command], env=dict(environment), stdout=log, stderr=log)
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(timeout=30)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def wait_for_airflow(url: str, home: Path, server: subprocess.Popen[bytes]) -> Airflow:
    """Raises: RuntimeError."""
    passwords = home / "simple_auth_manager_passwords.json.generated"
    for _ in range(240):
        if server.poll() is not None:
            break
        try:
            airflow = Airflow(url, json.loads(passwords.read_text())["admin"])
            airflow.sign_in()
        except (OSError, ValueError):  # not up yet
            time.sleep(0.5)
        else:
            return airflow
    raise RuntimeError(f"Airflow: wanted its server at {url}; it says:\n{logs_of(home)}")


def wait_for_dags(airflow: Airflow, home: Path) -> None:
    """Raises: RuntimeError."""
    wanted = sorted(file.stem for file in (EXAMPLE / "dags").glob("retail_*.py") if file.stem != "retail_tasks")
    found: list[str] = []
    for _ in range(240):
        found = sorted(dag["dag_id"] for dag in airflow.ask("/api/v2/dags?tags=retail")["dags"])
        if found == wanted:
            return
        time.sleep(0.5)
    raise RuntimeError(f"Airflow: wanted the DAGs {wanted}; got {found}; it says:\n{logs_of(home)}")


def logs_of(home: Path) -> str:
    """The ends of what the processes have said."""
    return "\n".join(f"{file.name}:\n{file.read_text()[-3000:]}" for file in sorted(home.glob("*.log")))
