"""One Spark session and one JVM for the whole run; dbt runs in this process through dbtRunner.

The same JVM is the Spark Connect server of the tests that ask for one: no second start, one catalog.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from lab import Lab
from pyspark.sql import SparkSession
from sessions import functions_of, without_codegen

os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that dbt finds with getOrCreate: Delta, an embedded metastore, nothing outside tmp."""
    home = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2]")
    for key, value in (session_settings(home) | connect_settings()).items():
        builder = builder.config(key, value)
    session = builder.enableHiveSupport().getOrCreate()
    yield session
    session.stop()


def connect_settings() -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }


@pytest.fixture(scope="session")
def connect_url(spark: SparkSession) -> str:
    """A Spark Connect server inside of the JVM of ``spark``, started when the first test asks for it."""
    jvm = cast(Any, spark)._jvm
    jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(cast(Any, spark)._jsc.sc())
    return f"sc://127.0.0.1:{spark.conf.get('spark.connect.grpc.binding.port')}"


@pytest.fixture(scope="session")
def connect(connect_url: str) -> Iterator[SparkSession]:
    """A client's session; see ``either``."""
    from pyspark.sql.connect.session import SparkSession as Remote

    session = Remote.builder.remote(connect_url).create()
    yield cast(SparkSession, session)
    session.client.close()  # before the server goes


def session_settings(home: Path) -> dict[str, str]:
    import yaml

    profile = (ROOT / "profiles.yml").read_text().replace("{{", "'{{").replace("}}", "}}'")
    output = yaml.safe_load(profile)["healing_tables"]["outputs"]["dev"]
    settings = {key: value for key, value in output["server_side_parameters"].items() if "env_var" not in str(value)}
    settings |= {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM: 10,000 tasks
        "spark.databricks.delta.snapshotPartitions": "1",
        # what is kept for a UI fills the heap, and G1 then marks it again and again: a quarter of the CPU
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.driver.extraJavaOptions": (
            f"-XX:+UseParallelGC -XX:MetaspaceSize=600m -XX:ReservedCodeCacheSize=512m -Dderby.system.home={home}"
        ),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (f"jdbc:derby:;databaseName={home / 'metastore'};create=true"),
    }
    return settings


@pytest.fixture(scope="session")
def parsed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """dbt parses the package once, for all labs."""
    empty = Lab(spark, tmp_path_factory.mktemp("empty"), schema="empty")
    empty.dbt("parse")
    Lab.parsed = empty.home / "target" / "partial_parse.msgpack"


@pytest.fixture(scope="module")
def lab(
    spark: SparkSession,
    parsed: None,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Lab:
    """A dbt project of its own, with a schema of its own, that has the package installed."""
    name = request.module.__name__.split(".")[-1]
    return Lab(spark, tmp_path_factory.mktemp(name), schema=f"lab_{name}")


@pytest.fixture(scope="module")
def connect_lab(
    connect: SparkSession,
    parsed: None,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Lab:
    name = request.module.__name__.split(".")[-1]
    return Lab(connect, tmp_path_factory.mktemp(name), schema=f"connect_{name}")


@pytest.fixture(params=["classic", pytest.param("connect", marks=pytest.mark.proof)])
def either(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The test runs twice: on the classic session, and on a client of the Spark Connect server."""
    is_connect = request.param == "connect"
    lab: Lab = request.getfixturevalue("connect_lab" if is_connect else "lab")
    with functions_of(is_connect), without_codegen(lab.spark):
        yield lab


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
    with without_codegen(spark):
        yield
