"""Names of tables as users write them, and of temporary views."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession

from healing_tables.errors import ArgumentError, Mistake, counted

# A part of a table's name; another character without backticks could begin a comment
PART = re.compile(r"`(?:[^`]|``)+`|\w+")
NAME = re.compile(rf"(?:{PART.pattern})(?:\.(?:{PART.pattern}))*")


@contextmanager
def as_view(rows: DataFrame) -> Iterator[str]:
    """A temporary view of these rows; it is dropped afterwards."""
    name = f"healing_tables_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)


def is_path(name: str) -> bool:
    return re.match("/|[A-Za-z][A-Za-z0-9+.-]*:/", name) is not None


def is_table_name(name: object) -> bool:
    return isinstance(name, str) and NAME.fullmatch(name.strip()) is not None


def bad_name(name: object, wanted: str) -> ArgumentError:
    mistake = Mistake(
        "target",
        wanted,
        repr(name),
        "put a part with other characters than letters, digits and _ in backticks",
    )
    return ArgumentError(counted("the target", [mistake]), [mistake])


def name_parts(name: str) -> list[str]:
    """The parts of a name, without quotes."""
    parts = re.findall("`(?:[^`]|``)*`|[^.`]+", name)
    return [part.strip().strip("`").replace("``", "`") for part in parts]


def name_beside(name: str, suffix: str) -> str:
    """The name of a table next to another: with a suffix."""
    return name[:-1] + suffix + "`" if name.endswith("`") else name.rstrip("/") + suffix


def full_name(spark: SparkSession, name: str) -> str:
    """A name with its catalog and schema, in lower case without quotes."""
    names = [part.lower() for part in name_parts(name)]
    if len(names) < 3:
        # a query would be a job; and in another thread, as in dbt, spark.catalog may not know a default catalog
        current = spark.sql("show current namespace").collect()[0]
        names = [*[part.lower() for part in current][: 3 - len(names)], *names]
    return ".".join(names)
