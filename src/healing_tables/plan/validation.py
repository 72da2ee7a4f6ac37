"""Errors in the rows of a batch or of the stored dimension, reported with keys; and the guards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import (
    BatchError,
    GuardError,
    HealingTablesError,
    LateChangeError,
    Mistake,
    TargetError,
    counted,
    rows_text,
)
from healing_tables.plan.batch import TWO_ROWS, key_names, key_values
from healing_tables.plan.columns import EMPTY_PARTITION, key_struct
from healing_tables.plan.feed import NO_KEY
from healing_tables.plan.row_diff import UNKNOWN
from healing_tables.plan.stored_rows import is_deleted, stored_rows, with_damage
from healing_tables.plan.timeline import AHEAD, DAMAGED, LATE, TIED
from healing_tables.sql import instants
from healing_tables.sql.identifiers import quoted

GUARDED_FROM = 20  # current keys
SHOWN = 5  # keys in a message
RANGED = ("tinyint", "smallint", "int", "bigint", "date")  # and text
OTHER_ROWS = "or merge the other rows (on_late: set_aside)"
REMEDIES = {
    TWO_ROWS: (
        "one row per key and moment",
        "reduce the batch, set tie_break_by, or on_tie: greatest",
    ),
    EMPTY_PARTITION: (
        "a text that is not empty, or NULL: Delta stores '' in a partition column as NULL",
        "replace '' in the batch, or partition by a date or another column (partition_by)",
    ),
    LATE: (
        "changes in the order of their moments",
        f"merge batches in order; or keep a change_log, which places late changes by a rebuild of keys; {OTHER_ROWS}",
    ),
    TIED: (
        "one row per key and moment",
        f"correct the row, or give it a later moment; or keep a change_log and set tie_break_by; {OTHER_ROWS}",
    ),
    UNKNOWN: (
        "a log of every change of its keys",
        "name the change log in every merge into this dimension; drop its table to start it again from the stored rows",
    ),
    AHEAD: (
        "a history that ends where the row of its key starts",
        "the table was restored without its history: RESTORE <dimension>_history to the same moment, then merge again",
    ),
    DAMAGED: (
        "one current version per key, and versions that do not overlap",
        "repair the stored dimension (dbt run-operation healing_tables.repair), then merge again",
    ),
}


@dataclass(frozen=True)
class BatchFigures:
    """A batch in figures.

    Attributes:
        rows: in the batch; ``aside``: those of them that are set aside.
        keys: a condition on the first key column of ``t``, the target, that holds for the whole batch: Delta skips
            files by it, and writers of other keys do not conflict. Empty if there is none.
        truncates: a row ends all keys.
    """

    rows: int
    aside: int
    keys: str
    truncates: bool


@dataclass(frozen=True)
class PlanFigures:
    """A plan in figures. Attributes: counts: its rows by action; used: the rows of the batch that it shows."""

    counts: Mapping[str, int]
    used: int


def check_events(events: DataFrame, layout: Layout, spec: DimensionSpec, is_full: bool) -> BatchFigures:
    """Check for rows of the batch that cannot be placed on the timeline.

    Raises: BatchError on two different rows for a key and moment, and on a full batch without usable rows.
    """
    rows, aside, wrong, truncations, low, high = events.selectExpr(
        "coalesce(sum(rows), 0)",
        "coalesce(sum(if(reason is null, 0, rows)), 0)",
        "count(problem)",
        f"count_if(reason is null and {NO_KEY})" if spec.truncated_when is not None else "0",
        *[range_bound(f"{kind}({key_values(layout)[0]})", layout.keys[0].type) for kind in ("min", "max")],
    ).collect()[0]
    if wrong:
        check_problems(events, layout, has_moments=spec.changed_at is not None)
    if is_full and rows == aside:
        got = "a batch without rows" if rows == 0 else f"only rows that are set aside ({reasons_of(events)})"
        mistake = Mistake(
            "full_batch",
            "every existing key",
            f"{got}, which would end every key",
            "check the extract; merge with full_batch=False if nothing has changed",
        )
        raise BatchError(counted("the batch", [mistake]), [mistake])
    return BatchFigures(int(rows), int(aside), key_range(layout, low, high), truncations > 0)


def reasons_of(events: DataFrame) -> str:
    """The reasons for which rows are set aside, with their numbers."""
    found = events.where("reason is not null").groupBy("reason").agg(f.expr("sum(rows) as number")).orderBy("reason")
    return "; ".join(f"{row['reason']}: {rows_text(row['number'])}" for row in found.collect())


def check_problems(events: DataFrame, layout: Layout, *, has_moments: bool = True) -> None:
    """Args: has_moments: the rows have moments of their own, to be shown. Raises: BatchError if an event is refused."""
    wrong = events.where("problem is not null")
    if not wrong.isEmpty():
        moment = ["at as moment"] if has_moments else []
        raise validation_error(wrong.selectExpr("problem as reason", key_struct(layout), *moment), layout)


def range_bound(expression: str, kind: str) -> str:
    """A key as text for a SQL literal; NULL for types without a range. Strings are written as hex."""
    if kind == "string":
        return f"hex(cast({expression} as binary))"
    return f"cast({expression} as string)" if kind in RANGED else "cast(null as string)"


def key_range(layout: Layout, low: str | None, high: str | None) -> str:
    """Args: low, high: of `range_bound`."""
    if low is None or high is None:
        return ""
    key = layout.keys[0]
    prefix = "X" if key.type == "string" else ""
    found = " and ".join(
        f"t.{quoted(key.name)} {sign} cast({prefix}'{end}' as {key.type})" for sign, end in ((">=", low), ("<=", high))
    )
    return f"(t.{quoted(key.name)} is null or {found})" if layout.has_null_keys else found


def check_plan(plan: DataFrame, current: Callable[[], int], layout: Layout, spec: DimensionSpec) -> PlanFigures:
    """The figures of a plan, if nothing in it is refused.

    Args: current: the number of keys with a version that has not ended; only called if the plan ends one.
    Raises: LateChangeError, TargetError (a damaged dimension), GuardError.
    """
    found = plan.groupBy("action").agg(
        f.expr("count_if(ends_key) as ends"), f.expr("count(*) as number"), f.expr("sum(rows) as used")
    )
    counts: dict[str, int] = {}
    ended = used = 0
    for row in found.collect():
        counts[row["action"]] = int(row["number"])
        ended += int(row["ends"])
        used += int(row["used"] or 0)
    if "refuse" in counts:
        moment = ["moment"] if spec.changed_at is not None else []
        raise validation_error(plan.where("action = 'refuse'").select("reason", "key", *moment), layout)
    if ended:
        check_guard(ended, current(), spec)
    return PlanFigures(counts, used)


def check_surrogate_keys(plan: DataFrame, stored: DataFrame | None, layout: Layout) -> None:
    """Check the keys of new versions, if they are those of dbt_utils: these join texts by a hyphen, so that different
    versions can have one key. A hash as the library makes it cannot.

    Raises: BatchError with up to five pairs.
    """
    if layout.strategy != "dbt_utils" or layout.surrogate is None:
        return
    name = quoted(layout.surrogate)
    shown = [quoted(key.name) for key in layout.keys]
    shown += [quoted(layout.names["valid_from"])] if "valid_from" in layout.names else []

    def text(row: str) -> str:
        return f"cast(struct({', '.join(row + column for column in shown)}) as string) as row_text"

    made = plan.where("action = 'insert'").selectExpr(f"new.{name} as made", text("new."))
    if stored is not None:
        removed = plan.where("action = 'remove'").selectExpr(f"stored.{name} as made")
        kept = stored.selectExpr(f"{name} as made", text(""))
        kept = kept.join(made.select("made").distinct(), "made", "left_semi").join(removed, "made", "left_anti")
        made = made.unionByName(kept)
    row_texts = f.expr("array_join(sort_array(collect_list(row_text)), ' and ') as row_texts")
    pairs = made.groupBy("made").agg(row_texts, f.expr("count(*) as versions")).where("versions > 1")
    found = pairs.orderBy("row_texts").limit(SHOWN).collect()
    if found:
        mistake = Mistake(
            f"surrogate_key ({layout.surrogate})",
            "one version for each key",
            f"versions that share a surrogate key: {'; '.join(row['row_texts'] for row in found)}",
            "use the strategy hash: dbt_utils makes one key of different texts with hyphens, such as a-, b and a, -b",
            tuple(row["row_texts"] for row in found),
        )
        raise BatchError(counted("the batch", [mistake]), [mistake])


def check_stored(stored: DataFrame, layout: Layout, spec: DimensionSpec) -> None:
    """Raises: TargetError if any key of the dimension is damaged; a plan checks only the keys of its batch."""
    rows = stored_rows(stored, stored, layout, spec)
    found = with_damage(rows, layout).where("is_damaged")
    if not found.isEmpty():
        raise validation_error(found.selectExpr(f"'{DAMAGED}' as reason", key_struct(layout)), layout)


def current_keys(stored: DataFrame, layout: Layout, spec: DimensionSpec) -> int:
    """The number of keys of a dimension with a version that has not ended, without those that are deleted."""
    empty = stored.limit(0).selectExpr(*[f"null as {name}" for name in key_names(layout)])
    rows = stored_rows(empty, stored, layout, spec)
    return rows.where(f"alive and not {is_deleted(layout, 'row')}").count()


def check_guard(ended: int, current: int, spec: DimensionSpec) -> None:
    if current >= GUARDED_FROM and ended > current * spec.max_removed_keys_ratio:
        mistake = Mistake(
            "max_removed_keys_ratio",
            f"at most {spec.max_removed_keys_ratio:g} of the current keys to end",
            f"{ended} of {current} ({ended / current:.2f})",
            "check the extract; if they have really ended, merge once with a larger max_removed_keys_ratio",
        )
        raise GuardError(counted("the batch", [mistake]), [mistake])


def validation_error(rows: DataFrame, layout: Layout) -> HealingTablesError:
    """The error for rows of ``reason``, ``key`` and perhaps ``moment``: for each reason the number of keys, and the
    first five."""
    by_key = "min(moment)" if "moment" in rows.columns else "cast(null as bigint)"
    distinct = rows.groupBy("reason", "key").agg(f.expr(f"{by_key} as moment"))
    mistakes, reasons = [], []
    for reason, count in sorted(tuple(row) for row in distinct.groupBy("reason").count().collect()):
        first = distinct.where(f.col("reason") == reason).orderBy("key").limit(SHOWN).collect()
        named = [{n: "NULL" if v is None else v for n, v in row["key"].asDict().items()} for row in first]
        keys = [", ".join(f"{name} = {value}" for name, value in key.items()) for key in named]
        shown = "; ".join(
            key + ("" if row["moment"] is None else f" at {instants.moment_text(row['moment'])}")
            for key, row in zip(keys, first, strict=True)
        )
        wanted, remedy = REMEDIES[reason]
        more = f" and {count - SHOWN} more" if count > SHOWN else ""
        got = f"{count} keys: {shown}{more}" if count > 1 else shown
        mistakes.append(Mistake(reason, wanted, got, remedy, tuple(keys)))
        reasons.append(reason)
    if {AHEAD, DAMAGED, UNKNOWN} & set(reasons):
        return TargetError(counted("the stored dimension", mistakes), mistakes)
    kind = LateChangeError if set(reasons) <= {LATE, TIED} else BatchError
    return kind(counted("the batch", mistakes), mistakes)
