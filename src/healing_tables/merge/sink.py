"""A dimension as the sink of a stream: each micro-batch is merged once, even if it is run again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import ArgumentError
from healing_tables.merge.merge import merge
from healing_tables.merge.micro_batch import MicroBatch

QUERY_ID = "sql.streaming.queryId"  # it stays the same as long as the checkpoint does


@dataclass(frozen=True)
class Sink:
    """What ``foreachBatch`` calls. See `DimensionSpec.sink`."""

    spec: DimensionSpec
    target: Any
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None and not re.fullmatch(r"[\w.-]{1,100}", self.name):
            raise ArgumentError.one(
                "the sink",
                "name",
                "letters, digits, underscores, hyphens and dots",
                repr(self.name),
                "choose such a name",
            )

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Merge a micro-batch, unless this stream has merged it, or one after it, before.

        Raises: what `merge` raises; ArgumentError if the stream has no name and Spark does not provide its id.
        """
        stream = self.name or query_id(batch.sparkSession)
        micro_batch = MicroBatch(stream, int(batch_id))
        merge(batch, self.target, self.spec, batch_id=f"{stream}:{batch_id}", micro_batch=micro_batch)


def query_id(spark: SparkSession) -> str:
    """The id of the running streaming query. Calls of the function without a query are a stream, too."""
    if not hasattr(spark, "_jsc"):  # Spark Connect
        raise ArgumentError.one(
            "the sink",
            "name",
            "the name of the stream, which Spark Connect needs to identify it",
            "none",
            "spec.sink(target, name='...'): the same after a restart, another one for another checkpoint",
        )
    return str(spark.sparkContext.getLocalProperty(QUERY_ID) or "calls")
