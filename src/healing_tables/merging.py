"""The merge: plan, check, one commit; and again from the start if another writer was faster."""

from __future__ import annotations

import datetime as dt
import logging
import time
import uuid
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from healing_tables import moments
from healing_tables.attempts import Merge
from healing_tables.batch import events as events_of
from healing_tables.change_log import ChangeLog
from healing_tables.errors import ArgumentError, Mistake, counted
from healing_tables.followers import Followers
from healing_tables.layout import Layout, find, types_of
from healing_tables.plan import changes, full_batch_of, moment_of
from healing_tables.refusals import check_events, check_plan
from healing_tables.resolving import resolve
from healing_tables.retries import retrying
from healing_tables.spec import DimensionSpec
from healing_tables.targets.delta import DeltaTarget

log = logging.getLogger("healing_tables")


@dataclass(frozen=True)
class MergeResult:
    """What a merge did.

    Attributes:
        inserted, closed, updated: rows. Of type 4, ``closed`` counts keys that left the table.
        removed: versions that a late change replaced, by way of a change log.
        attempts: 1 unless other writers were faster.
        commit_version: of the Delta table; None if there was nothing to change, and so no commit.
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

    def __str__(self) -> str:
        commit = "no commit" if self.commit_version is None else f"commit {self.commit_version}"
        removed = f", {self.removed} replaced" if self.removed else ""
        attempts = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        return (
            f"{self.rows_in_batch} rows in the batch: {self.inserted} inserted, {self.closed} closed, "
            f"{self.updated} updated{removed}; {attempts}, {commit}, {self.seconds:.1f} s"
        )


def merge(
    batch: DataFrame,
    target: DeltaTarget | str,
    spec: DimensionSpec,
    *,
    at: dt.datetime | dt.date | str | None = None,
    full_batch: bool | None = None,
    batch_id: str | None = None,
) -> MergeResult:
    """Merge a batch into a stored dimension, in one commit.

    Args:
        batch: current states of some or all keys, or changes with moments (``spec.changed_at``). Its session is used.
        target: a Delta table, by name or path, which the first merge makes; or a DeltaTarget.
        at: the moment of the batch where its rows have none; without an offset it is UTC. Default: now, anew in
            each attempt.
        full_batch: overrides ``spec.full_batch``.
        batch_id: stands in the audit. Default: a new one.
    Raises: ArgumentError, BatchError, LateChangeError, TargetError, GuardError, ConflictError. The target is untouched then.
    """
    started = time.monotonic()
    spark = batch.sparkSession
    table = target if isinstance(target, DeltaTarget) else DeltaTarget(target)
    is_full = full_batch_of(full_batch, spec)
    stored = table.read(spark)
    layout = resolve(
        spec,
        batch.schema,
        None if stored is None else stored.schema,
        moment_type="date" if moments.is_date(at) else moments.TIMESTAMP,
    )
    layout = replace(layout, partitions=tuple(table.partitions(spark, is_new=stored is None)))
    batch_id = batch_id or str(uuid.uuid4())
    fixed = None
    if at is not None or spec.changed_at is None or is_full:  # now may be after the end of time
        moment = moment_of(at, layout, spec)
        fixed = None if at is None else moment
    followers = Followers(table, layout, spec)
    change_log = None if spec.change_log is None else DeltaTarget(spec.change_log)
    check_own_names(followers, change_log)
    check_partitions(layout, spec)
    # Computed once, and not again when the table changes, as a cached frame would be
    events = events_of(batch, layout, spec, fixed if fixed is not None else 0).localCheckpoint()
    seen = check_events(events, layout, is_full)
    if followers or change_log is not None:
        retrying(table.name, lambda: followers.prepare(spark))
    log_ = None
    if change_log is not None:
        given = types_of(batch.schema)
        ties = {name: given[find(name, given) or name] for name in spec.tie_break_by}
        log_ = ChangeLog(change_log, layout, spec, ties)
    work = Merge(events, followers, log_, seen, is_full, fixed, batch_id)
    attempts = retrying(table.name, work.attempt)
    left_table = work.rows["remove"] if layout.has_history else 0
    result = MergeResult(
        rows_in_batch=seen.rows,
        inserted=work.rows["insert"],
        closed=work.rows["close"] + left_table,
        updated=work.rows["update"],
        removed=work.rows["remove"] - left_table,
        attempts=attempts,
        commit_version=work.version,
        seconds=time.monotonic() - started,
        batch_id=batch_id,
    )
    log.info("%s: %s", table.name, result)
    return result


def check_own_names(followers: Followers, change_log: DeltaTarget | None) -> None:
    """Raises: ArgumentError if two tables of a dimension are one."""
    tables = {"the dimension": followers.target, "its pending rows": followers.pending}
    if followers.layout.has_history:
        tables["its history"] = followers.history
    if followers.spec.audit is not None:
        tables["audit.table"] = followers.audit
    if change_log is not None:
        tables["change_log"] = change_log
    seen: dict[str, str] = {}
    mistakes = []
    for what, table in tables.items():
        name = table.name.replace("`", "").lower()
        if name in seen:
            got = f"{table.name}, which is {seen[name]}"
            mistakes.append(Mistake(what, "a table of its own", got, "choose another name"))
        seen.setdefault(name, what)
    if mistakes:
        raise ArgumentError(counted("the dimension", mistakes), mistakes)


def check_partitions(layout: Layout, spec: DimensionSpec) -> None:
    """Raises: ArgumentError if the table is partitioned by what it does not have, or by timestamps.

    Delta stores a timestamp in a partition column as local time: where the clocks are set back, it is another moment.
    """
    columns = layout.columns(spec)
    mistakes = []
    for name in layout.partitions:
        found = find(name, columns)
        if found is None:
            wanted, remedy = f"columns of the dimension: {', '.join(columns)}", "correct it"
            mistakes.append(Mistake("partition_by", wanted, name, remedy))
        elif columns[found] == moments.TIMESTAMP:
            wanted = "columns whose values do not depend on the time zone of the session"
            remedy = "partition by a date or another column"
            mistakes.append(Mistake("partition_by", wanted, f"{name}, a timestamp", remedy))
    if mistakes:
        raise ArgumentError(counted("the dimension", mistakes), mistakes)


def check_alone(batch: DataFrame, spec: DimensionSpec) -> None:
    """Raises: what `merge` into a table that is yet to be made would raise; nothing is written."""
    layout = resolve(spec, batch.schema, None, moment_type=moments.TIMESTAMP)
    events = events_of(batch, layout, spec, 0)
    check_events(events, layout, spec.full_batch)
    check_plan(changes(events, None, layout, spec, 0, False), None, layout, spec)
