"""The merge: plan, check, one commit; it starts again if another writer has committed in between."""

from __future__ import annotations

import datetime as dt
import logging
import time
import uuid
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.layout import Layout
from healing_tables.definition.resolve_layout import resolve
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import (
    ArgumentError,
    BatchError,
    HealingTablesError,
    Mistake,
    TargetError,
    counted,
    rows_text,
)
from healing_tables.merge.attempt import Attempt, columns_of_aside
from healing_tables.merge.change import Written
from healing_tables.merge.change_log import ChangeLog
from healing_tables.merge.erased import without_erased
from healing_tables.merge.files_tables import FilesTables
from healing_tables.merge.frames import spark_frame
from healing_tables.merge.hive_tables import HiveTables
from healing_tables.merge.micro_batch import MicroBatch
from healing_tables.merge.outbox import Outbox
from healing_tables.merge.postgres_tables import PostgresTables
from healing_tables.merge.tables import DimensionTables
from healing_tables.plan.batch import events as events_of
from healing_tables.plan.feed import planned_events
from healing_tables.plan.plan import changes, full_batch_of, moment_of
from healing_tables.plan.stored_rows import with_wider_types
from healing_tables.plan.validation import BatchFigures, check_events, check_plan, reasons_of
from healing_tables.sql import instants
from healing_tables.sql.identifiers import find
from healing_tables.sql.types import types_of
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.delta import DeltaTarget
from healing_tables.targets.files import FilesTarget
from healing_tables.targets.find import Target, target_of
from healing_tables.targets.hive import HiveTarget
from healing_tables.targets.iceberg import IcebergTarget
from healing_tables.targets.postgres import PostgresTarget
from healing_tables.targets.retry import retrying
from healing_tables.targets.table import CHANGE_LOG, DimensionTable, Snapshot

log = logging.getLogger("healing_tables")

# How each kind of table is written
TABLES: dict[type[DimensionTable[Any]], type[DimensionTables[Any]]] = {
    DeltaTarget: Outbox,
    FilesTarget: FilesTables,
    HiveTarget: HiveTables,
    IcebergTarget: Outbox,
    PostgresTarget: PostgresTables,
}


@dataclass(frozen=True)
class MergeResult:
    """What a merge did.

    Attributes:
        inserted, closed, updated: numbers of rows. With type 4, ``closed`` is the number of keys that left the table.
        removed: number of versions that were replaced because of a late change, with a change log.
        unchanged: rows of the batch that changed nothing: no later merge can see that they came. None with a change
            log, which keeps them.
        set_aside: rows of the batch that were not merged, and are in ``<dimension>__set_aside``.
        attempts: 1 unless other writers committed in between.
        commit_version: the version of the Delta table, the number in ``<table>__commits`` of a Hive table, the version
            of a dimension in files, the snapshot of the Iceberg table, or the number of the transaction in PostgreSQL;
            None if nothing changed, so that there is no commit.
        seconds: from the call to the commit.
    """

    rows_in_batch: int
    inserted: int
    closed: int
    updated: int
    attempts: int
    commit_version: int | None
    seconds: float
    batch_id: str
    removed: int = 0
    unchanged: int | None = None
    set_aside: int = 0

    def __str__(self) -> str:
        commit = "no commit" if self.commit_version is None else f"commit {self.commit_version}"
        removed = f", {self.removed} replaced" if self.removed else ""
        attempts = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        rows = rows_text(self.rows_in_batch)
        beside = f", {rows_text(self.unchanged)} without effect" if self.unchanged else ""
        beside += f", {self.set_aside} set aside" if self.set_aside else ""
        return (
            f"{rows} in the batch: {self.inserted} inserted, {self.closed} closed, "
            f"{self.updated} updated{removed}{beside}; {attempts}, {commit}, {self.seconds:.1f} s"
        )


def merge(
    batch: Any,
    target: Target | str,
    spec: DimensionSpec,
    *,
    at: dt.datetime | dt.date | str | None = None,
    full_batch: bool | None = None,
    batch_id: str | None = None,
    micro_batch: MicroBatch | None = None,
) -> MergeResult:
    """Merge a batch into a stored dimension, in one commit.

    Args:
        batch: current states of some or all keys, or changes with moments (``spec.changed_at``). A Spark DataFrame,
            whose session is used; or a DataFrame of pandas or Polars, or a pyarrow.Table, with the active session.
        target: the name of a table in Delta, Iceberg, ORC or parquet, or the path of a Delta table. The first merge
            creates a Delta table, or an Iceberg table in a catalog of Iceberg. Or a DeltaTarget, a FilesTarget, a
            HiveTarget, an IcebergTarget or a PostgresTarget.
        at: the moment of the batch if its rows have none; in UTC unless it has an offset. Default: the time of each
            attempt.
        full_batch: overrides ``spec.full_batch``.
        batch_id: an id for the audit. Default: a new one.
        micro_batch: of a stream, see `DimensionSpec.sink`.
    Raises: ArgumentError, BatchError, LateChangeError, TargetError, GuardError, ConflictError. Nothing is written then,
    unless the text says otherwise.
    """
    started = time.monotonic()
    batch = spark_frame(batch)
    table = target_of(batch.sparkSession, target)
    work = Merge(
        batch,
        table,
        spec,
        at=at,
        is_full=full_batch_of(full_batch, spec),
        batch_id=batch_id or str(uuid.uuid4()),
        micro_batch=micro_batch,
    )
    log.info("%s: reading the batch and the stored rows", table.name)
    try:
        with table.session(batch.sparkSession):
            attempts = retrying(table.name, work.attempt, lambda: str(work.written))
    except HealingTablesError as error:
        if not work.written.is_empty:
            error = error.after(str(work.written))
        raise error.of(table.name) from error.__cause__
    written = work.written
    left_table = written.rows["remove"] if work.layout.has_history else 0
    result = MergeResult(
        rows_in_batch=work.figures.rows,
        inserted=written.rows["insert"],
        closed=written.rows["close"] + left_table,
        updated=written.rows["update"],
        removed=written.rows["remove"] - left_table,
        unchanged=written.unchanged,
        set_aside=written.set_aside,
        attempts=attempts,
        commit_version=written.version,
        seconds=time.monotonic() - started,
        batch_id=work.batch_id,
    )
    log.info("%s: %s", table.name, result)
    if result.set_aside:
        log.warning("%s: %s set aside, see %s", table.name, rows_text(result.set_aside), work.tables.set_aside.name)
    if written.moved:
        text = "%s: %s of the batch moved to the moment of a row before in sequence_by, which is later"
        log.warning(text, table.name, rows_text(written.moved))
    return result


class Merge:
    """One merge: what its attempts share. It is prepared again if the table has other columns, or another open end."""

    layout: Layout
    events: DataFrame
    aside: DataFrame | None
    figures: BatchFigures
    tables: DimensionTables[Any]

    def __init__(
        self,
        batch: DataFrame,
        table: Target,
        spec: DimensionSpec,
        *,
        at: dt.datetime | dt.date | str | None,
        is_full: bool,
        batch_id: str,
        micro_batch: MicroBatch | None = None,
    ) -> None:
        self.batch, self.table, self.spec = batch, table, spec
        self.at, self.is_full, self.batch_id = at, is_full, batch_id
        self.micro_batch = micro_batch
        self.written = Written()
        self.moment: int | None = None
        self.prepared_for: tuple[Layout, DimensionSpec] | None = None

    def attempt(self) -> None:
        """Raises: what the format raises on a conflict, or StalePlan; HealingTablesError."""
        spark = self.batch.sparkSession
        self.table.recover(spark)
        snapshot = self.table.snapshot(spark)
        try:
            self.attempt_from(snapshot)
        except Exception as error:
            is_own = isinstance(error, HealingTablesError) and error.__cause__ is None
            if snapshot is None or is_own or self.table.is_still(spark, snapshot.table_id):
                raise
            raise StalePlan("the table was dropped") from error

    def attempt_from(self, snapshot: Snapshot | None) -> None:
        spark = self.batch.sparkSession
        layout, spec, has_open_rows = self.definition(snapshot)
        if self.prepared_for != (layout, spec):
            self.prepare(snapshot, layout, spec)
            self.prepared_for = (layout, spec)
        if self.micro_batch is not None and snapshot is not None:
            merged = self.tables.last_micro_batch(snapshot, self.micro_batch.mark)
            if merged is not None and merged >= self.micro_batch.number:
                log.info("%s: %s was merged before", self.table.name, self.batch_id)
                if self.tables.log is None:
                    self.tables.recover(spark)  # with a change log, the next merge plans what was left
                return
        log_ = self.tables.log
        if snapshot is not None and not self.tables.check_change_log(snapshot) and log_:
            # from now on every merge uses the log; the changes of earlier merges are in the dimension
            self.tables.note_change_log(spark)
            self.table.recover(spark)
            snapshot = self.table.snapshot(spark)
        if snapshot is not None and log_ is not None:
            self.tables.seed(spark, snapshot.rows)
        if snapshot is not None:
            snapshot = replace(snapshot, rows=with_wider_types(snapshot.rows, layout))
        if self.moment is None and log_ is not None:
            self.moment = instants.of(None, self.layout.moment_type)  # rows of the log keep their moment
        Attempt(
            self.events,
            self.tables,
            self.figures,
            self.is_full,
            self.moment,
            self.batch_id,
            snapshot,
            self.written,
            has_open_rows,
            self.aside,
            types_of(self.table.as_stored(self.batch.schema)),
            self.micro_batch,
        ).run()

    def definition(self, snapshot: Snapshot | None) -> tuple[Layout, DimensionSpec, bool]:
        """The layout, the definition with the open end and the flags of the stored rows, and whether a row is open.

        Raises: BatchError, TargetError.
        """
        layout = resolve(
            self.spec,
            self.table.as_stored(self.batch.schema),
            None if snapshot is None else snapshot.rows.schema,
            moment_type="date" if instants.is_date(self.at) else instants.TIMESTAMP,
            can_widen=partial(self.table.can_widen, self.batch.sparkSession),
            computed={} if snapshot is None else snapshot.computed,
        )
        partitions = self.table.partition_columns if snapshot is None else snapshot.partitions
        layout = replace(layout, partitions=tuple(partitions))
        if snapshot is None:
            return layout, with_log(self.spec, self.table, layout, None, is_new=True), False
        spec, has_open_rows = TABLES[type(self.table)].as_rows_show(self.table, snapshot, layout, self.spec)
        spec = with_log(spec, self.table, layout, snapshot.properties.get(CHANGE_LOG), is_new=False)
        return layout, spec, has_open_rows

    def prepare(self, snapshot: Snapshot | None, layout: Layout, spec: DimensionSpec) -> None:
        """Prepare the events of the batch and the tables beside the dimension. Args: see `definition`.

        Raises: ArgumentError, BatchError, TargetError.
        """
        spark, batch = self.batch.sparkSession, self.batch
        if self.at is not None or spec.changed_at is None or self.is_full:
            moment = moment_of(self.at, layout, spec)  # the current time may be after the end of time
            if self.at is not None:
                self.moment = moment
        if self.moment is not None:
            self.moment = instants.floored(self.moment, layout.moment_type)
        change_log = ChangeLog.of(self.table, layout, spec, types_of(batch.schema))
        tables = TABLES[type(self.table)](self.table, layout, spec, change_log)
        check_log_of_history(tables)
        check_own_names(tables, spark)
        check_partitions(layout, spec)
        if snapshot is not None:
            tables.check_change_log(snapshot)
        # Computed once; a cached frame would be computed again when the table changes
        at = self.moment if self.moment is not None else 0
        batch = without_erased(batch, self.table, layout, spec, self.moment)
        self.events = events_of(batch, layout, spec, at).localCheckpoint()
        self.figures = check_events(self.events, layout, spec, self.is_full)
        self.aside = None
        if self.figures.aside:
            self.aside = self.events.where("reason is not null").select(columns_of_aside(layout))
            self.events = self.events.where("reason is null")
        if change_log is not None:
            change_log.prepare(spark, self.table.full_name(spark))
        tables.prepare(spark)
        self.layout, self.tables = layout, tables


def with_log(
    spec: DimensionSpec, table: DimensionTable[Any], layout: Layout, noted: str | None, *, is_new: bool
) -> DimensionSpec:
    """The definition with the name of its change log, if it has one: as given, as noted, or of a new dimension."""
    if spec.change_log is not None:
        return spec
    if is_new and TABLES[type(table)].keeps_log(layout, spec):
        return replace(spec, change_log=table.beside("_changes").name)
    return replace(spec, change_log=noted)


def check_log_of_history(tables: DimensionTables[Any]) -> None:
    """Raises: TargetError for type 4 with a change log, where the rows of a history cannot change."""
    if tables.log is None or not tables.layout.has_history or tables.can_log_history:
        return
    mistake = Mistake(
        "change_log",
        "a table in Delta or Iceberg, for type 4 with a change log: late changes change its history",
        "a table of files",
        "leave change_log out; or use type 2, whose versions are computed from the log",
    )
    raise TargetError(counted("the spec", [mistake]), [mistake])


def check_own_names(tables: DimensionTables[Any], spark: SparkSession) -> None:
    """Raises: ArgumentError if two tables of a dimension are the same."""
    seen: dict[str, str] = {}
    mistakes = []
    for what, table in tables.own_tables().items():
        name = table.full_name(spark)
        if name in seen:
            got = f"{table.name}, which is {seen[name]}"
            mistakes.append(Mistake(what, "a table of its own", got, "choose another name"))
        seen.setdefault(name, what)
    if mistakes:
        raise ArgumentError(counted("the dimension", mistakes), mistakes)


def check_partitions(layout: Layout, spec: DimensionSpec) -> None:
    """Raises: ArgumentError if the table is partitioned by a missing column or by a timestamp.

    Delta stores a timestamp in a partition column as local time: when clocks are set back,
    it is ambiguous.
    """
    columns = layout.columns(spec)
    mistakes = []
    for name in layout.partitions:
        found = find(name, columns)
        if found is None:
            wanted, remedy = f"columns of the dimension: {', '.join(columns)}", "choose one of them"
            mistakes.append(Mistake("partition_by", wanted, name, remedy))
        elif columns[found] == instants.TIMESTAMP:
            wanted = "columns whose values do not depend on the time zone of the session"
            remedy = "partition by a date or another column"
            mistakes.append(Mistake("partition_by", wanted, f"{name}, a timestamp", remedy))
    if mistakes:
        raise ArgumentError(counted("the dimension", mistakes), mistakes)


def check_alone(batch: DataFrame, spec: DimensionSpec) -> None:
    """Raises: what `merge` into a new table would raise; BatchError if all rows are set aside. Nothing is written."""
    layout = resolve(spec, batch.schema, None, moment_type=instants.TIMESTAMP)
    events = events_of(batch, layout, spec, 0)
    figures = check_events(events, layout, spec, spec.full_batch)
    if figures.rows and figures.rows == figures.aside:
        wanted, remedy = "rows for the new table", "correct the batch; see the reasons"
        got = f"only rows that are set aside ({reasons_of(events)})"
        raise BatchError.one("the batch", "the rows", wanted, got, remedy)
    events, layout = planned_events(events.where("reason is null"), layout, spec)
    check_plan(changes(events, None, layout, spec, 0, False), lambda: 0, layout, spec)
