"""Stored rows and events of a key on one timeline, and the versions that result from it.

An item is one row; the items of a key are ordered by ``at``, ``kind``. What the steps add:

| column | set by | meaning |
| --- | --- | --- |
| newest_moment | outcomes | the last moment that the table shows for the key; NULL if it does not have the key |
| newest_change | outcomes | the latest moment in the rows of the key, also of a change of type 1 or 3 |
| last_event_at | outcomes | the moment of the last event of the batch that is no deletion |
| in_force | outcomes | of what is stored: the row that is valid at ``at`` |
| is_superseded | outcomes | the batch has a newer event for the version of this one |
| is_behind | outcomes | the history goes on after the stored row |
| outcome | outcomes | stored; event (new); unchanged (nothing new); late, tied, damaged, ahead, refused: errors |
| refusal, refused_at | transitions | why the key is refused, or NULL; the moment of its first late or tied event |
| is_present, was_present | transitions | whether the key exists from this item on, and whether it did before |
| state_before | transitions | the last state before this item |
| starts | transitions | the event starts a version |
| overwrites, moves_current | transitions | it changes a value of type 1; one of type 6 |
| moves_n, previous_n, changed_n | transitions | of attribute n, type 1 or 3: it changes; the value before; the moment |
| part | transitions | the number of the version that an item belongs to |
| newest, first_state, first_at, last_row | transitions | of the key: last and first state, first moment, last row |
| last_version, last_from, stored_rows | transitions | of the whole key, of what is stored: number, start, how many |
| moved_at | transitions | the newest change of type 1 or 6 of the whole key, 0 if there is none |
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout, by_name, numbered
from healing_tables.plan.batch import first_starts, key_names
from healing_tables.plan.columns import IS_EVENT, IS_IN_TABLE, IS_PAST, IS_STORED, with_columns
from healing_tables.plan.stored_rows import with_damage

LATE = "a late change, older than the newest stored change of its key and different from the version of its moment"
TIED = "a row that differs from the stored row with the same key and moment"
DAMAGED = "a stored key with two current versions, or with versions that overlap"
AHEAD = "a stored key whose history continues after its row"


def with_outcomes(items: DataFrame, layout: Layout) -> DataFrame:
    """Stored rows and events of the touched keys on one timeline, with the treatment of each: ``outcome``.

    Args: items: ``kind`` is -1 for a row of the history of type 4, 0 for a stored row, 1 for an event.
    """
    keys, items = ", ".join(key_names(layout)), with_kept_values(items, layout)
    seen = with_columns(
        with_damage(items, layout, IS_STORED),
        is_deleted="coalesce(is_deleted, false)",
        newest_moment=f"max(boundary) over (partition by {keys})",
        newest_change=f"max(changed_until) over (partition by {keys})",
        last_event_at=f"max(if({IS_EVENT} and not is_deleted, at, null)) over (partition by {keys})",
        is_superseded=is_superseded(layout),
        is_behind=f"max(if({IS_PAST}, until, null)) over (partition by {keys}) "
        f"> max(if({IS_STORED}, at, null)) over (partition by {keys})",
        in_force=f"last(if({IS_IN_TABLE}, struct(at, until, updated, state, previous, changed), null), true) "
        f"over (partition by {keys} order by at, kind rows between unbounded preceding and current row)",
    )
    in_force = "in_force is not null and (in_force.until is null or in_force.until > at)"
    agrees = [f"state.a{n} <=> in_force.state.a{n}" for n, _ in numbered(layout, 2, 4, 6)]
    # Of types 1 and 3 a row shows only the newest value: a later one, in the table or in this batch, hides it
    agrees += [
        f"(at < greatest(newest_change, last_event_at) or state.a{n} <=> in_force.state.a{n})"
        for n, _ in numbered(layout, 1)
    ]
    for n, attribute in numbered(layout, 3):
        hidden = "coalesce(is_superseded, false)"
        if attribute.changed_at:
            hidden += f" or at < in_force.changed.a{n}"
        else:
            hidden += f" or (at <= in_force.at and state.a{n} <=> in_force.previous.a{n})"
        agrees.append(f"(state.a{n} <=> in_force.state.a{n} or {hidden})")
    has_ended = f"not ({in_force})"
    if not (layout.is_versioned or layout.has_history):
        has_ended += " or at < newest_moment"  # the one row of a key does not show gaps
    shown = ["at", "until", "updated", *(f"changed.a{n}" for n, item in numbered(layout, 1, 3) if item.changed_at)]
    is_unchanged = f"if(is_deleted, {has_ended}, {in_force} and {' and '.join(agrees) or 'true'})"
    return seen.selectExpr(
        "*",
        f"""case
            when problem is not null then 'refused'
            when is_damaged then 'damaged'
            when is_behind then 'ahead'
            when {IS_IN_TABLE} then 'stored'
            when newest_moment is null or at > newest_moment then 'event'
            when {is_unchanged} then 'unchanged'
            when {" or ".join(f"at <=> in_force.{moment}" for moment in shown)} then 'tied'
            else 'late'
        end as outcome""",
    )


def with_kept_values(items: DataFrame, layout: Layout, order: str = "at") -> DataFrame:
    """The items, where an event has the key's value before it of each attribute that the batch lacks and the table
    keeps.

    Args:
        items: ``k1..n``, ``at``, ``state``, and ``kind``: 1 for an event, less for what the table has.
        order: of the rows of a key.
    """
    if not layout.keeps_values:
        return items
    order = f"partition by {', '.join(key_names(layout))} order by {order}, kind"
    before = f"last(if({IS_IN_TABLE}, state, null), true) over ({order})"
    fields = ", ".join(
        f"{'kept_state' if attribute.is_kept else 'state'}.a{n} as a{n}" for n, attribute in by_name(layout)
    )
    filled = f"if({IS_EVENT} and state is not null, struct({fields}), state)"
    return with_columns(items.selectExpr("*", f"{before} as kept_state"), state=filled).drop("kept_state")


def is_superseded(layout: Layout) -> str:
    """Whether the batch itself has a newer event for the version that an event belongs to."""
    keys = ", ".join(key_names(layout))
    if not (layout.is_versioned or layout.has_history):
        # the one row of a key does not show gaps
        return f"at < max(if({IS_EVENT} and not is_deleted, at, null)) over (partition by {keys})"
    values = "".join(f", state.a{n}" for n, _ in numbered(layout, 2, 4, 6))
    following = f"over (partition by {keys} order by at, kind)"
    is_next = f"lead({IS_EVENT} and not is_deleted) {following}"
    return f"{is_next} and lead(struct(1{values})) {following} <=> struct(1{values})"


def with_transitions(items: DataFrame, layout: Layout) -> DataFrame:
    """Each stored row and event with the state before it, and with its effect: start, end or change a version.

    Rows of the history of type 4 are included, so that the first value, the last known value and the moment of its
    change are those of all time; they are not among the returned rows.
    """
    keys = ", ".join(key_names(layout))
    order = f"partition by {keys} order by at, kind"
    why = (
        f"case outcome when 'late' then '{LATE}' when 'tied' then '{TIED}' when 'damaged' then '{DAMAGED}' "
        f"when 'ahead' then '{AHEAD}' when 'refused' then problem end"
    )
    present = "case kind when 0 then alive when 1 then not is_deleted else false end"
    # unchanged events have no effect, and must not hide later events
    before = items.where("outcome <> 'unchanged'").selectExpr(
        "*",
        f"max({why}) over (partition by {keys}) as refusal",
        f"min(if(outcome in ('late', 'tied'), at, null)) over (partition by {keys}) as refused_at",
        f"{present} as is_present",
        f"lag({present}) over ({order}) as was_present",
        f"last(state, true) over ({order} rows between unbounded preceding and 1 preceding) as state_before",
    )
    # the end of a key that does not exist is not an event
    before = before.where(f"{IS_IN_TABLE} or is_present or was_present or refusal is not null")

    def differs(*types: int) -> str:
        parts = [f"not (state.a{n} <=> state_before.a{n})" for n, _ in numbered(layout, *types)]
        return " or ".join(parts) or "false"

    if layout.is_versioned or layout.has_history:
        starts = f"{IS_EVENT} and is_present and (not coalesce(was_present, false) or {differs(2, 4, 6)})"
    else:
        starts = f"{IS_EVENT} and is_present and state_before is null"
    marked = before.selectExpr("*", f"{starts} as starts").selectExpr(
        "*",
        f"{IS_EVENT} and is_present and state_before is not null and ({differs(1)}) as overwrites",
        f"{IS_EVENT} and is_present and state_before is not null and ({differs(6)}) as moves_current",
        f"count(if({IS_STORED} or starts, 1, null)) over ({order} rows between unbounded preceding and current row) "
        "as part",
    )
    running = f"over ({order} rows between unbounded preceding and current row)"
    whole = f"over (partition by {keys})"
    ordered_whole = f"over ({order} rows between unbounded preceding and unbounded following)"
    # with type 4, the versions that have left the table are in its history
    last_version = f"count(if({IS_IN_TABLE}, 1, null))" if layout.has_history else "max(version)"
    columns = [
        f"last(state, true) {ordered_whole} as newest",
        f"last(row, true) {ordered_whole} as last_row",
        f"first(state, true) {ordered_whole} as first_state",
        f"min(at) {whole} as first_at",
        f"{last_version} {whole} as last_version",
        f"max(if({IS_STORED}, at, null)) {whole} as last_from",
        f"count(if({IS_IN_TABLE}, 1, null)) {whole} as stored_rows",
        f"greatest(max(if(overwrites or moves_current, at, null)) {whole}, 0L) as moved_at",
    ]
    for n, attribute in numbered(layout, 1, 3):
        change = f"{IS_EVENT} and is_present and (state_before is null or not (state.a{n} <=> state_before.a{n}))"
        if attribute.scd_type == 3:
            previous = f"if({change} and state_before is not null, struct(state_before.a{n} as v), null)"
            stored_change = f"changed.a{n}" if attribute.changed_at else "cast(null as bigint)"
            changed = f"if({change}, struct(at as v), null)"
            columns += [
                f"last(if({IS_STORED}, struct(previous.a{n} as v), {previous}), true) {running} as previous_{n}",
                f"last(if({IS_STORED}, struct({stored_change} as v), {changed}), true) {running} as changed_{n}",
                f"{change} as moves_{n}",
            ]
        elif attribute.changed_at:
            columns.append(
                f"max(if({IS_IN_TABLE}, changed.a{n}, if({change}, at, null))) "
                f"{running if layout.has_history else whole} as changed_{n}"
            )
    return marked.selectExpr("*", *columns).where("kind >= 0")


def versions(steps: DataFrame, layout: Layout) -> DataFrame:
    """One row per version: stored ones, with what the batch did to them, and new ones."""
    keys = key_names(layout)
    returns = "is_present and not coalesce(was_present, false)"
    moves = " or ".join(["starts", "is_deleted", returns, *[f"moves_{n}" for n, _ in numbered(layout, 3)]])
    has_effect = f"{IS_EVENT} and ({moves} or overwrites or moves_current)"
    carried = [
        "refusal",
        "refused_at",
        "newest",
        "first_state",
        "first_at",
        "last_row",
        "last_version",
        "last_from",
        "stored_rows",
        "moved_at",
        *first_starts(steps),
    ]
    changed = [f"changed_{n}" for n, attribute in numbered(layout, 1) if attribute.changed_at]
    parts = steps.groupBy(*keys, "part").agg(
        *[f.expr(f"first({name}) as {name}") for name in carried],
        *[f.expr(f"max({name}) as {name}") for name in changed],
        f.expr("min(at) as at"),
        f.expr("min(kind) as kind"),
        f.expr(f"sum(if({has_effect}, rows, null)) as rows"),
        f.expr("min_by(row, struct(at, kind)) as row"),
        f.expr("min_by(until, struct(at, kind)) as stored_until"),
        f.expr("min_by(version, struct(at, kind)) as version"),
        f.expr("min_by(updated, struct(at, kind)) as updated"),
        f.expr("min_by(cause, struct(at, kind)) as cause"),
        f.expr(f"max_by(cause, if({IS_EVENT} and is_deleted, at, null)) as end_cause"),
        f.expr("min_by(state_before, struct(at, kind)) as before"),
        f.expr("min_by(coalesce(was_present, false), struct(at, kind)) as was_present"),
        f.expr(f"max_by(state, if({IS_STORED} or is_present, struct(at, kind), null)) as state"),
        f.expr("max_by(is_present, struct(at, kind)) as is_present"),
        f.expr(f"max_by(if({IS_STORED}, until, if(is_deleted, at, null)), struct(at, kind)) as ended_at"),
        f.expr(f"max(if({IS_EVENT} and ({moves}), at, null)) as touched_at"),
        *[f.expr(f"max_by(previous_{n}, struct(at, kind)).v as previous_{n}") for n, _ in numbered(layout, 3)],
        *[f.expr(f"max_by(changed_{n}, struct(at, kind)).v as changed_{n}") for n, _ in numbered(layout, 3)],
    )
    order = f"partition by {', '.join(keys)} order by part"
    return parts.selectExpr(
        "*",
        f"lead(if({IS_EVENT}, at, null)) over ({order}) as next_from",
        *([f"lead(state) over ({order}) as next_state"] if layout.has_deleted_rows else []),
        f"if(is_present, lead(cause) over ({order}), end_cause) as until_cause",
        f"sum(kind) over ({order} rows between unbounded preceding and current row) as new_number",
        f"lead(part) over ({order}) is null as is_last",
        f"max({IS_STORED} and stored_until is null) over (partition by {', '.join(keys)}) as was_open",
    )
