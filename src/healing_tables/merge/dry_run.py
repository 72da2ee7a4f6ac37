"""What a merge would do: its plan and its checks, without the commit."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import rows_text
from healing_tables.merge.attempt import changes_by_log, filtered
from healing_tables.merge.change_log import ChangeLog
from healing_tables.merge.erased import without_erased
from healing_tables.merge.frames import spark_frame
from healing_tables.merge.merge import TABLES, with_log
from healing_tables.plan.batch import events as events_of
from healing_tables.plan.batch import key_names
from healing_tables.plan.plan import changes, resolved, without_late
from healing_tables.plan.stored_rows import with_wider_types
from healing_tables.plan.validation import check_events, check_plan, current_keys
from healing_tables.sql.types import types_of
from healing_tables.sql.values import JSON
from healing_tables.targets.find import Target, target_of
from healing_tables.targets.table import CHANGE_LOG

SHOWN = 10


@dataclass(frozen=True)
class DryRun:
    """What a merge would do.

    Attributes:
        counts: rows by action: insert, close, update; remove, archive, absent of type 4.
        lines: a text for each of the first ten rows, in the order of their keys.
        set_aside: rows of the batch that would be set aside.
    """

    rows_in_batch: int
    counts: Mapping[str, int]
    lines: tuple[str, ...]
    set_aside: int = 0

    def __str__(self) -> str:
        done = {"insert": "inserted", "close": "closed", "update": "updated", "remove": "moved to the history"}
        aside = f", {self.set_aside} set aside" if self.set_aside else ""
        parts = [f"{self.counts.get(action, 0)} {word}" for action, word in done.items() if action in self.counts]
        rows = rows_text(self.rows_in_batch)
        return (
            f"{rows} in the batch would be {', '.join(parts)}{aside}"
            if parts
            else f"{rows} in the batch: nothing to change{aside}"
        )


def dry_run(
    batch: Any,
    target: Target | str,
    spec: DimensionSpec,
    *,
    at: dt.datetime | dt.date | str | None = None,
    full_batch: bool | None = None,
) -> DryRun:
    """Plan a merge and check it. Nothing is written.

    Args: as of `merge`.
    Raises: what `merge` raises before it writes.
    """
    batch = spark_frame(batch)
    spark = batch.sparkSession
    table = target_of(spark, target)
    stored = table.read(spark)
    schema = table.as_stored(batch.schema)
    computed = table.computed_columns(spark)
    layout, spec, moment, is_full = resolved(
        batch, stored, spec, at, full_batch, schema, partial(table.can_widen, spark), computed
    )
    if stored is not None:
        stored = with_wider_types(stored, layout)
    noted = None if stored is None else table.noted(spark, CHANGE_LOG)
    spec = with_log(spec, table, layout, noted, is_new=stored is None)
    batch = without_erased(batch, table, layout, spec, moment)
    events = events_of(batch, layout, spec, moment).localCheckpoint()
    figures = check_events(events, layout, spec, is_full)
    events, aside = events.where("reason is null"), events.where("reason is not null")
    keys = key_names(layout)
    log = ChangeLog.of(table, layout, spec, types_of(batch.schema))
    set_aside = figures.aside
    if log is not None:
        full_at = moment if is_full else None
        past = TABLES[type(table)](table, layout, spec, log).history.read(spark) if layout.has_history else None
        logged = log.preview(spark, stored, past)
        plan = changes_by_log(
            events,
            logged,
            stored,
            log,
            moment,
            is_full=is_full or figures.truncates,
            full_at=full_at,
            aside=aside,
            history=past,
        ).plan
    else:
        tables = TABLES[type(table)](table, layout, spec, None)
        past = tables.history.read(spark) if layout.has_history else None
        past = None if past is None else tables.history_rows(past)
        of_keys = filtered(stored, "" if is_full else figures.keys)
        events, late = without_late(events, of_keys, layout, spec, moment, is_full, past)
        present = aside.select(keys)
        if late is not None:
            present = present.union(late.select(keys))
            set_aside += late.agg(f.expr("sum(rows)")).collect()[0][0]
        plan = changes(events, of_keys, layout, spec, moment, is_full, past, present).localCheckpoint()
    counts = check_plan(plan, lambda: 0 if stored is None else current_keys(stored, layout, spec), layout, spec).counts
    shown = plan.where("action not in ('archive', 'absent')").orderBy("key", "moment", "action").limit(SHOWN)
    rows = shown.selectExpr(
        "action",
        "reason",
        f"to_json(key, {JSON}) as key",
        "changed_columns",
        f"to_json(stored, {JSON}) as stored",
        f"to_json(new, {JSON}) as new",
    ).collect()
    return DryRun(figures.rows, counts, tuple(line(row, layout) for row in rows), set_aside)


def line(row: Row, layout: Layout) -> str:
    """``update {"id":2} overwritten: city "Y" -> "Z"``; of a new row its attributes and its start."""
    key = json.loads(row["key"])
    if row["stored"] is None or row["new"] is None:
        values = json.loads(row["new"] or row["stored"])
        names = [*(column.name for column in layout.attributes), layout.names.get("valid_from")]
        listed = [f"{name} {json.dumps(values[name], ensure_ascii=False)}" for name in names if name in values]
    else:
        before, after = json.loads(row["stored"]), json.loads(row["new"])
        listed = [
            f"{name} {json.dumps(before[name], ensure_ascii=False)} -> {json.dumps(after[name], ensure_ascii=False)}"
            for name in row["changed_columns"]
            if name != layout.names.get("is_current") and name in before and name in after
        ]
    return f"{row['action']:6} {json.dumps(key, ensure_ascii=False)} {row['reason']}: {', '.join(listed)}"
