"""A plan from recomputed versions: their difference from the stored ones."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.plan.batch import key_names, named_keys
from healing_tables.plan.columns import as_plan, reasons, with_columns
from healing_tables.plan.feed import NO_KEY
from healing_tables.plan.stored_rows import is_deleted, row_period, with_damage
from healing_tables.plan.timeline import DAMAGED
from healing_tables.sql import instants
from healing_tables.sql.identifiers import quoted

UNKNOWN = "a stored version that is not in the change log"
# The number of slices of a row, which the log does not have
KEPT = ("compressed_row_count",)


def difference(
    made: DataFrame,
    stored: DataFrame,
    events: DataFrame,
    layout: Layout,
    spec: DimensionSpec,
    history: DataFrame | None = None,
) -> DataFrame:
    """The plan (see plan.plan) that turns the stored versions of some keys into the recomputed ones.

    Args:
        made: of `plan.changes` without stored rows.
        stored: of `stored_rows.stored_rows`.
        events: all events of these keys, and those without a key: ``k1..n``, ``at``.
        history: of type 4, the stored rows of the history with these keys.
    """
    if history is None:
        return version_difference(made, stored, events, layout, spec)
    rows = version_difference(made.where("action = 'insert'"), stored, events, layout, spec)
    keys = [f"key.{quoted(key.name)}" for key in layout.keys]
    ends = made.where("action in ('archive', 'absent')").groupBy("key").agg(f.expr("max(moment) as ended"))
    same = " and ".join(f"of_key.{name} {layout.same} of_end.{name}" for name in keys)
    rows = rows.alias("of_key").join(ends.alias("of_end"), f.expr(same), "left")
    # a key has at most one row: if that is removed, the key has ended
    start = quoted(layout.names["last_updated"])
    is_other = f"action = 'update' and not (new.{start} <=> stored.{start})"
    rows = with_columns(
        rows.selectExpr("of_key.*", "ended"),
        moment="if(action = 'remove', ended, moment)",
        reason=f"case when action = 'remove' then 'deleted' when {is_other} then 'changed' else reason end",
    ).drop("ended")
    return rows.unionByName(history_difference(made, history, layout, spec), allowMissingColumns=True)


def history_difference(made: DataFrame, history: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """The rows of the history that differ, as ``archived``; of one that goes, ``valid_to`` is NULL."""
    columns = layout.history_columns(spec)
    # its types may be narrower until this merge has written the dimension
    listed = ", ".join(f"cast({quoted(name)} as {kind}) as {quoted(name)}" for name, kind in columns.items())
    gone = ", ".join("null as valid_to" if name == "valid_to" else f"stored.{quoted(name)}" for name in columns)
    wanted = made.where("action = 'archive'").selectExpr("archived as wanted")
    present = history.selectExpr(f"struct({listed}) as stored")
    places = [*(quoted(key.name) for key in layout.keys), "valid_from"]
    same = " and ".join(f"wanted.{place} {layout.same} stored.{place}" for place in places)
    names = ", ".join(f"coalesce(wanted, stored).{quoted(key.name)} as {quoted(key.name)}" for key in layout.keys)
    both = wanted.join(present, f.expr(same), "full").where("not (wanted <=> stored)")
    return both.selectExpr(
        "'archive' as action",
        "'changed' as reason",
        f"struct({names}) as key",
        "0L as rows",
        f"coalesce(wanted, struct({gone})) as archived",
    )


def version_difference(
    made: DataFrame, stored: DataFrame, events: DataFrame, layout: Layout, spec: DimensionSpec
) -> DataFrame:
    """Args: see `difference`."""
    keys, shown = key_names(layout), row_period(layout, spec, "new.")
    join = [*keys, "start"] if layout.is_versioned else keys
    partition = f"over (partition by {', '.join(keys)}"
    wanted = made.selectExpr(
        *named_keys(layout, "key."),
        f"{shown.start} as start",
        f"{shown.alive} as is_open",
        f"{shown.alive} and not {is_deleted(layout, 'new')} as is_living",
        f"if({shown.alive}, null, {shown.until}) as new_until",
        "reason as new_reason",
        "moment as new_moment",
        "cause as new_cause",
        "new as made",
    ).selectExpr("*", f"lead(start) {partition} order by start) as next_start")
    said = events.selectExpr(*keys, "at", "true as is_said").distinct()
    if spec.deleted_rows or (spec.sequence_by and spec.truncated_when is not None):
        # sequence_by may move a row to the moment of a truncation; with deleted_rows, a version starts where one, or a
        # full batch, ends its key
        without_key = events.where(NO_KEY).select("at").distinct()
        moved = stored.join(without_key, "at", "left_semi").selectExpr(*keys, "at", "true as is_said")
        said = said.union(moved).distinct()
    if spec.first_start_column is not None:  # which the start of a stored version may come from
        day = f" - pmod(logged_start, {instants.DAY})" if layout.moment_type == "date" else ""
        starts = events.where("logged_start is not null").selectExpr(
            *keys, f"logged_start{day} as at", "true as is_said"
        )
        said = said.union(starts).distinct()
    rows = (
        with_damage(stored, layout)
        .join(said, [*keys, "at"], "left")
        .selectExpr(
            *keys,
            "at as start",
            "alive",
            "row",
            "is_said",
            f"max(at) {partition}) as last_from",
            "is_damaged",
        )
        .drop(*([] if layout.is_versioned else ["start"]))
    )
    constant = spec.valid_from_first
    first = f"{instants.micros(constant)}L" if constant and not isinstance(constant, Mapping) else "null"
    is_lost = f"made is null and not coalesce(is_said or start = {first}, false)"
    both = with_columns(
        wanted.join(rows, join, "full"),
        last_from=f"max(last_from) {partition})",
        refusal=f"max(case when is_damaged then '{DAMAGED}' when {is_lost} then '{UNKNOWN}' end) {partition})",
        lives=f"max(is_living) {partition})",
    )
    values = {name: f"made.{quoted(name)}" for name in layout.columns(spec)}
    kept = [layout.names[name] for name in KEPT if name in layout.names]
    if layout.is_sequence and layout.surrogate is not None:
        kept.append(layout.surrogate)
    for name in kept:
        values[name] = f"if(row is null, made.{quoted(name)}, row.{quoted(name)})"
    for name, derived in (("change_source", ()), ("change_reason", reasons(layout))):
        # keep the value that a batch has given, even if the log does not have it
        if name in layout.names:
            column = quoted(layout.names[name])
            others = "".join(f" and row.{column} <> '{reason}'" for reason in derived)
            is_kept = f"row is not null and new_cause.{name} is null{others}"
            values[layout.names[name]] = f"if({is_kept}, row.{column}, made.{column})"
    if "valid_to" in layout.names:
        # stored rows can have another open end than new rows
        end = quoted(layout.names["valid_to"])
        values[layout.names["valid_to"]] = f"if(alive and is_open, row.{end}, made.{end})"
    closes = "alive and not is_open"
    return as_plan(
        both,
        layout,
        spec,
        values,
        action=(
            "case when row is null then 'insert' when made is null then 'remove' "
            f"when {closes} then 'close' else 'update' end"
        ),
        reason="case when row is null then new_reason when made is null then 'replaced' "
        f"when {closes} then if(new_until = next_start, 'changed', 'deleted') "
        "when is_open and not alive then 'reopened' else 'overwritten' end",
        moment="coalesce(new_moment, start)",
        cause="new_cause",
        used="0L",
        refused_at="cast(null as bigint)",
        ends_key=f"coalesce(alive and not {is_deleted(layout, 'row')} and not coalesce(lives, false), false)",
        new="made is not null",
    )
