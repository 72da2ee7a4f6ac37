"""Batches that are not a Spark DataFrame: pandas, Polars, and other objects with Arrow data."""

from __future__ import annotations

from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from healing_tables.errors import ArgumentError
from healing_tables.sql.arrow import arrow_frame
from healing_tables.sql.values import with_plain_text


def spark_frame(batch: Any) -> DataFrame:
    """A batch as a Spark DataFrame, with plain text. Others are converted by Arrow, in which missing values of pandas
    are NULL.

    Args: batch: a Spark DataFrame; or one of pandas or Polars, or a pyarrow.Table: then with the active session.
    Raises: ArgumentError if it is none of these, or there is no session.
    """
    if hasattr(batch, "sparkSession"):
        return with_plain_text(cast(DataFrame, batch))
    if not hasattr(batch, "__arrow_c_stream__"):
        got = f"a {type(batch).__module__}.{type(batch).__name__}"
        raise ArgumentError.one(
            "the call",
            "batch",
            "a DataFrame of Spark, pandas or Polars, or a pyarrow.Table",
            got,
            "convert it to one of these",
        )
    return arrow_frame(active_session("batch"), for_spark(batch))


def active_session(where: str) -> SparkSession:
    """Args: where: what needs it, for the message. Raises: ArgumentError if there is none."""
    spark = SparkSession.getActiveSession()
    if spark is None:
        remedy = "create one first: SparkSession.builder.getOrCreate()"
        raise ArgumentError.one("the call", where, "a Spark session", "none", remedy)
    return spark


def for_spark(batch: Any) -> Any:
    """The pyarrow.Table of a batch, in types that Spark has."""
    import pyarrow as pa

    is_pandas = hasattr(batch, "to_numpy") and hasattr(batch, "iloc")
    # the index of pandas only numbers the rows: it is not a column
    table = pa.Table.from_pandas(batch, preserve_index=False) if is_pandas else pa.table(batch)
    return table.cast(pa.schema([field.with_type(spark_type(field.type)) for field in table.schema]))


def spark_type(kind: Any) -> Any:
    """Return the matching Spark type: a category has the type of its values, an unsigned integer a wider type."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(spark_type(kind.value_type))
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}
    return wider.get(kind, kind)
