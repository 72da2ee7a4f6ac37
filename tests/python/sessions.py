"""What tests set on sessions; light, since processes that are killed import it too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession


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
