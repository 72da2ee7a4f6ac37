"""The plan of a merge: the row changes that a batch makes to a stored dimension. It reads and writes no table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from healing_tables.definition.layout import Layout
from healing_tables.definition.resolve_layout import resolve
from healing_tables.definition.spec import FULL_WITHOUT_PLACE, DimensionSpec
from healing_tables.definition.stored_layout import NO_COLUMNS, CanWiden, always
from healing_tables.errors import ArgumentError, Mistake, SpecError, TargetError, counted
from healing_tables.plan.batch import events as events_of
from healing_tables.plan.batch import key_names, part_of_stored, presence
from healing_tables.plan.columns import EVENT, IS_EVENT, PAST, STORED, new_values
from healing_tables.plan.feed import check_has_log
from healing_tables.plan.stored_ends import spec_of_rows
from healing_tables.plan.stored_rows import rows_of, stored_rows, with_wider_types
from healing_tables.plan.timeline import LATE, TIED, versions, with_outcomes, with_transitions
from healing_tables.sql import instants
from healing_tables.sql.values import with_plain_text


def plan(
    batch: DataFrame,
    stored: DataFrame | None,
    spec: DimensionSpec,
    at: dt.datetime | dt.date | str | None = None,
    *,
    full_batch: bool | None = None,
) -> DataFrame:
    """Return the row changes that a batch makes to a dimension. Only the two are read, and nothing is written.

    Args:
        batch: current states, or changes with moments (``spec.changed_at``).
        stored: the stored dimension; None if it does not exist yet.
        at: the moment of the batch if its rows have none; in UTC unless it has an offset. Default: now.
        full_batch: overrides ``spec.full_batch``.
    Returns: a row per change:
        ``action`` (string): insert, close, update; remove, archive (type 4: from the table, to its history), absent
            (type 4: the key came and went within the batch, and has no row); refuse
        ``reason`` (string): why
        ``key`` (struct of the key columns)
        ``moment`` (bigint): microseconds, when it happened
        ``rows`` (bigint): rows of the batch that the change shows; a row that changes nothing is in no plan
        ``cause`` (struct of the texts change_reason, change_source, correlation_id): from the row of the batch that
            starts the version
        ``changed_columns`` (array of string): what differs from the stored row; NULL for an insert
        ``new``, ``stored`` (structs of all columns of the dimension): the row after and before the merge
        ``last_from`` (bigint): start of the key's last stored version, in microseconds; NULL for a new key
        ``ends_key`` (boolean): the key has no open version any more
        ``archived`` (struct): the row for the history table of type 4 (keys, attributes, valid_from, valid_to)
    Raises: SpecError for rules of change data capture, which need a change log; ArgumentError, BatchError: for a wrong
        moment or wrong columns; TargetError: also if the stored rows have
        another open end or other flags than the spec names. Wrong rows are changes with the action ``refuse``; rows
        that a merge sets aside are left out.
    """
    check_has_log(replace(spec, change_log=None))
    batch, stored = with_plain_text(batch), None if stored is None else with_plain_text(stored)
    layout, spec, moment, is_full = resolved(batch, stored, spec, at, full_batch)
    stored = None if stored is None else with_wider_types(stored, layout)
    events = events_of(batch, layout, spec, moment)
    usable, aside = events.where("reason is null"), events.where("reason is not null")
    usable, late = without_late(usable, stored, layout, spec, moment, is_full)
    keys = key_names(layout)
    present = aside.select(keys) if late is None else aside.select(keys).union(late.select(keys))
    return changes(usable, stored, layout, spec, moment, is_full, present=present)


def resolved(
    batch: DataFrame,
    stored: DataFrame | None,
    spec: DimensionSpec,
    at: dt.datetime | dt.date | str | None,
    full_batch: bool | None,
    schema: StructType | None = None,
    can_widen: CanWiden = always,
    computed: Mapping[str, bool] = NO_COLUMNS,
) -> tuple[Layout, DimensionSpec, int, bool]:
    """The layout of the dimension, its definition with what the stored rows show, the moment of the batch, and whether
    absent keys end.

    Args: schema: of the batch, in the types that the table stores; can_widen, computed: see `resolve`.
        Others and Raises: see `plan`.
    """
    layout = resolve(
        spec,
        schema or batch.schema,
        None if stored is None else stored.schema,
        moment_type="date" if instants.is_date(at) else instants.TIMESTAMP,
        can_widen=can_widen,
        computed=computed,
    )
    if stored is not None:
        spec, _ = spec_of_rows(stored, layout, spec)
    return layout, spec, moment_of(at, layout, spec), full_batch_of(full_batch, spec)


def moment_of(at: dt.datetime | dt.date | str | None, layout: Layout, spec: DimensionSpec) -> int:
    """The moment of a batch in microseconds: the one given, or now.

    Raises: ArgumentError if it is no moment, or not before the end of time.
    """
    kind = layout.moment_type
    try:
        moment = instants.of(at, kind)
        is_wrong = moment >= instants.open_from(spec.valid_to_current, kind)
    except (ValueError, AttributeError, OverflowError):
        is_wrong = True
    if is_wrong:
        wanted = "a moment before the end of time, such as '2024-01-31 10:00:00', or None for now"
        mistake = Mistake("at", wanted, repr(at), "give a datetime, or a text such as '2024-01-31 02:00:00'")
        raise ArgumentError(counted("the batch", [mistake]), [mistake])
    return moment


def full_batch_of(given: bool | None, spec: DimensionSpec) -> bool:
    """Whether absent keys end. Raises: ArgumentError: the text 'false' would be true."""
    if given is None:
        return spec.full_batch
    if not isinstance(given, bool):
        mistake = Mistake("full_batch", "True, False or None", repr(given), "give one of the three")
        raise ArgumentError(counted("the batch", [mistake]), [mistake])
    if given and spec.sequence_by:
        mistake = Mistake(*FULL_WITHOUT_PLACE)
        raise ArgumentError(counted("the batch", [mistake]), [mistake])
    return given


def changes(
    events: DataFrame,
    stored: DataFrame | None,
    layout: Layout,
    spec: DimensionSpec,
    moment: int,
    full_batch: bool,
    past: DataFrame | None = None,
    present: DataFrame | None = None,
) -> DataFrame:
    """`plan` on events that are already checked and named (see batch.events).

    Args:
        past: of type 4, the rows of its history: ``k1..n``, ``at``, ``until``, ``boundary``, ``state``.
        present: ``k1..n`` of a full batch: keys of rows that were set aside, so these keys are not absent.
    """
    check_can_end(layout, spec, full_batch)
    items = on_timeline(events, stored, layout, spec, moment, full_batch, past, present)
    steps = with_transitions(with_outcomes(items, layout), layout)
    return new_values(versions(steps, layout), layout, spec)


def without_late(
    events: DataFrame,
    stored: DataFrame | None,
    layout: Layout,
    spec: DimensionSpec,
    moment: int,
    full_batch: bool,
    past: DataFrame | None = None,
) -> tuple[DataFrame, DataFrame | None]:
    """The events without the late ones, and these with their ``reason``; None if there is none, or late changes are
    refused. Args: as of `changes`.

    A late row can hide that an earlier one is late, too, so the rest is looked at again.
    """
    late: DataFrame | None = None
    if spec.on_late == "error":
        return events, late
    where = [*key_names(layout), "at"]
    reason = f"case outcome when 'late' then '{LATE}' else '{TIED}' end as reason"
    while True:
        items = on_timeline(events, stored, layout, spec, moment, full_batch, past)
        outcomes = with_outcomes(items, layout).where(f"{IS_EVENT} and outcome in ('late', 'tied')")
        # absent keys have no row of the batch that could be set aside
        found = events.drop("reason").join(outcomes.selectExpr(*where, reason), where).localCheckpoint()
        if found.isEmpty():
            return events, late
        late = found if late is None else late.unionByName(found)
        events = events.join(found.select(where), where, "left_anti").localCheckpoint()


def on_timeline(
    events: DataFrame,
    stored: DataFrame | None,
    layout: Layout,
    spec: DimensionSpec,
    moment: int,
    full_batch: bool,
    past: DataFrame | None,
    present: DataFrame | None = None,
) -> DataFrame:
    """The items of `timeline.with_outcomes`. Args: as of `changes`."""
    keys, parts = key_names(layout), events.select("part").distinct() if spec.within and full_batch else None
    events = events.drop("tie", "is_logged", "reason", "given", "part")
    if not full_batch:
        stored = rows_of(events, stored, layout)
    in_table = touched = stored_rows(events, stored, layout, spec)
    if full_batch:
        alive = in_table.where("alive")
        missing = alive if parts is None else alive.join(parts, f.expr(f"part = {part(layout, spec)}"), "left_semi")
        named = events.select(*keys) if present is None else events.select(*keys).union(present.select(*keys))
        absent = missing.join(named, keys, "left_anti").selectExpr(*keys, f"{moment}L as at", "true as is_deleted")
        if spec.changed_at is not None:
            # a key that returns may have a moment before its end
            seen = in_table.select(keys) if past is None else in_table.select(keys).union(past.select(keys))
            ended = seen.join(alive, keys, "left_anti")
            returned = presence(events, layout, moment).join(ended, keys, "left_semi")
            events = events.unionByName(returned.drop("rows"), allowMissingColumns=True)
        events = events.unionByName(absent, allowMissingColumns=True)
        touched = in_table.join(events.select(*keys), keys, "left_semi")
    items = touched.selectExpr("*", f"{STORED} as kind").unionByName(
        events.selectExpr("*", f"{EVENT} as kind"), allowMissingColumns=True
    )
    if past is not None:
        earlier = past.join(events.select(*keys), keys, "left_semi").selectExpr("*", f"{PAST} as kind")
        items = items.unionByName(earlier, allowMissingColumns=True)
    return items


def part(layout: Layout, spec: DimensionSpec) -> str:
    """What a stored row is a part of. Raises: SpecError if the table has no column for it."""
    found = part_of_stored(layout, spec)
    if found is None:
        mistake = Mistake(
            "within",
            "keys or attributes, for a merge without a change log",
            ", ".join(spec.within),
            "name these columns in attributes; or keep a change_log",
        )
        raise SpecError(counted("the dimension", [mistake]), [mistake])
    return found


def check_can_end(layout: Layout, spec: DimensionSpec, full_batch: bool) -> None:
    """Raises: TargetError if the end of a key would leave no trace."""
    ends = ("deleted_when", "truncated_when")
    option = "full_batch" if full_batch else next((name for name in ends if getattr(spec, name) is not None), None)
    if option is None or layout.has_history:
        return
    if "valid_to" not in layout.names and "is_current" not in layout.names:
        mistake = Mistake(
            option,
            "a column valid_to or is_current, which says that a key has ended",
            "a dimension without either",
            f"add one of them, or leave {option} out",
        )
        raise TargetError(counted("the dimension", [mistake]), [mistake])
