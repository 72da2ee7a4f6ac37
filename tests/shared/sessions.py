"""What tests set on sessions; light, since processes that are killed import it too."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import __version__ as pyspark_version
from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
SPARK = tuple(map(int, pyspark_version.split(".")[:2]))
HAS_SCRIPTS = SPARK >= (4, 1)  # SQL scripts, which are the only way to catch an error in Jinja
FORMAT = os.environ.get("HEALING_TABLES_FORMAT", "delta")  # iceberg: `make iceberg`; parquet: a session without Delta

# What makes a session one with Delta
DELTA_SETTINGS = ["spark.jars.packages", "spark.sql.extensions", "spark.sql.catalog.spark_catalog"]


def install_package(project: Path) -> None:
    """What `dbt deps` leaves in a project that names this package."""
    (project / "packages.yml").write_text(f"packages: [{{local: '{ROOT}'}}]\n")
    (project / "dbt_packages").mkdir(exist_ok=True)
    if not (project / "dbt_packages" / "healing_tables").exists():
        (project / "dbt_packages" / "healing_tables").symlink_to(ROOT)


def session_settings(home: Path, *, is_long: bool = False) -> dict[str, Any]:
    """Args: is_long: the session runs for many minutes, so that the second compiler of the JVM is worth its time."""
    import yaml

    profile = (ROOT / "profiles.yml").read_text().replace("{{", "'{{").replace("}}", "}}'")
    output = yaml.safe_load(profile)["healing_tables"]["outputs"]["iceberg" if FORMAT == "iceberg" else "dev"]
    settings = {key: value for key, value in output["server_side_parameters"].items() if "env_var" not in str(value)}
    settings.pop("spark.driver.defaultJavaOptions", None)  # the compiler is chosen below
    if FORMAT == "delta" and SPARK != (4, 2):  # the profile names the jar of that one
        from healing_tables.cli import DELTA

        settings["spark.jars.packages"] = f"io.delta:{DELTA['.'.join(map(str, SPARK))]}"
    settings |= {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # VACUUM: 10,000 tasks
        "spark.databricks.delta.snapshotPartitions": "1",
        # what is kept for a UI fills the heap, and G1 then marks it again and again: a quarter of the CPU
        "spark.sql.ui.retainedExecutions": "10",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        # the text of each plan, for that UI: of large plans a tenth of the time
        "spark.sql.ui.explainMode": "simple",
        # Spark checks its own rules after each step of a plan: a fourteenth of a merge. `make test` leaves it on.
        "spark.sql.lightweightPlanChangeValidation": str(not is_long).lower(),
        "spark.driver.extraJavaOptions": (
            f"-XX:+UseParallelGC -XX:MetaspaceSize=600m -XX:ReservedCodeCacheSize=512m -Dderby.system.home={home}"
            + ("" if is_long else " -XX:TieredStopAtLevel=1")
        ),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (f"jdbc:derby:;databaseName={home / 'metastore'};create=true"),
    }
    if FORMAT == "parquet":
        for name in DELTA_SETTINGS:
            del settings[name]
    if FORMAT == "iceberg":
        settings["spark.sql.catalog.lake.uri"] = f"jdbc:sqlite:{home / 'catalog.db'}"
        settings["spark.sql.catalog.lake.warehouse"] = str(home / "iceberg")
    return settings


def connect_settings() -> dict[str, str]:
    """A free port for the Spark Connect server of a session."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }


@contextmanager
def without_codegen(spark: SparkSession) -> Iterator[None]:
    """No generated code: on a few rows, compiling it takes most of the time."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


@contextmanager
def functions_of(is_connect: bool) -> Iterator[None]:
    """``pyspark.sql.functions`` makes columns for one kind of session only, for the whole process.

    ``SparkSession.builder.remote`` switches to Connect and never back; here both kinds live together.
    """
    switch = "SPARK_CONNECT_MODE_ENABLED"
    before = os.environ.pop(switch, None)
    if is_connect:
        os.environ[switch] = "1"
    try:
        yield
    finally:
        os.environ.pop(switch, None)
        if before is not None:
            os.environ[switch] = before
