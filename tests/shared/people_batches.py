"""Batches of people for merges into Delta, and the rows that they leave."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from tables import Tables, plain_rows

from healing_tables import DimensionSpec

SPEC = DimensionSpec(key_columns="id", attributes={"name": 2, "mail": 1})
BATCH = "id int, name string, mail string"


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def batch(tables: Tables, rows: list[Any], ddl: str = BATCH) -> DataFrame:
    return tables.spark.createDataFrame(rows, ddl)


def versions(tables: Tables, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return plain_rows(tables.spark.table(name), columns)
