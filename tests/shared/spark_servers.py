"""Servers of Spark as processes of their own, on loopback, at free ports; gone when the tests end.

All that they need is the pyspark of pip, and the jars that the session of the tests has fetched.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from sessions import session_settings

BIN = Path(pyspark.__file__).parent / "bin"
SECONDS = 120  # until a server answers


@dataclass(frozen=True)
class SparkServer:
    """How dbt reaches Spark: what stands under an output of profiles.yml. ``log`` is what the processes print."""

    log: Path
    output: Mapping[str, object]
    settings: Mapping[str, str] = field(default_factory=dict)  # server_side_parameters


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def process(command: Sequence[str], home: Path, log: Path, port: int | None = None) -> Iterator[None]:
    """A program that runs until the end of the block. Args: port: where it answers, once it is there."""
    # examples read their files by a path from the project
    with log.open("ab") as output:
        program = subprocess.Popen(
            command,
            cwd=home,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_HOSTNAME": "127.0.0.1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        if port is not None:
            wait_for(program, port, log)
        yield
    finally:
        program.terminate()
        try:
            program.wait(timeout=30)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def wait_for(program: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert program.poll() is None and time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.2)


def server_settings(home: Path) -> dict[str, str]:
    """Those of the session of the tests, without the packages: servers get the jars themselves."""
    settings = session_settings(home)
    for name in ("spark.jars.packages", "spark.jars.excludes"):
        del settings[name]
    return settings | {"spark.driver.memory": "2g"}


def submit(main_class: str, settings: Mapping[str, str], *options: str) -> list[str]:
    confs = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    return [str(BIN / "spark-submit"), "--class", main_class, *options, *confs, "spark-internal"]


@contextmanager
def thrift(home: Path, jars: Sequence[str]) -> Iterator[SparkServer]:
    """The Thrift server. With ``--packages``, Delta would be gone once the first session has closed."""
    port, log = free_port(), home / "server.log"
    settings = server_settings(home) | {
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": str(port),
    }
    name = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
    command = submit(name, settings, "--master", "local[2]", "--driver-class-path", ":".join(jars))
    with process(command, home, log, port):
        yield SparkServer(log, {"method": "thrift", "host": "127.0.0.1", "port": port, "user": "dbt"})


@contextmanager
def connect(home: Path, jars: Sequence[str]) -> Iterator[SparkServer]:
    port, log = free_port(), home / "server.log"
    settings = server_settings(home) | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = submit(name, settings, "--master", "local[2]", "--driver-class-path", ":".join(jars))
    with process(command, home, log, port):
        settings = {"spark.remote": f"sc://127.0.0.1:{port}"}
        yield SparkServer(log, {"method": "session", "host": "localhost"}, settings)


@contextmanager
def cluster(home: Path, jars: Sequence[str]) -> Iterator[SparkServer]:
    """A standalone cluster, a master and two workers; the driver is dbt's process."""
    port, log = free_port(), home / "server.log"
    start = str(BIN / "spark-class")
    deploy = "org.apache.spark.deploy"
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        where = ["--host", "127.0.0.1", "--webui-port", "0"]
        stack.enter_context(process([start, f"{deploy}.master.Master", *where, "--port", str(port)], home, log, port))
        for number in (1, 2):
            worker = [
                start,
                f"{deploy}.worker.Worker",
                *where,
                "-c",
                "1",
                "-m",
                "1g",
                "-d",
                str(home / f"work{number}"),
            ]
            stack.enter_context(process([*worker, url], home, log))
        settings = server_settings(home) | {
            "spark.master": url,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "1g",
            "spark.jars": ",".join(jars),
        }
        yield SparkServer(log, {"method": "session", "host": "localhost"}, settings)


SERVERS = {"thrift": thrift, "connect": connect, "cluster": cluster}
