"""Tables from text as the cases write it, and rows to compare."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from reference import moment_of
from sessions import FORMAT


class Tables:
    """Writes and reads tables of one schema."""

    def __init__(self, spark: SparkSession, *, schema: str) -> None:
        self.spark = spark
        self.schema = schema
        spark.sql(f"create database if not exists {schema}")

    def table(self, name: str, columns: Sequence[Sequence[str]], rows: Iterable[Sequence[Any]]) -> None:
        """A parquet table ``name`` (faster to make than Delta) from text as the cases write it."""
        self.frame(columns, rows).coalesce(1).write.mode("overwrite").saveAsTable(
            f"{self.schema}.`{name}`", format="parquet"
        )

    def view(self, name: str, columns: Sequence[Sequence[str]], rows: Iterable[Sequence[Any]]) -> None:
        """The same as a view that every session sees, ``global_temp.<name>``: nothing is written."""
        self.frame(columns, rows).createOrReplaceGlobalTempView(name)

    def frame(self, columns: Sequence[Sequence[str]], rows: Iterable[Sequence[Any]]) -> DataFrame:
        schema = t.StructType([t.StructField(name, spark_type(kind)) for name, kind in columns])
        data = [tuple(value_of(kind, value) for (_, kind), value in zip(columns, row, strict=True)) for row in rows]
        return self.spark.createDataFrame(data, schema)

    def commits(self, name: str) -> list[tuple[int, str]]:
        """Versions and operations of a table with commits, oldest first."""
        table = f"{self.schema}.`{name}`"
        if FORMAT == "iceberg":
            rows = self.spark.sql(
                f"select h.snapshot_id, s.operation from {table}.history h join {table}.snapshots s "
                "on h.snapshot_id = s.snapshot_id order by h.made_current_at"
            )
        else:
            rows = self.spark.sql(f"describe history {table}").select("version", "operation").orderBy("version")
        return [(row[0], row[1]) for row in rows.collect()]

    def restore(self, name: str, version: int) -> None:
        """The table as it was at a version of `commits`."""
        table = f"{self.schema}.{name}"
        if FORMAT == "iceberg":
            self.spark.sql(f"call system.set_current_snapshot('{table}', {version})")
        else:
            self.spark.sql(f"restore table {table} to version as of {version}")

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        """Rows of a table, sorted; instants as UTC text."""
        frame = self.spark.table(f"{self.schema}.`{name}`")
        return plain_rows(frame, columns)


def plain_rows(frame: DataFrame, columns: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    if columns:
        frame = frame.select(*[f"`{column}`" for column in columns])
    for field in frame.schema:
        if field.dataType == t.TimestampType():
            frame = frame.withColumn(
                field.name,
                frame[f"`{field.name}`"].cast("string"),
            )
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def spark_type(kind: str) -> t.DataType:
    return t._parse_datatype_string(kind)  # DataType.fromDDL is new in Spark 4


def value_of(kind: str, value: Any) -> Any:
    if value is None:
        return None
    if kind == "timestamp":
        return moment_of(value).replace(tzinfo=dt.timezone.utc)
    if kind == "timestamp_ntz":
        return moment_of(value)
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind.startswith("decimal"):
        return Decimal(value)
    if kind in ("double", "float"):
        return float(value)
    return value
