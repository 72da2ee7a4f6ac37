"""The merge: plan, check, one commit; and again from the start if another writer was faster."""

from __future__ import annotations

import datetime as dt
import logging
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables import moments
from healing_tables.batch import events as events_of
from healing_tables.errors import ConflictError
from healing_tables.followers import Followers
from healing_tables.layout import resolve
from healing_tables.plan import changes
from healing_tables.refusals import Seen, check_events, check_plan
from healing_tables.spec import DimensionSpec
from healing_tables.targets.delta import DeltaTarget, is_conflict

log = logging.getLogger("healing_tables")

ATTEMPTS = 30
SHORTEST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds


@dataclass(frozen=True)
class MergeResult:
    """What a merge did.

    Attributes:
        inserted, closed, updated: rows. Of type 4, ``closed`` counts keys that left the table.
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

    def __str__(self) -> str:
        commit = "no commit" if self.commit_version is None else f"commit {self.commit_version}"
        attempts = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        return (
            f"{self.rows_in_batch} rows in the batch: {self.inserted} inserted, {self.closed} closed, "
            f"{self.updated} updated; {attempts}, {commit}, {self.seconds:.1f} s"
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
    Raises: BatchError, LateChangeError, TargetError, GuardError, ConflictError. The target is untouched then.
    """
    started = time.monotonic()
    spark = batch.sparkSession
    table = DeltaTarget(target) if isinstance(target, str) else target
    is_full = spec.full_batch if full_batch is None else full_batch
    fixed = None if at is None else moments.micros(at)
    stored = table.read(spark)
    layout = resolve(
        spec,
        batch.schema,
        None if stored is None else stored.schema,
        moment_type="date" if moments.is_date(at) else "timestamp",
    )
    batch_id = batch_id or str(uuid.uuid4())
    followers = Followers(table, layout, spec)
    if followers:
        followers.prepare(spark)
        followers.catch_up(spark, retrying)
    # Computed once, and not again when the table changes, as a cached frame would be
    events = events_of(batch, layout, spec, fixed if fixed is not None else 0).localCheckpoint()
    seen = check_events(events, layout, is_full)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            merge_id = str(uuid.uuid4())
            if attempt > 1:
                stored = table.read(spark)
            counts, version = attempt_merge(
                events, stored, followers, fixed, is_full, seen, merge_id, batch_id
            )
            break
        except Exception as error:
            if not is_conflict(error):
                raise
            if attempt == ATTEMPTS:
                raise ConflictError(
                    f"{table.name}: {ATTEMPTS} attempts met a commit of another writer; nothing was written. "
                    "Merge again when fewer writers change the same keys, or give them batches of disjoint keys."
                ) from error
            wait(attempt)
    result = MergeResult(
        rows_in_batch=seen.rows,
        inserted=counts.get("insert", 0),
        closed=counts.get("close", 0) + counts.get("remove", 0),
        updated=counts.get("update", 0),
        attempts=attempt,
        commit_version=version,
        seconds=time.monotonic() - started,
        batch_id=batch_id,
    )
    log.info("%s: %s", table.name, result)
    return result


def attempt_merge(
    events: DataFrame,
    stored: DataFrame | None,
    followers: Followers,
    fixed: int | None,
    is_full: bool,
    seen: Seen,
    merge_id: str,
    batch_id: str,
) -> tuple[dict[str, int], int | None]:
    """Read, plan, check, commit. Returns the number of rows by action, and the commit's version."""
    spark = events.sparkSession
    table, layout, spec = followers.target, followers.layout, followers.spec
    moment = moments.now() if fixed is None else fixed
    if spec.changed_at is None:
        events = events.withColumn("at", f.expr(f"{moment}L"))
    keys = "" if is_full or layout.is_sequence else seen.keys
    known = stored.alias("t").where(keys) if stored is not None and keys else stored
    ended = followers.ended(spark)
    plan = changes(events, known, layout, spec, moment, is_full, ended).localCheckpoint()
    counts = check_plan(plan, stored, layout, spec)
    if stored is None:
        table.create(spark, layout.columns(spec))
    elif layout.new_columns:
        table.add_columns(spark, layout.new_columns)
    if not counts:
        return counts, None
    if followers:
        followers.announce(plan, merge_id, batch_id)
    view = f"healing_tables_plan_{merge_id.replace('-', '')}"
    plan.createOrReplaceTempView(view)
    try:
        version = table.apply(spark, view, layout, spec, merge_id=merge_id, keys=keys)
    except Exception as error:
        if followers and is_conflict(error):
            followers.withdraw(spark, merge_id)
        raise
    finally:
        spark.catalog.dropTempView(view)
    if followers:
        followers.catch_up(spark, retrying)
    return counts, version


def retrying(work: Callable[[], object]) -> None:
    """Do something idempotent until no other writer is in the way."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            work()
            return
        except Exception as error:
            if not is_conflict(error) or attempt == ATTEMPTS:
                raise
            wait(attempt)


def wait(attempt: int) -> None:
    """Exponential backoff with full jitter."""
    longest = min(LONGEST_WAIT, SHORTEST_WAIT * 2**attempt)
    time.sleep(random.uniform(0, longest))
