"""One attempt of a merge: read, plan, check, commit."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import LateChangeError, Mistake, TargetError, counted
from healing_tables.merge.micro_batch import MicroBatch
from healing_tables.merge.tables import Change, DimensionTables, Written
from healing_tables.plan.batch import key_names, named_keys
from healing_tables.plan.plan import changes, check_can_end
from healing_tables.plan.row_diff import difference
from healing_tables.plan.stored_rows import rows_of, stored_rows
from healing_tables.plan.validation import BatchFigures, check_plan, check_problems, check_surrogate_keys
from healing_tables.sql import instants
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
    """

    events: DataFrame
    tables: DimensionTables
    figures: BatchFigures
    is_full: bool
    at: int | None
    batch_id: str
    snapshot: Snapshot | None
    written: Written
    has_open_rows: bool
    micro_batch: MicroBatch | None = None

    @property
    def stored(self) -> DataFrame | None:
        return None if self.snapshot is None else self.snapshot.rows

    def run(self) -> None:
        """Raises: what the format raises on a conflict, or StalePlan; HealingTablesError."""
        spark = self.events.sparkSession
        if self.snapshot is None and self.tables.layout.has_history:
            self.check_begins()
        # after the read, so that the side tables have everything that the dimension has
        recovered = self.tables.recover(spark)
        if self.tables.log is None:
            self.merge_with_stored()
        else:
            self.merge_with_log(recovered)

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
        keys = "" if self.is_full else self.figures.keys
        known = filtered(self.tables.rows_for(self.snapshot, events, self.is_full), keys)
        past = self.tables.history_rows(spark)
        open_rows = open_rows_in(self.stored, layout, spec) if self.is_full else None
        plan = changes(events, known, layout, spec, moment, self.is_full, past).localCheckpoint()
        try:
            counts = check_plan(plan, self.current_keys, layout, spec)
        except (LateChangeError, TargetError) as error:
            if layout.has_history and self.is_outdated():
                raise StalePlan from None  # the history was read later than the dimension
            if isinstance(error, LateChangeError) and self.at is None and spec.changed_at is None:
                self.check_clock(events, known, past, moment)
            raise
        self.commit(plan, counts, keys, open_rows=open_rows)

    def is_outdated(self) -> bool:
        """Whether the dimension has a commit since it was read."""
        now = self.tables.target.snapshot(self.events.sparkSession)
        then = self.snapshot
        return (now and now.version) != (then and then.version)

    def check_clock(self, events: DataFrame, known: DataFrame | None, past: DataFrame | None, moment: int) -> None:
        """Check whether the current time is late because the clock of an earlier writer is ahead.

        Raises: StalePlan after waiting for it; LateChangeError if the clocks are too far apart.
        """
        keys = key_names(self.tables.layout)
        rows = stored_rows(events, known, self.tables.layout, self.tables.spec)
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
            "set the clocks of all writers by one time server; if the stored moment came from `at`, "
            "give this batch a later `at`",
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
        spark, keys, stored = self.events.sparkSession, key_names(layout), self.stored
        check_can_end(layout, spec, self.is_full)
        version = log.target.version(spark)
        logged = log.read(spark, version)
        left = tables.staged_keys(spark, recovered).localCheckpoint() if recovered else None
        is_full = self.is_full or (left is not None and not left.where("is_full").isEmpty())

        range_ = "" if is_full or recovered or stored is None else self.figures.keys
        batch = self.events_at(self.at)
        touched = batch.select(*keys)
        if left is not None:
            touched = touched.unionByName(left.where("not is_full").select(*keys))
        if is_full and stored is not None:
            touched = touched.unionByName(stored.selectExpr(*named_keys(layout)))
        if stored is None:  # it was dropped: restore all keys from the log
            touched = touched.unionByName(logged.where("not is_full").select(*keys))
        touched = touched.distinct()
        said = log.changes(log.read(spark, version, range_), touched, batch, self.full_at).localCheckpoint()
        check_problems(said, layout)
        held = log.keys_with_later_rows(batch, self.full_at)
        full, events = logged.where("is_full"), said
        if self.full_at is not None or not full.isEmpty():
            full = full.localCheckpoint()  # few rows, read more than once
            events = log.with_absences(said, full, held, self.full_at)
        made = changes(events, None, layout, spec, self.at, False)
        known = stored_rows(batch, rows_of(touched, filtered(stored, range_), layout), layout, spec)
        plan = difference(made, known, events, layout, spec).localCheckpoint()
        counts = check_plan(plan, self.current_keys, layout, spec)

        news = said.where("not is_logged").drop("is_logged")
        has_news = not news.isEmpty() or (
            self.full_at is not None and not log.knows_full_batch(full, held, self.full_at)
        )
        merge_id = self.new_merge_id()
        rows = log.rows(news, merge_id, full_at=self.full_at, held=held) if has_news else None
        self.commit(plan, counts, range_, merge_id=merge_id, for_log=rows)
        mine = [*recovered, merge_id]
        tables.check_log(spark, version, mine)
        if recovered or has_news:
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
        merge_id: str | None = None,
        for_log: DataFrame | None = None,
        open_rows: tuple[int, int] | None = None,
    ) -> None:
        """Args: see `tables.Change`."""
        if open_rows is None and not self.has_open_rows:
            open_rows = (0, 0)  # another writer may begin with another open end
        change = Change(
            plan,
            counts,
            keys,
            self.snapshot,
            self.events,
            self.batch_id,
            for_log,
            open_rows,
            merge_id or self.new_merge_id(),
        )
        check_surrogate_keys(plan, self.stored, self.tables.layout)
        self.tables.publish(change, self.written)


def open_rows_in(stored: DataFrame | None, layout: Layout, spec: DimensionSpec) -> tuple[int, int] | None:
    """The count and the hash of the open rows; None if there is no table yet."""
    if stored is None:
        return None
    alive, summary = open_rows_of(layout, spec)
    found = stored.where(alive).selectExpr(f"{summary} as summary").collect()[0][0]
    return int(found.rows), int(found.hash)


def filtered(stored: DataFrame | None, keys: str) -> DataFrame | None:
    """The rows for which a condition on ``t`` holds."""
    return stored.alias("t").where(keys) if stored is not None and keys else stored
