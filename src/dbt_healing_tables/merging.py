"""What the code that healing_merge writes calls: settings and batch in, merge, figures out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_healing_tables.session import MergeResponse
from healing_tables import DeltaTarget, DimensionSpec, merge
from healing_tables.errors import BatchError, Mistake
from healing_tables.merging import check_alone


def merge_model(
    settings: str, spark: SparkSession, model: Callable[[], Any] | None = None
) -> MergeResponse:
    """Merge the batch of one model.

    Args:
        settings: JSON with ``target``, ``spec``, ``table`` (creation options), ``sql`` (the batch of a SQL model),
            ``is_partial`` (under --empty or --sample), ``is_empty``, ``drop`` (statements of a full refresh), ``batch_id``.
        model: gives the batch of a Python model.
    Raises: HealingTablesError if the spec is wrong, before the model runs, or the batch cannot be merged.
    """
    given = json.loads(settings)
    spec = DimensionSpec.from_dict(given["spec"])
    target = DeltaTarget(given["target"], **given["table"])
    batch = spark.sql(given["sql"]) if model is None else as_data_frame(model(), spark)
    if given["is_empty"]:
        batch = batch.limit(0)
    if given["drop"]:
        check_alone(batch, spec)  # before the table goes
    if given["drop"] and has_history_table(spec):
        # first, so that a run that was killed between the two can be repeated
        spark.sql(f"drop table if exists {spec.history or given['target'] + '_history'}")
    for statement in given["drop"]:
        spark.sql(statement)
    # a part of the batch says nothing about the keys that it lacks
    full_batch = False if given["is_partial"] else None
    result = merge(batch, target, spec, full_batch=full_batch, batch_id=given["batch_id"])
    return MergeResponse(
        _message=f"{result.inserted} inserted, {result.closed} closed, {result.updated} updated",
        code="OK",
        rows_affected=result.inserted + result.closed + result.updated,
        rows_in_batch=result.rows_in_batch,
        inserted=result.inserted,
        closed=result.closed,
        updated=result.updated,
        attempts=result.attempts,
        commit_version=result.commit_version,
        seconds=result.seconds,
    )


def has_history_table(spec: DimensionSpec) -> bool:
    """Type 4 keeps earlier rows in a table of its own; in any other dimension that name is someone else's."""
    attributes: Any = spec.attributes  # the spec has made a map of whatever was given
    return any(attribute.scd_type == 4 for attribute in attributes.values())


def as_data_frame(batch: Any, spark: SparkSession) -> DataFrame:
    """What a Python model may return: a data frame of Spark, of pandas on Spark, or of pandas."""
    if isinstance(batch, DataFrame):
        return batch
    if hasattr(batch, "to_spark"):
        frame: DataFrame = batch.to_spark()
        return frame
    if type(batch).__module__.split(".")[0] == "pandas":
        return spark.createDataFrame(batch)
    mistake = Mistake(
        "model()", "a data frame of Spark or pandas", type(batch).__name__, "return the batch"
    )
    raise BatchError("the model returned no batch; nothing was written.", [mistake])
