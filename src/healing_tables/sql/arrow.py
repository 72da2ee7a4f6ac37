"""A pyarrow.Table as a DataFrame."""

from __future__ import annotations

from typing import Any

from pyspark import __version__ as pyspark_version
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


def arrow_frame(spark: SparkSession, table: Any) -> DataFrame:
    """Also for a table without rows, in which Spark Connect would find no columns."""
    if not table.num_rows:
        return spark.createDataFrame([], from_arrow_schema(table.schema))
    if pyspark_version.startswith("3."):
        rows = in_zone(table, spark.conf.get("spark.sql.session.timeZone")).to_pylist()
        return spark.createDataFrame(rows, from_arrow_schema(table.schema))
    return spark.createDataFrame(table)


def in_zone(table: Any, zone: str | None) -> Any:
    """The table with a zone in each timestamp. Without one, Python means the zone of the machine, and Spark its own."""
    import pyarrow as pa
    from pyarrow import compute

    for position, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            column = table.column(position).cast(pa.timestamp("us", field.type.tz), safe=False)
            if field.type.tz is None:
                column = compute.assume_timezone(column, zone, ambiguous="earliest", nonexistent="latest")
            table = table.set_column(position, field.name, column)
    return table
