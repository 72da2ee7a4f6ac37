"""Servers of Spark as processes of their own, on loopback, at free ports; gone when the tests end.

All that they need is the pyspark of pip, and the jars that the session of the tests has fetched. A Thrift server and a
Connect server are started as docs/install.md says.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from pages import blocks_of
from pyspark.sql import SparkSession
from sessions import ROOT, session_settings

BIN = Path(pyspark.__file__).parent / "bin"
SECONDS = 120  # until a server answers
SESSION = {"method": "session", "host": "localhost"}


@dataclass(frozen=True)
class SparkServer:
    """How dbt reaches Spark: what stands under an output of profiles.yml. ``log`` is what the processes print."""

    log: Path
    output: Mapping[str, object]
    settings: Mapping[str, str] = field(default_factory=dict)  # server_side_parameters


def jars_of(spark: SparkSession) -> list[str]:
    """The files of the packages that a session has fetched."""
    found = str(spark.sparkContext.getConf().get("spark.jars", ""))
    return [path.removeprefix("file://") for path in found.split(",")]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def process(command: Sequence[str], home: Path, log: Path, port: int | None = None) -> Iterator[None]:
    """Run a program for the length of the block. Args: port: where it accepts connections once it has started."""
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


@contextmanager
def documented(
    main_class: str, home: Path, jars: Sequence[str], port: int, more: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """A server that the commands of docs/install.md start; its log. Args: more: settings besides theirs.

    Its cache of jars has another program's, too, which would replace a file that Spark reads for its errors.
    """
    page = blocks_of((ROOT / "docs" / "install.md").read_text())
    (text,) = (text for block in page if main_class in (text := "\n".join(block.lines)) and block.kind == "sh")
    text, ports = re.subn(r"(?<=port=)\d+", str(port), text)
    assert ports == 1, text
    settings = "".join(f"--conf '{name}={value}' " for name, value in (more or {}).items())
    text = text.replace("spark-internal", f"{settings}spark-internal")
    cache = home / ".ivy2.5.2" / "jars"
    cache.mkdir(parents=True)
    for jar in jars:
        (cache / Path(jar).name).symlink_to(jar)
    with zipfile.ZipFile(cache / "com.example_other-1.0.jar", "w") as other:
        other.writestr("error/error-conditions.json", "")
    set_up = f"export HOME='{home}' PATH='{BIN}':\"$PATH\"\n"
    # exec, so that the server is the process that is terminated
    command = ["bash", "-euc", set_up + text.replace("spark-submit", "exec spark-submit")]
    with process(command, home, home / "server.log", port):
        yield home / "server.log"


@contextmanager
def thrift(home: Path, jars: Sequence[str], more: Mapping[str, str] | None = None) -> Iterator[SparkServer]:
    port = free_port()
    with documented("HiveThriftServer2", home, jars, port, more) as log:
        yield SparkServer(log, {"method": "thrift", "host": "127.0.0.1", "port": port, "user": "dbt"})


@contextmanager
def thrift_and_connect(home: Path, jars: Sequence[str]) -> Iterator[SparkServer]:
    """A Thrift server that is a Connect server, too, at ``settings["spark.remote"]``."""
    port, prefix = free_port(), "spark.connect.grpc.binding"
    settings = {
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        f"{prefix}.address": "127.0.0.1",
        f"{prefix}.port": str(port),
    }
    with thrift(home, jars, settings) as server:
        yield SparkServer(server.log, server.output, {"spark.remote": f"sc://127.0.0.1:{port}"})


@contextmanager
def connect(home: Path, jars: Sequence[str]) -> Iterator[SparkServer]:
    port = free_port()
    with documented("SparkConnectServer", home, jars, port) as log:
        yield SparkServer(log, SESSION, {"spark.remote": f"sc://127.0.0.1:{port}"})


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
        yield SparkServer(log, SESSION, settings)


SERVERS = {"thrift": thrift, "connect": connect, "cluster": cluster}
