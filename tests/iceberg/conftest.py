"""The fixtures of ../conftest.py on Spark 4.1, with Iceberg in place of Delta: `make iceberg`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from sessions import connect_settings, session_settings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session whose catalog is Iceberg's, in SQLite: nothing outside tmp."""
    home = tmp_path_factory.mktemp("spark")
    settings = session_settings(home, "iceberg") | connect_settings()
    settings |= {
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{home / 'catalog.db'}",
        "spark.sql.catalog.lake.warehouse": str(home / "iceberg"),
    }
    settings["spark.driver.extraJavaOptions"] += " -XX:TieredStopAtLevel=1"
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
