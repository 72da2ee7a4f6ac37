"""Servers that fail in the middle of a build: a token of Spark Connect that expires, executors of a cluster that die.

Afterwards there is the old or the new dimension, whole; an error, if the run had one, names its cause in a few lines;
and the next run succeeds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import yaml
from pyspark.sql import SparkSession
from sessions import install_package
from spark_servers import SparkServer, cluster, connect, jars_of

ROWS, MANY = 300_000, 3_000_000  # a build takes seconds; a task does
PROJECT = """
name: shop
version: 1.0.0
profile: shop
flags: {send_anonymous_usage_stats: false}
"""
MODELS = {
    "crm": """
{{ config(materialized='table', file_format='delta') }}
select id, {{ var('generation') }} as generation, sha2(cast(id as string), 512) as text,
    timestamp '2024-01-01 00:00:00Z' as changed_at
from range({{ var('rows') + var('generation') }})
""",
    "dim_customer": """
{{ config(materialized='healing_table', file_format='delta', unique_key='id') }}
{{ healing_tables.dimension(sources={'crm': {'relation': ref('crm'), 'changed_at': 'changed_at'}},
    attributes=['generation', 'text']) }}
""",
}
HELD = "select generation, count(*) as rows from {{ ref('dim_customer') }} group by generation"
EXPIRED = "the token has expired"


@dataclass
class Shop:
    """A project whose source has a row more in each generation, and the server that dbt uses."""

    home: Path
    server: SparkServer
    rows: int = ROWS

    def __post_init__(self) -> None:
        output = {"type": "spark", "schema": "shop", "threads": 1, **self.server.output}
        output["server_side_parameters"] = dict(self.server.settings)
        texts = {"dbt_project.yml": PROJECT, **{f"models/{name}.sql": sql for name, sql in MODELS.items()}}
        texts["profiles.yml"] = yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": output}}})
        for name, text in texts.items():
            (self.home / name).parent.mkdir(exist_ok=True)
            (self.home / name).write_text(text.lstrip())
        install_package(self.home)

    def start(self, generation: int, *args: str) -> subprocess.Popen[str]:
        variables = json.dumps({"generation": generation, "rows": self.rows})
        return subprocess.Popen(
            [Path(sys.executable).with_name("dbt"), *args, "--vars", variables, "--no-use-colors"],
            cwd=self.home,
            env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def dbt(self, generation: int, *args: str) -> str:
        """Runs dbt, which succeeds. Returns: what it prints."""
        process = self.start(generation, *args)
        printed, _ = process.communicate()
        assert process.returncode == 0, printed[-5000:] + self.server.log.read_text()[-3000:]
        return printed

    def build(self, generation: int) -> None:
        self.dbt(generation, "run", "--select", "crm", "dim_customer")

    def generation(self) -> int:
        """The one that the dimension holds, whole."""
        printed = self.dbt(0, "show", "--inline", HELD, "--output", "json", "--quiet")
        (found,) = json.loads(printed[printed.index("{") :])["show"]
        assert found["rows"] - found["generation"] in (ROWS, MANY)
        return int(found["generation"])


def check_error(printed: str, cause: str) -> None:
    """What dbt shows of the model that failed is short, and names the cause."""
    (message,) = printed.rsplit("in model dim_customer (", 1)[1:]
    assert cause in message and "\tat " not in message and len(message.splitlines()) < 25, printed[-5000:]


# --- A token ----------------------------------------------------------------------------------------


class Gate(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Passes the calls on to a server until so many statements have run; then the token is no longer good."""

    def __init__(self, server: str) -> None:
        self.channel = grpc.insecure_channel(server)
        self.statements = 0
        self.limit: float = 0

    def open(self, limit: float = float("inf")) -> None:
        self.statements, self.limit = 0, limit

    def service(self, details: Any) -> Any:
        def passed_on(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            self.statements += details.method.endswith("/ExecutePlan")
            sent = dict(context.invocation_metadata())
            if sent["authorization"] != "Bearer secret" or self.statements > self.limit:
                context.abort(grpc.StatusCode.UNAUTHENTICATED, EXPIRED)
            try:
                yield from self.channel.stream_stream(details.method)(requests)
            except grpc.RpcError as error:
                context.set_trailing_metadata(error.trailing_metadata())
                context.abort(error.code(), error.details())

        return grpc.stream_stream_rpc_method_handler(passed_on)


@contextmanager
def gate_before(address: str) -> Iterator[tuple[Gate, str]]:
    gate = Gate(address)
    server = grpc.server(ThreadPoolExecutor(16), handlers=[gate], options=[("grpc.max_receive_message_length", -1)])
    port = server.add_secure_port("localhost:0", grpc.local_server_credentials())
    server.start()
    yield gate, f"sc://localhost:{port}/;token=secret"
    server.stop(None)
    gate.channel.close()


def test_a_token_expires(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    with (
        connect(tmp_path / "server", jars_of(spark)) as server,
        gate_before(server.settings["spark.remote"].removeprefix("sc://")) as (gate, url),
    ):
        shop = Shop(tmp_path / "shop", SparkServer(server.log, server.output, {"spark.remote": url}))
        gate.open()
        shop.build(0)
        shop.dbt(1, "run", "--select", "crm")
        gate.open()
        shop.dbt(1, "run", "--select", "dim_customer")
        statements = gate.statements
        assert statements > 8 and shop.generation() == 1
        for generation, part in ((2, 0.3), (3, 0.6), (4, 0.9)):
            gate.open()
            shop.dbt(generation, "run", "--select", "crm")
            gate.open(int(part * statements))
            process = shop.start(generation, "run", "--select", "dim_customer")
            printed, _ = process.communicate()
            assert process.returncode
            check_error(printed, EXPIRED)
            gate.open()
            assert shop.generation() in (generation - 1, generation)
            shop.dbt(generation, "run", "--select", "dim_customer")
            assert shop.generation() == generation


# --- Executors --------------------------------------------------------------------------------------


def executors(home: Path) -> list[int]:
    """The processes of the cluster that have begun with a task: their folder is below ``home``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            command, where = (folder / "cmdline").read_text(), (folder / "cwd").readlink()
            is_executor = "CoarseGrainedExecutorBackend" in command and where.is_relative_to(home)
            if is_executor and "Running task" in (where / "stderr").read_text():
                found.append(int(folder.name))
    return found


def run_and_kill(shop: Shop, generation: int, kill: Callable[[threading.Event], None]) -> tuple[int, str]:
    """Builds; ``kill`` begins when the rebuild does. Returns: the exit code, and what dbt prints."""
    shop.dbt(generation, "run", "--select", "crm")
    process, printed, ended = shop.start(generation, "run", "--select", "dim_customer"), "", threading.Event()
    killer = threading.Thread(target=kill, args=(ended,))
    assert process.stdout is not None
    for line in process.stdout:
        printed += line
        if "rebuild from" in line:
            killer.start()
    ended.set()
    killer.join()
    return process.wait(), printed


def test_executors_die(spark: SparkSession, tmp_path: Path) -> None:
    home = tmp_path / "server"
    home.mkdir()
    with cluster(home, jars_of(spark)) as server:
        shop = Shop(tmp_path / "shop", server)
        killed: list[int] = []

        def kill(ended: threading.Event, at_most: float = float("inf")) -> None:
            while len(killed) < at_most and not ended.wait(0.3):
                for number in executors(home):
                    if len(killed) < at_most:
                        os.kill(number, signal.SIGKILL)
                        killed.append(number)

        shop.build(0)
        code, printed = run_and_kill(shop, 1, partial(kill, at_most=1))
        assert code == 0 and len(killed) == 1, printed[-5000:]
        assert shop.generation() == 1
        shop.rows = MANY
        code, printed = run_and_kill(shop, 2, kill)
        assert code and len(killed) > 2, printed[-5000:]
        check_error(printed, "Job aborted")
        assert shop.generation() == 1
        shop.dbt(2, "run", "--select", "dim_customer")
        assert shop.generation() == 2
