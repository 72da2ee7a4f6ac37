"""One attempt of a merge: read, plan, check, commit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import LateChangeError, Mistake, TargetError, counted
from healing_tables.merge.change import Change, Reading, Written
from healing_tables.merge.change_log import ChangeLog
from healing_tables.merge.micro_batch import MicroBatch
from healing_tables.merge.tables import DimensionTables
from healing_tables.plan.batch import key_names, named_keys
from healing_tables.plan.feed import NO_KEY, moved_rows, planned_events
from healing_tables.plan.plan import changes, check_can_end, without_late
from healing_tables.plan.row_diff import difference
from healing_tables.plan.set_aside import columns as columns_aside
from healing_tables.plan.set_aside import rows as rows_aside
from healing_tables.plan.stored_rows import rows_of, stored_rows
from healing_tables.plan.validation import BatchFigures, check_plan, check_problems, check_surrogate_keys
from healing_tables.sql import instants
from healing_tables.sql.identifiers import quoted
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.merge_statement import open_rows_of
from healing_tables.targets.table import Snapshot

# Up to this difference, a merge waits for a writer whose clock is ahead
CLOCK_WAIT = 10.0  # seconds


@dataclass
class Attempt:
    """One attempt, which starts from the stored rows.

    Attributes:
        events: of the batch (batch.events).
        at: the moment of the batch if its rows have none, in microseconds; None: the time of the attempt.
        snapshot: the dimension; None if there is none yet.
        has_open_rows: whether a stored row is open, so that the open end of the table is known.
        aside: events of the batch that are set aside; None if there are none.
        types: of the columns of the batch, as the table stores them.
    """

    events: DataFrame
    tables: DimensionTables[Any]
    figures: BatchFigures
    is_full: bool
    at: int | None
    batch_id: str
    snapshot: Snapshot | None
    written: Written
    has_open_rows: bool
    aside: DataFrame | None
    types: Mapping[str, str]
    micro_batch: MicroBatch | None = None

    @property
    def stored(self) -> DataFrame | None:
        return None if self.snapshot is None else self.snapshot.rows

    def run(self) -> None:
        """Raises: what the format raises on a conflict, or StalePlan; HealingTablesError."""
        spark = self.events.sparkSession
        if self.snapshot is None and self.tables.layout.has_history and not self.has_logged_rows():
            self.check_begins()
        # after the read, so that the side tables have everything that the dimension has
        recovered = self.tables.recover(spark)
        if self.tables.log is None:
            self.merge_with_stored()
        else:
            self.merge_with_log(recovered)

    def has_logged_rows(self) -> bool:
        """Whether a dimension that was dropped comes back from its change log, and its history, too."""
        log = self.tables.log
        return log is not None and not log.target.rows(self.events.sparkSession).isEmpty()

    def check_begins(self) -> None:
        """Raises: TargetError if a new dimension already has a history."""
        tables, spark = self.tables, self.events.sparkSession
        if tables.history.rows(spark).isEmpty():
            return
        if tables.target.read(spark) is not None:
            raise StalePlan  # another writer has created it
        mistake = Mistake(
            tables.history.name,
            "no history, since the dimension does not exist",
            "the history of an earlier table of this name",
            "restore the dimension, or drop or rename its history, too",
        )
        raise TargetError(counted("the stored dimension", [mistake]), [mistake])

    def merge_with_stored(self) -> None:
        layout, spec, spark = self.tables.layout, self.tables.spec, self.events.sparkSession
        moment = instants.of(None, layout.moment_type) if self.at is None else self.at
        events = self.events_at(moment)
        aside = self.aside
        keys = "" if self.is_full else self.figures.keys
        reading = self.tables.read(spark, self.snapshot, events, self.is_full)
        stored, past = filtered(reading.rows, keys), reading.past
        open_rows = open_rows_in(self.stored, layout, spec) if self.is_full else None
        is_by_clock = self.at is None and spec.changed_at is None
        usable, late = without_late(events, stored, layout, spec, moment, self.is_full, past)
        if late is not None:
            if layout.has_history and self.is_outdated():
                raise StalePlan  # the history was read later than the dimension
            if is_by_clock:
                self.check_clock(events, stored, past, moment)
            late = late.select(columns_of_aside(layout))
            aside = late if aside is None else aside.unionByName(late)
        plan = changes(usable, stored, layout, spec, moment, self.is_full, past, aside).localCheckpoint()
        try:
            figures = check_plan(plan, self.current_keys, layout, spec)
        except (LateChangeError, TargetError) as error:
            if layout.has_history and self.is_outdated():
                raise StalePlan from None
            if isinstance(error, LateChangeError) and is_by_clock:
                self.check_clock(events, stored, past, moment)
            raise
        self.commit(plan, figures.counts, keys, aside=aside, open_rows=open_rows, reading=reading)
        self.written.unchanged = self.figures.rows - self.written.set_aside - figures.used

    def is_outdated(self) -> bool:
        """Whether the dimension has a commit since it was read."""
        now = self.tables.target.snapshot(self.events.sparkSession)
        then = self.snapshot
        return (now and now.version) != (then and then.version)

    def check_clock(self, events: DataFrame, stored: DataFrame | None, past: DataFrame | None, moment: int) -> None:
        """Check whether the current time is late because the clock of an earlier writer is ahead.

        Raises: StalePlan after waiting for it; LateChangeError if the clocks are too far apart.
        """
        keys = key_names(self.tables.layout)
        rows = stored_rows(events, stored, self.tables.layout, self.tables.spec)
        rows = rows.select(*keys, "boundary")
        if past is not None:
            rows = rows.unionByName(past.select(*keys, "boundary"))
        if not self.is_full:
            rows = rows.join(events.select(*keys), keys, "left_semi")
        newest = rows.agg(f.expr("max(boundary)")).collect()[0][0]
        is_date = self.tables.layout.moment_type == "date"
        ahead = (newest - moment) / 1e6
        if ahead < 0 or (is_date and ahead == 0):
            return
        if ahead <= CLOCK_WAIT:
            time.sleep(ahead)
            raise StalePlan("the clock of another writer is slightly ahead")
        mistake = Mistake(
            "the moment of the batch",
            f"a moment after the stored changes of its keys: {instants.moment_text(newest)}",
            f"now by the clock of this machine, {instants.moment_text(moment)}, {ahead:.0f} seconds earlier",
            "synchronize the clocks of all writers; if the stored moment came from `at`, give this batch a later `at`",
        )
        raise LateChangeError(counted("the batch", [mistake]), [mistake])

    def merge_with_log(self, recovered: list[str]) -> None:
        """The versions of the keys in the batch are computed from their rows in the log and in the batch.

        Rows are added to the log after the commit of the dimension. The merge that delivers last sees all of them, and
        plans again.
        Args: recovered: earlier merges whose rows are in the log, but whose keys may not be planned with them.
        """
        tables, layout, spec, log = (
            self.tables,
            self.tables.layout,
            self.tables.spec,
            self.tables.log,
        )
        assert log is not None
        assert self.at is not None
        spark, stored = self.events.sparkSession, self.stored
        version = log.target.version(spark)
        left = tables.staged_keys(spark, recovered).localCheckpoint() if recovered else None
        is_full = self.is_full or self.figures.truncates
        is_full = is_full or (left is not None and not left.where(f"is_full or {NO_KEY}").isEmpty())
        range_ = "" if is_full or recovered or stored is None else self.figures.keys
        log_range = range_
        if range_ and spec.truncated_when is not None:
            log_range = f"({range_}) or t.{quoted(layout.keys[0].name)} is null"
        found = changes_by_log(
            self.events_at(self.at),
            log.read(spark, version),
            filtered(stored, range_),
            log,
            self.at,
            is_full=is_full,
            full_at=self.full_at,
            aside=self.aside,
            others=left,
            history=tables.history.rows(spark) if layout.has_history else None,
            logged_keys=log.read(spark, version, log_range),
        )
        figures = check_plan(found.plan, self.current_keys, layout, spec)
        self.written.moved = moved_rows(found.changes, layout, spec)
        merge_id = self.new_merge_id()
        rows = found.rows(log, merge_id, self.full_at)
        self.commit(found.plan, figures.counts, range_, aside=self.aside, merge_id=merge_id, for_log=rows)
        mine = [*recovered, merge_id]
        tables.check_log(spark, version, mine)
        if recovered or rows is not None:
            tables.forget(spark, mine)

    def current_keys(self) -> int:
        return 0 if self.snapshot is None else self.tables.current_keys(self.snapshot)

    @property
    def full_at(self) -> int | None:
        return self.at if self.is_full else None

    def events_at(self, moment: int) -> DataFrame:
        if self.tables.spec.changed_at is not None:
            return self.events
        return self.events.withColumn("at", f.expr(f"{moment}L"))

    def new_merge_id(self) -> str:
        return str(uuid.uuid4()) if self.micro_batch is None else self.micro_batch.new_merge_id()

    def commit(
        self,
        plan: DataFrame,
        counts: Mapping[str, int],
        keys: str,
        *,
        aside: DataFrame | None,
        merge_id: str | None = None,
        for_log: DataFrame | None = None,
        open_rows: tuple[int, int] | None = None,
        reading: Reading | None = None,
    ) -> None:
        """Args: aside: the events that are set aside; others: see `tables.Change`."""
        if open_rows is None and not self.has_open_rows:
            open_rows = (0, 0)  # another writer may begin with another open end
        check_surrogate_keys(plan, self.stored, self.tables.layout)
        set_aside = None
        if aside is not None:
            self.tables.prepare_set_aside(plan.sparkSession, columns_aside(self.types))
            set_aside = rows_aside(aside, self.types, self.batch_id)
            self.written.set_aside = aside.agg(f.expr("sum(rows)")).collect()[0][0]
        change = Change(
            plan,
            counts,
            keys,
            self.snapshot,
            self.events,
            self.batch_id,
            for_log,
            open_rows,
            set_aside,
            reading,
            merge_id or self.new_merge_id(),
        )
        self.tables.publish(change, self.written)


def open_rows_in(stored: DataFrame | None, layout: Layout, spec: DimensionSpec) -> tuple[int, int] | None:
    """The count and the hash of the open rows; None if there is no table yet."""
    if stored is None:
        return None
    alive, summary = open_rows_of(layout, spec)
    found = stored.where(alive).selectExpr(f"{summary} as summary").collect()[0][0]
    return int(found.rows), int(found.hash)


def columns_of_aside(layout: Layout) -> list[str]:
    """The columns of `batch.events` that are kept of rows that are set aside."""
    return [*key_names(layout), "rows", "reason", "given"]


@dataclass(frozen=True)
class LogChanges:
    """What a batch changes in a dimension with a change log.

    Attributes:
        plan: of plan.plan.
        changes: the rows of batch and log (`ChangeLog.changes`).
        full: the rows of the log that describe full batches.
        present: keys that a full batch at its moment has, without a row that counts; see `ChangeLog.rows`.
        parts: for which a full batch is complete; None: for all.
    """

    plan: DataFrame
    changes: DataFrame
    full: DataFrame
    present: DataFrame
    parts: DataFrame | None

    def rows(self, log: ChangeLog, merge_id: str, full_at: int | None) -> DataFrame | None:
        """The rows that the log lacks; None if it has all. Args: full_at: the moment of a full batch."""
        news = self.changes.where("not is_logged").drop("is_logged")
        is_new_batch = full_at is not None and not log.has_full_batch(self.full, self.present, full_at, self.parts)
        if news.isEmpty() and not is_new_batch:
            return None
        return log.rows(news, merge_id, full_at=full_at, present=self.present, parts=self.parts)


def changes_by_log(
    batch: DataFrame,
    logged: DataFrame,
    stored: DataFrame | None,
    log: ChangeLog,
    at: int,
    *,
    is_full: bool,
    full_at: int | None,
    aside: DataFrame | None = None,
    others: DataFrame | None = None,
    logged_keys: DataFrame | None = None,
    history: DataFrame | None = None,
) -> LogChanges:
    """The versions of the keys in a batch, from their rows in the log and in the batch.

    Args:
        batch: events with moments.
        logged: the log (`ChangeLog.read`); logged_keys: at least its rows with keys of the batch. Default: all.
        stored: the dimension; at least the rows with these keys.
        full_at: the moment of a full batch.
        aside: ``k1..n`` of rows of the batch that are set aside.
        others: ``k1..n``, ``is_full``: keys that are to be planned as well.
        history: of type 4, the rows of the history; none if there is no history yet.
    Raises: TargetError; BatchError if log and batch have different rows for a key and moment.
    """
    layout, spec = log.layout, log.spec
    keys = key_names(layout)
    check_can_end(layout, spec, full_at is not None)
    touched = batch.select(*keys)
    if others is not None:
        touched = touched.unionByName(others.where("not is_full").select(*keys))
    if is_full and stored is not None:
        touched = touched.unionByName(stored.selectExpr(*named_keys(layout)))
    if is_full and history is not None:  # keys that have left the table
        touched = touched.unionByName(history.selectExpr(*named_keys(layout)))
    if stored is None:  # it was dropped: restore all keys from the log
        touched = touched.unionByName(logged.where("not is_full").select(*keys))
    touched = touched.where(f"not ({NO_KEY})").distinct()
    found = log.changes(logged if logged_keys is None else logged_keys, touched, batch, full_at).localCheckpoint()
    check_problems(found, layout)
    parts = batch.select("part").distinct().localCheckpoint() if spec.within and full_at is not None else None
    present = log.keys_with_later_rows(batch, full_at)
    if aside is not None and full_at is not None:
        whole = " and ".join(f"{name} is not null" for name in keys)
        rest = aside.where(whole).join(batch.select(*keys), keys, "left_anti")
        present = present.union(rest.select(*keys).distinct().selectExpr(*keys, f"{full_at}L as at"))
    full, events = logged.where("is_full"), found
    if full_at is not None or not full.isEmpty():
        full = full.localCheckpoint()  # few rows, read more than once
        events = log.with_absences(found, full, present, full_at, parts)
    events, layout_of_events = planned_events(events, layout.with_values(), spec)
    made = changes(events, None, layout_of_events, spec, at, False)
    now = stored_rows(batch, rows_of(touched, stored, layout), layout, spec)
    past = None
    if layout.has_history:
        past = rows_of(touched, history, layout)
        if past is None:
            past = made.select("archived.*").limit(0)
    known = found.unionByName(full.select(*keys, "at"), allowMissingColumns=True) if spec.deleted_rows else found
    plan = difference(made, now, known, layout, spec, past).localCheckpoint()
    return LogChanges(plan, found, full, present, parts)


def filtered(stored: DataFrame | None, keys: str) -> DataFrame | None:
    """The rows for which a condition on ``t`` holds."""
    return stored.alias("t").where(keys) if stored is not None and keys else stored
