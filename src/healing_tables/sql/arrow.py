"""A pyarrow.Table as a DataFrame."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def arrow_frame(spark: SparkSession, table: Any) -> DataFrame:
    """Also for a table without rows, in which Spark Connect would find no columns."""
    return (
        spark.createDataFrame(table) if table.num_rows else spark.createDataFrame([], from_arrow_schema(table.schema))
    )
