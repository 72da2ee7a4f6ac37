"""One Spark session and one JVM for the whole run; dbt runs in this process through dbtRunner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from pyspark.sql import SparkSession

os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that dbt finds with getOrCreate: Delta, an embedded metastore, nothing outside tmp."""
    home = tmp_path_factory.mktemp("spark")
    builder = SparkSession.builder.master("local[2]")
    for key, value in session_settings(home).items():
        builder = builder.config(key, value)
    session = builder.enableHiveSupport().getOrCreate()
    yield session
    session.stop()


def session_settings(home: Path) -> dict[str, str]:
    import yaml

    profile = (ROOT / "profiles.yml").read_text().replace("{{", "'{{").replace("}}", "}}'")
    output = yaml.safe_load(profile)["healing_tables"]["outputs"]["dev"]
    settings = {
        key: value
        for key, value in output["server_side_parameters"].items()
        if "env_var" not in str(value)
    }
    settings |= {
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home}",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={home / 'metastore'};create=true"
        ),
    }
    return settings


@pytest.fixture(scope="module")
def lab(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Lab:
    """A dbt project of its own, with a schema of its own, that has the package installed."""
    name = request.module.__name__.split(".")[-1]
    return Lab(spark, tmp_path_factory.mktemp(name), schema=f"lab_{name}")


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
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
