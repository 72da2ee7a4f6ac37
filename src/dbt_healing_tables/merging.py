"""Called by the code that healing_merge generates: merges a batch with the given settings and returns figures."""

from __future__ import annotations

import datetime as dt
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from dbt_healing_tables.session import MergeResponse
from healing_tables import DeltaTarget, DimensionSpec, HiveTarget, IcebergTarget, merge
from healing_tables.errors import BatchError, HealingTablesError, Mistake
from healing_tables.merge.merge import MergeResult, check_alone
from healing_tables.targets.find import Target, target_of
from healing_tables.targets.naming import as_view


def merge_model(settings: str, spark: SparkSession, model: Callable[[], Any] | None = None) -> MergeResponse:
    """Merge the batch of one model.

    Args:
        settings: JSON with ``target``, ``spec``, ``at`` (the moment of the batch, or null), ``file_format`` and
            ``key_buckets`` (of a new table; both may be null), ``cluster_by`` (columns), ``table`` (further creation
            options), ``sql`` (the batch of a SQL model), ``is_partial`` (under --empty or --sample), ``is_empty``,
            ``replaced`` (of a full refresh: ``target``, ``before``, ``is_view``, ``is_kept``), ``log`` (of the merge's
            row in healing_log: ``table``, ``columns``, ``row``), ``batch_id``.
        model: returns the batch of a Python model.
    Raises: HealingTablesError if the spec is wrong, before the model runs, or the batch cannot be merged.
    """
    given = json.loads(settings)
    started = dt.datetime.now(dt.timezone.utc)
    try:
        result = merge_batch(given, spark, model)
    except HealingTablesError as error:
        found = "; ".join(mistake.logged for mistake in error.mistakes)
        write_log(spark, given["log"], started, status="refused", reason=found or str(error))
        raise
    retried = result.attempts - 1
    changes = {
        "rows_added": result.inserted,
        "rows_changed": result.closed + result.updated,
        "rows_removed": result.removed,
        "rows_unchanged": result.unchanged,
        "rows_set_aside": result.set_aside,
    }
    if result.commit_version is None:
        version = given["log"]["row"]["version_before"]
        write_log(spark, given["log"], started, retried, status="unchanged", version_after=version, **changes)
    else:
        version = result.commit_version
        more = {"publish": "merge", "version_after": version}
        write_log(spark, given["log"], started, retried, status="published", **more, **changes)
    aside = f", {result.set_aside} set aside" if result.set_aside else ""
    return MergeResponse(
        _message=f"{result.inserted} inserted, {result.closed} closed, {result.updated} updated{aside}",
        code="OK",
        rows_affected=result.inserted + result.closed + result.updated,
        rows_in_batch=result.rows_in_batch,
        inserted=result.inserted,
        closed=result.closed,
        updated=result.updated,
        set_aside=result.set_aside,
        attempts=result.attempts,
        commit_version=result.commit_version,
        seconds=result.seconds,
    )


def merge_batch(given: dict[str, Any], spark: SparkSession, model: Callable[[], Any] | None) -> MergeResult:
    spec = DimensionSpec.from_dict(given["spec"])
    target = target_from(given, spark)
    batch = spark.sql(given["sql"]) if model is None else as_data_frame(model(), spark)
    if given["is_empty"]:
        batch = batch.limit(0)
    replaced = given["replaced"]
    if replaced:
        check_alone(batch, spec)  # before the table goes
    # a part of the batch says nothing about the keys that it lacks
    full_batch = False if given["is_partial"] else None
    history = history_of(target, spec)
    with full_refresh(spark, replaced, history=history):
        return merge(batch, target, spec, at=given["at"], full_batch=full_batch, batch_id=given["batch_id"])


def target_from(given: dict[str, Any], spark: SparkSession) -> Target:
    """The existing table, or the one that the settings describe."""
    name, file_format = given["target"], given["file_format"]
    kind = target_of(spark, name) if file_format is None else None
    if isinstance(kind, HiveTarget):
        file_format = kind.file_format
    if file_format == "iceberg" or isinstance(kind, IcebergTarget):
        return IcebergTarget(name, cluster_by=given["cluster_by"], **given["table"])
    if file_format in (None, "delta"):
        return DeltaTarget(name, cluster_by=given["cluster_by"], **given["table"])
    return HiveTarget(name, file_format, given["key_buckets"], **given["table"])


def write_log(
    spark: SparkSession, log: dict[str, Any], started: dt.datetime, retried: int = 0, **figures: object
) -> None:
    """Append the row of this merge to healing_log, after one for each attempt that was retried.

    Unknown columns are NULL.
    """
    finished = dt.datetime.now(dt.timezone.utc)
    lost = {"status": "retried", "reason": "a commit of another writer", "started_at": started, "finished_at": started}
    row = {**log["row"], **figures, "started_at": started, "finished_at": finished}
    rows = [{**log["row"], **lost}] * retried + [row]
    schema = ", ".join(f"{name} {kind}" for name, kind in log["columns"].items())
    values = [tuple(row.get(name) for name in log["columns"]) for row in rows]
    listed = ", ".join(log["columns"])
    with as_view(spark.createDataFrame(values, schema)) as view:
        spark.sql(f"insert into {log['table']} ({listed}) select {listed} from {view}").collect()


@contextmanager
def full_refresh(spark: SparkSession, replaced: dict[str, Any] | None, *, history: str | None) -> Iterator[None]:
    """Rename the stored tables during a full refresh, and rename them back if the new ones cannot be created.

    Args:
        replaced: ``target``; ``before``, its temporary name; ``is_view``; ``is_kept``. None: no full refresh.
        history: the table of type 4, which goes with its dimension.
    """
    if replaced is None:
        yield
        return
    names = {replaced["target"]: replaced["before"]}
    if replaced["is_view"]:
        spark.sql(f"drop view if exists {replaced['target']}")
        names = {}
    if history is not None and spark.catalog.tableExists(history):
        suffix = replaced["before"].rpartition("__before_")[2].rstrip("`")
        bare = history.rstrip("`")
        names[history] = f"{bare}__before_{suffix}{history[len(bare) :]}"
    moved: dict[str, str] = {}
    try:
        for name, before in names.items():
            spark.sql(f"alter table {name} rename to {before}")
            moved[name] = before
        yield
    except BaseException:
        for name, before in moved.items():
            spark.sql(f"drop table if exists {name}")
            spark.sql(f"alter table {before} rename to {name}")
        raise
    if replaced["is_kept"]:
        kept = ", ".join(names.values())
        log = logging.getLogger("healing_tables")
        log.info("%s: the table that had this name is kept as %s", replaced["target"], kept)
        return
    for before in names.values():
        spark.sql(f"drop table if exists {before}")


def history_of(target: Target, spec: DimensionSpec) -> str | None:
    """The history table of type 4. With other types, a table of this name does not belong to the dimension."""
    attributes: Any = spec.attributes  # the spec has made a map of whatever was given
    if not any(attribute.scd_type == 4 for attribute in attributes.values()):
        return None
    return (target.named(spec.history) if spec.history else target.beside("_history")).sql_name


def as_data_frame(batch: Any, spark: SparkSession) -> DataFrame:
    """What a Python model may return: a data frame of Spark, of pandas on Spark, or of pandas."""
    if isinstance(batch, DataFrame):
        return batch
    if hasattr(batch, "to_spark"):
        frame: DataFrame = batch.to_spark()
        return frame
    if type(batch).__module__.split(".")[0] == "pandas":
        return spark.createDataFrame(batch)
    mistake = Mistake("model()", "a data frame of Spark or pandas", type(batch).__name__, "return the batch")
    raise BatchError("the model returned no batch", [mistake])
