"""One attempt of a merge: read, plan, check, commit."""

from __future__ import annotations

import re
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import (
    NOTHING_WRITTEN,
    LateChangeError,
    Mistake,
    TargetError,
    counted,
)
from healing_tables.merge.outbox import LOG, Outbox
from healing_tables.plan.batch import key_names
from healing_tables.plan.plan import changes, check_can_end
from healing_tables.plan.row_diff import difference
from healing_tables.plan.stored_rows import stored_rows
from healing_tables.plan.validation import BatchFigures, check_plan, check_problems
from healing_tables.sql import instants
from healing_tables.sql.identifiers import find, quoted
from healing_tables.sql.types import types_of
from healing_tables.targets.conflicts import StalePlan, is_conflict
from healing_tables.targets.delta import CHANGE_LOG, Snapshot, as_view
from healing_tables.targets.key_map import KeyMap
from healing_tables.targets.merge_statement import open_rows_of

# Up to here the MERGE names the keys that it touches; the text of the statement grows with them
FEW_ROWS = 10_000
# Equal keys of these types have one hash; floats and collated text do not
SIMPLE = re.compile("(tinyint|smallint|int|bigint|string|date|timestamp_[ln]tz|boolean|decimal.*)")
# Up to this difference, a merge waits for a writer whose clock is ahead
CLOCK_WAIT = 10.0  # seconds
# Commits that change no row
MAINTENANCE = ("OPTIMIZE", "VACUUM START", "VACUUM END", "SET TBLPROPERTIES", "UPGRADE PROTOCOL")


@dataclass
class Written:
    """What the attempts of one merge have written so far.

    Attributes:
        rows: that were changed, by action.
        version: of the last commit; None if there was none.
        is_logged: whether the change log has the batch.
    """

    rows: Counter[str] = field(default_factory=Counter)
    version: int | None = None
    is_logged: bool = False

    def __str__(self) -> str:
        parts = []
        if self.version is not None:
            parts.append(f"the MERGE has committed as version {self.version}")
        if self.is_logged:
            parts.append("the change log has the batch, and the next merge plans its keys again")
        return "; ".join(parts) or NOTHING_WRITTEN


@dataclass
class Attempt:
    """One attempt, from what is stored.

    Attributes:
        events: of the batch (batch.events).
        at: the moment of the batch where its rows have none, in microseconds; None: that of the attempt.
        snapshot: the dimension; None if there is none yet.
    """

    events: DataFrame
    outbox: Outbox
    figures: BatchFigures
    is_full: bool
    at: int | None
    batch_id: str
    snapshot: Snapshot | None
    written: Written

    @property
    def stored(self) -> DataFrame | None:
        return None if self.snapshot is None else self.snapshot.rows

    def run(self) -> None:
        """Raises: what Delta raises on a conflict, or StalePlan; HealingTablesError."""
        spark = self.events.sparkSession
        if self.snapshot is None and self.outbox.layout.has_history:
            self.check_begins()
        # after the read: the side tables hold all that the dimension does
        recovered = self.outbox.recover(spark) if self.outbox else []
        if self.outbox.log is None:
            self.merge_with_stored()
        else:
            self.merge_with_log(recovered)

    def check_begins(self) -> None:
        """Raises: TargetError if a dimension that is to be made has a history already."""
        outbox, spark = self.outbox, self.events.sparkSession
        if outbox.history.rows(spark).isEmpty():
            return
        if outbox.target.read(spark) is not None:
            raise StalePlan  # another writer has made it
        mistake = Mistake(
            outbox.history.name,
            "no history, since there is no dimension yet",
            "the history of an earlier table of this name",
            "bring the dimension back, or drop or rename its history too",
        )
        raise TargetError(counted("the stored dimension", [mistake]), [mistake])

    def merge_with_stored(self) -> None:
        layout, spec, spark = self.outbox.layout, self.outbox.spec, self.events.sparkSession
        moment = instants.of(None, layout.moment_type) if self.at is None else self.at
        events = self.events_at(moment)
        keys = "" if self.is_full else self.figures.keys
        past = self.outbox.history_rows(spark)
        known = filtered(self.stored, keys)
        open_rows = open_rows_in(self.stored, layout, spec) if self.is_full else None
        plan = changes(events, known, layout, spec, moment, self.is_full, past).localCheckpoint()
        try:
            counts = check_plan(plan, self.stored, layout, spec)
        except (LateChangeError, TargetError) as error:
            if layout.has_history and self.is_outdated():
                raise StalePlan from None  # the history was read later than the dimension
            if isinstance(error, LateChangeError) and self.at is None and spec.changed_at is None:
                self.check_clock(events, known, past, moment)
            raise
        self.commit(plan, counts, keys, open_rows=open_rows)

    def is_outdated(self) -> bool:
        """Whether the dimension has a commit since it was read."""
        now = self.outbox.target.snapshot(self.events.sparkSession)
        then = self.snapshot
        return (now and now.version) != (then and then.version)

    def check_clock(self, events: DataFrame, known: DataFrame | None, past: DataFrame | None, moment: int) -> None:
        """Whether now is late because the clock of an earlier writer is ahead.

        Raises: StalePlan after waiting for it; LateChangeError if the clocks are too far apart.
        """
        keys = key_names(self.outbox.layout)
        rows = stored_rows(events, known, self.outbox.layout, self.outbox.spec)
        rows = rows.select(*keys, "boundary")
        if past is not None:
            rows = rows.unionByName(past.select(*keys, "boundary"))
        if not self.is_full:
            rows = rows.join(events.select(*keys), keys, "left_semi")
        newest = rows.agg(f.expr("max(boundary)")).collect()[0][0]
        is_date = self.outbox.layout.moment_type == "date"
        ahead = (newest - moment) / 1e6
        if ahead < 0 or (is_date and ahead == 0):
            return
        if ahead <= CLOCK_WAIT:
            time.sleep(ahead)
            raise StalePlan("the clock of another writer is a little ahead")
        mistake = Mistake(
            "the moment of the batch",
            f"a moment after what is stored for its keys: {moment_text(newest)}",
            f"now by the clock of this machine, {moment_text(moment)}, {ahead:.0f} seconds earlier",
            "set the clocks of all writers by one time server; if the stored moment came from `at`, "
            "give this batch a later `at`",
        )
        raise LateChangeError(counted("the batch", [mistake]), [mistake])

    def merge_with_log(self, recovered: list[str]) -> None:
        """The versions of the touched keys follow from all that the log holds of them, and the batch.

        Rows reach the log after the commit of the dimension. Whoever delivers later sees both changes, and plans again.
        Args: recovered: earlier merges whose rows are in the log, and whose keys may not be planned with them.
        """
        outbox, layout, spec, log = (
            self.outbox,
            self.outbox.layout,
            self.outbox.spec,
            self.outbox.log,
        )
        assert log is not None
        assert self.at is not None
        spark, keys, stored = self.events.sparkSession, key_names(layout), self.stored
        check_can_end(layout, spec, self.is_full)
        version = log.target.version(spark)
        logged = log.read(spark, version)
        left = outbox.staged_keys(spark, recovered).localCheckpoint()
        is_full = bool(self.is_full or (recovered and not left.where("is_full").isEmpty()))

        range_ = "" if is_full or recovered or stored is None else self.figures.keys
        batch = self.events_at(self.at)
        known = stored_rows(batch, filtered(stored, range_), layout, spec)
        touched = batch.select(*keys)
        if recovered:
            touched = touched.unionByName(left.where("not is_full").select(*keys))
        if is_full:
            touched = touched.unionByName(known.select(*keys))
        if stored is None:  # it was dropped: the log brings all of it back
            touched = touched.unionByName(logged.where("not is_full").select(*keys))
        touched = touched.distinct()
        said = log.changes(log.read(spark, version, range_), touched, batch, self.full_at).localCheckpoint()
        check_problems(said, layout)
        held = log.keys_with_later_rows(batch, self.full_at)
        full = logged.where("is_full").localCheckpoint()  # few rows, asked for more than once
        events = log.with_absences(said, full, held, self.full_at)
        made = changes(events, None, layout, spec, self.at, False)
        known = known.join(touched, keys, "left_semi")
        plan = difference(made, known, events, layout, spec).localCheckpoint()
        counts = check_plan(plan, stored, layout, spec)

        news = said.where("not is_logged").drop("is_logged")
        has_news = not news.isEmpty() or (
            self.full_at is not None and not log.knows_full_batch(full, held, self.full_at)
        )
        merge_id = str(uuid.uuid4())
        rows = log.rows(news, merge_id, full_at=self.full_at, held=held) if has_news else None
        self.commit(plan, counts, range_, merge_id=merge_id, for_log=rows)
        mine = [*recovered, merge_id]
        for commit in log.target.commits_since(spark, version, mine):
            if commit.merge_id is None and commit.operation not in MAINTENANCE:
                raise StalePlan("another writer has added to the change log")
        if recovered or has_news:
            outbox.discard(spark, mine)

    @property
    def full_at(self) -> int | None:
        return self.at if self.is_full else None

    def events_at(self, moment: int) -> DataFrame:
        if self.outbox.spec.changed_at is not None:
            return self.events
        return self.events.withColumn("at", f.expr(f"{moment}L"))

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
        """Stage, MERGE, deliver.

        Args:
            counts: rows by action.
            keys: a condition on ``t``, the target, that holds for all keys of the plan.
            for_log: what the change log gets.
            open_rows: of a full batch, what it was compared with.
        """
        spark, outbox, layout, spec = (
            plan.sparkSession,
            self.outbox,
            self.outbox.layout,
            self.outbox.spec,
        )
        table, merge_id = outbox.target, merge_id or str(uuid.uuid4())
        if self.snapshot is None:
            columns, base_version = layout.columns(spec), -1
            table.create(spark, columns, outbox.side_table_properties(spark))
        else:
            columns, base_version = self.snapshot.columns, self.snapshot.version
        if layout.is_sequence and "insert" in counts:
            plan = KeyMap(table, layout, spec).with_numbers(plan, self.stored)
        has_changes = bool(counts)
        merged: DataFrame | None = plan if has_changes else None
        if counts and set(counts) <= {"archive", "absent"}:
            # keys that come and go in one batch: a row is written as it is, so that there is a commit, which other
            # writers cannot miss
            row = None if self.stored is None else any_row(self.stored, layout, spec)
            merged = None if row is None else plan.unionByName(row, allowMissingColumns=True)
            keys, counts = "", {}
        has_merge = merged is not None
        if not has_merge and layout.new_columns:
            table.add_columns(spark, layout.new_columns)
        rows = outbox.side_table_rows(plan, self.events, self.batch_id) if has_changes else {}
        if for_log is not None:
            rows[LOG] = for_log
        if rows:
            outbox.stage(spark, merge_id, base_version, rows)
        if merged is not None:
            stored = self.stored
            if stored is not None and 0 < sum(counts.values()) <= FEW_ROWS:
                keys = " and ".join(part for part in (keys, bucket_filter(plan, stored, layout)) if part)
            self.run_merge(
                merged,
                merge_id=merge_id,
                base_version=base_version,
                stored=columns,
                keys=keys,
                open_rows=open_rows,
            )
            self.written.rows.update(counts)
        if rows:
            try:
                outbox.deliver(spark, merge_id, has_commit=has_merge)
            except StalePlan:
                outbox.discard(spark, [merge_id])
                raise
            self.written.is_logged = self.written.is_logged or for_log is not None

    def run_merge(
        self,
        plan: DataFrame,
        *,
        merge_id: str,
        base_version: int,
        stored: Mapping[str, str],
        keys: str,
        open_rows: tuple[int, int] | None,
    ) -> None:
        """The commit of the dimension. Where it is known that there is none, the staged rows are discarded."""
        outbox, layout = self.outbox, self.outbox.layout
        table, spark = outbox.target, plan.sparkSession
        try:
            with as_view(plan) as view:
                version = table.apply(
                    spark,
                    view,
                    layout,
                    outbox.spec,
                    merge_id=merge_id,
                    base_version=base_version,
                    stored=stored,
                    keys=keys,
                    open_rows=open_rows,
                )
        except Exception as error:
            if outbox and (is_conflict(error) or isinstance(error, TargetError)):
                outbox.discard(spark, [merge_id])
            raise
        self.written.version = version
        if outbox.log is None and version is not None and version > base_version + 1:
            # another merge may have begun a change log in between, which does not know of this one
            now = table.snapshot(spark)
            if now is not None:
                check_change_log(outbox, now)


def open_rows_in(stored: DataFrame | None, layout: Layout, spec: DimensionSpec) -> tuple[int, int] | None:
    """The count and the hash of the open rows; None if there is no table yet."""
    if stored is None:
        return None
    alive, summary = open_rows_of(layout, spec)
    found = stored.where(alive).selectExpr(f"{summary} as summary").collect()[0][0]
    return int(found.rows), int(found.hash)


def any_row(stored: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame | None:
    """A row of a plan that writes a stored row as it is; None if there is none."""
    columns = ", ".join(
        (quoted(name) if find(name, stored.columns) else f"cast(null as {kind})") + f" as {quoted(name)}"
        for name, kind in layout.columns(spec).items()
    )
    keys = ", ".join(quoted(key.name) for key in layout.keys)
    row = stored.limit(1).selectExpr(
        "'update' as action",
        f"struct({keys}) as key",
        f"struct({columns}) as new",
        f"struct({columns}) as stored",
    )
    row = row.localCheckpoint()
    return None if row.isEmpty() else row


def moment_text(moment: int) -> str:
    return f"{instants.EPOCH + moment * instants.MICROSECOND:%Y-%m-%d %H:%M:%S} UTC"


def filtered(stored: DataFrame | None, keys: str) -> DataFrame | None:
    """The rows for which a condition on ``t`` holds."""
    return stored.alias("t").where(keys) if stored is not None and keys else stored


def bucket_filter(plan: DataFrame, stored: DataFrame, layout: Layout) -> str:
    """A condition on ``t``, the target, that holds for all keys of a plan and for few others, or nothing.

    Delta joins the rows of a MERGE with the table by a shuffle of both; with it, only these few of the table move.
    """
    types = types_of(stored.schema)
    if any(types.get(key.name) != key.type or not SIMPLE.fullmatch(key.type) for key in layout.keys):
        return ""

    def bucket(prefix: str) -> str:
        named = ", ".join(f"{prefix}.{quoted(key.name)}" for key in layout.keys)
        return f"pmod(xxhash64({named}), 65536)"

    found = plan.selectExpr(f"{bucket('key')} as bucket").distinct().collect()
    return f"{bucket('t')} in ({', '.join(str(row.bucket) for row in found)})"


def check_change_log(outbox: Outbox, snapshot: Snapshot) -> bool:
    """Whether the dimension notes its change log already.

    Raises: TargetError if it notes one that this merge does not name.
    """
    spark, log = snapshot.rows.sparkSession, outbox.log
    noted = snapshot.properties.get(CHANGE_LOG)
    named = None if log is None else log.target.full_name(spark)
    if noted is not None and noted != named:
        name = outbox.target.sql_name
        mistake = Mistake(
            "change_log",
            f"{noted}, which keeps every change of this dimension: what a merge does not tell it, a later one undoes",
            "no change log" if named is None else named,
            f"set change_log: {noted}; if the log was renamed: ALTER TABLE {name} SET TBLPROPERTIES "
            f"('{CHANGE_LOG}' = '<its name>'); to give the log up: ALTER TABLE {name} UNSET TBLPROPERTIES "
            f"('{CHANGE_LOG}'), and drop it",
        )
        raise TargetError(counted("the spec", [mistake]), [mistake])
    return noted is not None
