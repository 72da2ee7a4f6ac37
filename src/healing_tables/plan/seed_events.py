"""The past in a stored dimension, as changes: the first rows of a change log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout, by_name, numbered
from healing_tables.definition.spec import DimensionSpec
from healing_tables.plan.batch import cause, key_names
from healing_tables.plan.columns import reasons
from healing_tables.plan.stored_rows import is_deleted, stored_rows
from healing_tables.sql.identifiers import literal, quoted
from healing_tables.sql.instants import as_moment
from healing_tables.sql.types import MOMENTS, is_text


def seeds(stored: DataFrame, layout: Layout, spec: DimensionSpec, ties: Mapping[str, str]) -> DataFrame:
    """The changes that a stored dimension shows: ``k1..n``, ``at``, ``is_deleted``, ``state``, ``tie``.

    Of type 1 only the newest value is known, of type 3 the last two. The earlier value of a type 1 attribute is never
    shown, but must differ from the newest one, or the moment of the change would be lost. If a version shows that a
    value changed during it, but not when, the change is placed a microsecond after its start.
    """
    keys = key_names(layout)
    order = f"over (partition by {', '.join(keys)} order by at)"
    rows = stored_rows(stored, stored, layout, spec).selectExpr(
        "*",
        f"lag(struct(state, previous)) {order} as before",
        f"lead(at) {order} as next_at",
    )
    turns = {}
    for n, attribute in numbered(layout, 1, 3):
        turn = f"if(changed.a{n} > at, changed.a{n}, null)" if attribute.changed_at else "null"
        if attribute.scd_type == 3:
            inherited = f"if(state.a{n} <=> before.state.a{n}, before.previous.a{n}, before.state.a{n})"
            turn = f"coalesce({turn}, if(previous.a{n} <=> {inherited}, null, at + 1))"
        turns[n] = f"cast({turn} as bigint)"
    rows = rows.selectExpr("*", *[f"{turn} as turn{n}" for n, turn in turns.items()])
    inside = [f"if(turn{n} < coalesce(until, turn{n} + 1), turn{n}, null)" for n in turns]
    values = []
    for n, attribute in by_name(layout):
        shown = f"state.a{n}"
        if n in turns:
            old = f"previous.a{n}"
            if attribute.scd_type == 1:
                other = not_null(attribute.type)
                old = f"if(state.a{n} is null, {other}, cast(null as {attribute.type}))"
            shown = f"if(moment < turn{n}, {old}, state.a{n})"
        values.append(f"{shown} as a{n}")
    no_tie = ", ".join(f"cast(null as {kind}) as t{n}" for n, kind in enumerate(ties.values(), 1))
    tie = f"struct({no_tie or 'true as none'}) as tie"
    causes = {name: f"row.{quoted(layout.names[name])}" for name in spec.causes if name in layout.names}
    if "change_reason" in causes:
        shown_reason = causes["change_reason"]
        causes["change_reason"] = f"if({shown_reason} in {reasons(layout)}, null, {shown_reason})"
    # the values in the row of a deleted key are those of the version before it
    is_gone = is_deleted(layout, "row")
    moments = f"array_distinct(array_compact(array({', '.join(['at', *inside])})))"
    starts = rows.selectExpr("*", f"explode(if({is_gone}, array(at), {moments})) as moment").selectExpr(
        *keys,
        "moment as at",
        f"{is_gone} as is_deleted",
        f"if({is_gone}, null, struct({', '.join(values) or 'true as present'})) as state",
        tie,
        f"if(moment = at, {cause(causes)}, null) as cause",
    )
    ended = rows.where(f"until is not null and not {is_gone} and (next_at is null or next_at > until)").selectExpr(
        *keys, "until as at", "true as is_deleted", tie
    )
    return starts.unionByName(ended, allowMissingColumns=True)


def with_history(
    stored: DataFrame, history: DataFrame, layout: Layout, spec: DimensionSpec
) -> tuple[DataFrame, Layout]:
    """Type 4: the rows of the history and of the dimension as versions, and their layout."""
    columns = [name for name in layout.history_columns(spec) if name != "history_id"]
    reason = layout.names.get("change_reason")
    shown = {
        "valid_from": quoted(layout.names["last_updated"]),
        "valid_to": f"cast(null as {layout.moment_type})",
        "change_reason": "cast(null as string)" if reason is None else quoted(reason),
    }
    newest = stored.selectExpr(*(f"{shown.get(name, quoted(name))} as {quoted(name)}" for name in columns))
    # in the history, it says why a row ended, and not why it began
    earlier = history.withColumn("change_reason", f.expr("cast(null as string)")).select(*map(quoted, columns))
    attributes = tuple(
        replace(attribute, scd_type=2) if attribute.scd_type == 4 else attribute for attribute in layout.attributes
    )
    names = {name: name for name in ("valid_from", "valid_to", "change_reason")}
    return earlier.unionByName(newest), replace(layout, attributes=attributes, names=names, surrogate=None)


def not_null(kind: str) -> str:
    """Some value of a type, as SQL."""
    if kind in MOMENTS:
        return as_moment("0L", kind)
    if "<" in kind:
        empty = "'[]'" if kind.startswith("array") else "'{}'"
        return f"from_json({empty}, {literal(kind)})"
    value = "''" if is_text(kind) or kind == "binary" else "false" if kind == "boolean" else "0"
    return f"cast({value} as {kind})"
