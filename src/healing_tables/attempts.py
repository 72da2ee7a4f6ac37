"""One attempt of a merge: read, plan, check, commit."""

from __future__ import annotations

import re
import uuid
from collections import Counter
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables import moments
from healing_tables.batch import key_names
from healing_tables.change_log import ChangeLog
from healing_tables.difference import difference
from healing_tables.errors import LateChangeError, Mistake, TargetError, counted
from healing_tables.followers import Followers
from healing_tables.layout import Layout, find, types_of
from healing_tables.naming import quoted
from healing_tables.plan import changes, check_can_end
from healing_tables.refusals import Seen, check_plan, check_problems
from healing_tables.spec import DimensionSpec
from healing_tables.stored import stored_rows
from healing_tables.targets.conflicts import is_conflict
from healing_tables.targets.delta import as_view
from healing_tables.targets.merge_statement import STALE, open_rows_of

# Up to here the MERGE names the keys that it touches; the text of the statement grows with them
FEW_ROWS = 10_000
# Equal keys of these types have one hash; floats and collated text do not
SIMPLE = re.compile("(tinyint|smallint|int|bigint|string|date|timestamp_[ln]tz|boolean|decimal.*)")


class StalePlan(Exception):
    """Another writer said something since the plan was made; the attempt has to be made again."""

    def __init__(self) -> None:
        super().__init__(STALE)


@dataclass
class Merge:
    """What all attempts of one merge share, and what they have done so far.

    Attributes:
        events: of the batch (batch.events).
        at: the moment of the batch where its rows have none, in microseconds; None: that of the attempt.
        rows: rows that were changed, by action.
        version: of the last commit; None if there was none.
    """

    events: DataFrame
    followers: Followers
    log: ChangeLog | None
    seen: Seen
    is_full: bool
    at: int | None
    batch_id: str
    rows: Counter[str] = field(default_factory=Counter)
    version: int | None = None
    log_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def attempt(self) -> None:
        """Raises: what Delta raises on a conflict, or StalePlan; HealingTablesError."""
        began = moments.now()
        stored = self.followers.target.read(self.events.sparkSession)
        if stored is None and self.followers.layout.has_history:
            self.check_begins()
        if self.followers and stored is not None:
            # after the read: the side tables hold all that the dimension does
            self.followers.catch_up(self.events.sparkSession)
        if self.log is None:
            self.merge_with_stored(stored, began)
        else:
            self.make_anew(stored, self.log)

    def check_begins(self) -> None:
        """Raises: TargetError if a dimension that is to be made has a history already."""
        followers, spark = self.followers, self.events.sparkSession
        if followers.history.rows(spark).isEmpty():
            return
        if followers.target.read(spark) is not None:
            raise StalePlan  # another writer has made it
        mistake = Mistake(
            followers.history.name,
            "no history, since there is no dimension yet",
            "the history of an earlier table of this name",
            "bring the dimension back, or drop or rename its history too",
        )
        raise TargetError(counted("the stored dimension", [mistake]), [mistake])

    def merge_with_stored(self, stored: DataFrame | None, began: int) -> None:
        """Args: began: before anything was read, in microseconds."""
        layout, spec = self.followers.layout, self.followers.spec
        moment = moments.of(None, layout.moment_type) if self.at is None else self.at
        events = self.events_at(moment)
        keys = "" if self.is_full or layout.is_sequence else self.seen.keys
        past = self.followers.past(events.sparkSession)
        known = among(stored, keys)
        # before the plan: Spark Connect reads when it computes, and what comes in between has to be noticed
        open_rows = open_rows_in(stored, layout, spec) if self.is_full else None
        plan = changes(events, known, layout, spec, moment, self.is_full, past).localCheckpoint()
        try:
            counts = check_plan(plan, stored, layout, spec)
        except (LateChangeError, TargetError) as error:
            # Spark Connect reads when it computes: a commit may have come after the moment was taken,
            # or between the table and its history
            is_ours = self.at is None and spec.changed_at is None
            may_be_stale = is_ours if isinstance(error, LateChangeError) else layout.has_history
            if may_be_stale and self.followers.target.has_commit_since(plan.sparkSession, began):
                raise StalePlan from None
            raise
        self.commit(plan, counts, stored, keys, open_rows)

    def make_anew(self, stored: DataFrame | None, log: ChangeLog) -> None:
        """Log first, then the dimension: the versions of the touched keys follow from all that the log holds of them.

        Whoever adds to the log later sees both changes; who has planned without the later one finds its plan stale.
        """
        followers, layout, spec = self.followers, self.followers.layout, self.followers.spec
        spark, keys = self.events.sparkSession, key_names(layout)
        check_can_end(layout, spec, self.is_full)
        if self.at is None:
            self.at = moments.of(None, layout.moment_type)  # what the log holds does not move
        log.prepare(spark, stored)
        marks = followers.marks(spark)
        version = log.target.version(spark)
        logged = log.read(spark, version)
        # what a killed process left in the log, and not in the dimension
        left = logged.where(f.col("merge_id").isin(marks))
        left_ids = [row[0] for row in left.select("merge_id").distinct().collect()] if marks else []
        is_full = bool(self.is_full or (left_ids and not left.where("is_full").isEmpty()))

        range_ = "" if is_full or left_ids or stored is None else self.seen.keys
        batch = self.events_at(self.at)
        known = stored_rows(batch, among(stored, range_), layout, spec)
        touched = batch.select(*keys)
        if left_ids:
            touched = touched.unionByName(left.where("not is_full").select(*keys))
        if is_full:
            touched = touched.unionByName(known.select(*keys))
        if stored is None:  # it was dropped: the log brings all of it back
            touched = touched.unionByName(logged.where("not is_full").select(*keys))
        touched = touched.distinct()
        said = log.changes(
            log.read(spark, version, range_), touched, batch, self.full_at
        ).localCheckpoint()
        check_problems(said, layout)
        held = log.held(batch, self.full_at)
        full = logged.where("is_full").localCheckpoint()  # few rows, asked for more than once
        events = log.with_absences(said, full, held, self.full_at)
        made = changes(events, None, layout, spec, self.at, False)
        known = known.join(touched, keys, "left_semi")
        plan = difference(made, known, events, layout, spec).localCheckpoint()
        counts = check_plan(plan, stored, layout, spec)

        news = said.where("not is_logged").drop("is_logged")
        if not news.isEmpty() or (
            self.full_at is not None and not log.has_full(full, held, self.full_at)
        ):
            followers.mark(spark, self.log_id)
            left_ids.append(self.log_id)
            version += 1
            if log.append(news, self.log_id, full_at=self.full_at, held=held) != version:
                raise StalePlan
        self.commit(plan, counts, stored, "" if layout.is_sequence else range_)
        if log.target.version(spark) != version:
            raise StalePlan
        if left_ids:
            followers.unmark(spark, left_ids)

    @property
    def full_at(self) -> int | None:
        return self.at if self.is_full else None

    def events_at(self, moment: int) -> DataFrame:
        if self.followers.spec.changed_at is not None:
            return self.events
        return self.events.withColumn("at", f.expr(f"{moment}L"))

    def commit(
        self,
        plan: DataFrame,
        counts: dict[str, int],
        stored: DataFrame | None,
        keys: str,
        open_rows: tuple[int, int] | None = None,
    ) -> None:
        """Args:
        counts: rows by action.
        keys: a condition on ``t``, the target, that holds for all keys of the plan.
        open_rows: of a full batch, what it was compared with.
        """
        spark, followers = plan.sparkSession, self.followers
        table, layout, spec = followers.target, followers.layout, followers.spec
        if stored is None:
            table.create(spark, layout.columns(spec))
        else:
            present = stored.columns  # another writer may have added them since
            new = [(name, kind) for name, kind in layout.new_columns if not find(name, present)]
            if new:
                table.add_columns(spark, new)
        if not counts:
            return
        if stored is not None and not layout.is_sequence and sum(counts.values()) <= FEW_ROWS:
            keys = " and ".join(part for part in (keys, in_buckets(plan, stored, layout)) if part)
        largest_key = 0
        if layout.is_sequence and (self.log is not None or layout.has_history):
            largest_key = self.largest_key(plan)  # rows can leave the table; their keys stay taken
        merge_id = str(uuid.uuid4())
        if followers:
            followers.announce(plan, merge_id, self.batch_id)
        rows = plan
        if set(counts) <= {"archive", "absent"}:
            # keys that come and go in one batch: a row is written as it is, so that there is a commit, which other
            # writers cannot miss
            row = None if stored is None else any_row(stored, layout, spec)
            if row is None:
                followers.hand_on(spark, merge_id)
                return
            rows, keys = plan.unionByName(row, allowMissingColumns=True), ""
        try:
            with as_view(rows) as view:
                self.version = table.apply(
                    spark,
                    view,
                    layout,
                    spec,
                    merge_id=merge_id,
                    keys=keys,
                    largest_key=largest_key,
                    open_rows=open_rows,
                )
        except Exception as error:
            if followers and is_conflict(error):
                followers.withdraw(spark, merge_id)
            raise
        self.rows.update(counts)
        if followers:
            followers.catch_up(spark)

    def largest_key(self, plan: DataFrame) -> int:
        """The largest integer key of the rows that have left this dimension, or leave it now."""
        table, spark = self.followers.target, plan.sparkSession
        name = f"stored.{quoted(self.followers.layout.surrogate or '')}"
        known = table.largest_key(spark)
        leaving = plan.where("action = 'remove'").selectExpr(f"coalesce(max({name}), 0)").collect()
        if leaving[0][0] > known:
            known = int(leaving[0][0])
            table.remember_largest_key(spark, known)
        return known


def open_rows_in(
    stored: DataFrame | None, layout: Layout, spec: DimensionSpec
) -> tuple[int, int] | None:
    """The count and the hash of the open rows; None if there is no table yet."""
    if stored is None:
        return None
    alive, summary = open_rows_of(layout, spec)
    found = stored.where(alive).selectExpr(f"{summary} as summary").collect()[0][0]
    return int(found.rows), int(found.hash)


def any_row(stored: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame | None:
    """A row of a plan that writes a stored row as it is; None if there is none."""
    columns = ", ".join(
        (quoted(name) if find(name, stored.columns) else f"cast(null as {kind})")
        + f" as {quoted(name)}"
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


def among(stored: DataFrame | None, keys: str) -> DataFrame | None:
    """The rows for which a condition on ``t`` holds."""
    return stored.alias("t").where(keys) if stored is not None and keys else stored


def in_buckets(plan: DataFrame, stored: DataFrame, layout: Layout) -> str:
    """A condition on ``t``, the target, that holds for all keys of a plan and for few others, or nothing.

    Delta joins the rows of a MERGE with the table by a shuffle of both; with it, only these few of the table move.
    """
    types = types_of(stored.schema)
    if any(
        types.get(key.name) != key.type or not SIMPLE.fullmatch(key.type) for key in layout.keys
    ):
        return ""

    def bucket(prefix: str) -> str:
        named = ", ".join(f"{prefix}.{quoted(key.name)}" for key in layout.keys)
        return f"pmod(xxhash64({named}), 65536)"

    found = plan.selectExpr(f"{bucket('key')} as bucket").distinct().collect()
    return f"{bucket('t')} in ({', '.join(str(row.bucket) for row in found)})"
