"""The pure half of a merge: what has to change in a stored dimension, given a batch."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables import moments
from healing_tables.batch import events as events_of
from healing_tables.batch import key_names, presence
from healing_tables.columns import new_values
from healing_tables.errors import ArgumentError, Mistake, TargetError, counted
from healing_tables.layout import Layout
from healing_tables.naming import numbered
from healing_tables.resolving import resolve
from healing_tables.spec import DimensionSpec
from healing_tables.stored import stored_rows

LATE = "a change before what is stored for its key, which disagrees with it"
DAMAGED = "a stored key with two current versions, or with two versions of one start"
AHEAD = "a stored key whose history goes on after its row"


def plan(
    batch: DataFrame,
    stored: DataFrame | None,
    spec: DimensionSpec,
    at: dt.datetime | dt.date | str | None = None,
    *,
    full_batch: bool | None = None,
) -> DataFrame:
    """The row changes that a batch makes to a dimension. Nothing is read but the two, nothing is written.

    Args:
        batch: current states, or changes with moments (``spec.changed_at``).
        stored: the dimension as it is; None if there is none yet.
        at: the moment of the batch where its rows have none; without an offset it is UTC. Default: now.
        full_batch: overrides ``spec.full_batch``.
    Returns: a row per change:
        ``action`` (string): insert, close, update; remove, archive (type 4: from the table, to its history); refuse
        ``reason`` (string): why
        ``key`` (struct of the key columns)
        ``moment`` (bigint): microseconds, when it happened
        ``changed_columns`` (array of string): what differs from the stored row; NULL for an insert
        ``new``, ``stored`` (structs of all columns of the dimension): as the row shall be, and as it was
        ``last_from`` (bigint): start of the key's last stored version, in microseconds; NULL for a new key
        ``ends_key`` (boolean): the key has no open version any more
        ``archived`` (struct): the row for the history table of type 4 (keys, attributes, valid_from, valid_to)
    Raises: ArgumentError, BatchError, TargetError: on a moment or columns that do not fit. What is wrong with rows is told by ``refuse``.
    """
    schema = stored.schema if stored is not None else None
    layout = resolve(
        spec, batch.schema, schema, moment_type="date" if moments.is_date(at) else moments.TIMESTAMP
    )
    moment = moment_of(at, layout, spec)
    is_full = full_batch_of(full_batch, spec)
    return changes(events_of(batch, layout, spec, moment), stored, layout, spec, moment, is_full)


def moment_of(at: dt.datetime | dt.date | str | None, layout: Layout, spec: DimensionSpec) -> int:
    """The moment of a batch in microseconds: the one given, or now.

    Raises: ArgumentError if it is no moment, or not before the end of time.
    """
    kind = layout.moment_type
    try:
        moment = moments.of(at, kind)
        is_wrong = moment >= moments.open_from(spec.valid_to_current, kind)
    except (ValueError, AttributeError, OverflowError):
        is_wrong = True
    if is_wrong:
        wanted = "a moment before the end of time, such as '2024-01-31 10:00:00', or None for now"
        mistake = Mistake("at", wanted, repr(at), "correct it")
        raise ArgumentError(counted("the batch", [mistake]), [mistake])
    return moment


def full_batch_of(given: bool | None, spec: DimensionSpec) -> bool:
    """Whether absent keys end. Raises: ArgumentError: the text 'false' would be true."""
    if given is None:
        return spec.full_batch
    if not isinstance(given, bool):
        mistake = Mistake("full_batch", "True, False or None", repr(given), "correct it")
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
) -> DataFrame:
    """`plan` on events that are checked and named already (see batch.events).

    Args: past: of type 4, what its history holds: ``k1..n``, ``at``, ``until``, ``boundary``, ``state``.
    """
    check_can_end(layout, spec, full_batch)
    events = events.drop("tie", "is_logged", "rows")
    keys = key_names(layout)
    known = stored_rows(events, stored, layout, spec)
    if full_batch:
        alive = known.where("alive")
        absent = alive.join(events.select(*keys), keys, "left_anti").selectExpr(
            *keys, f"{moment}L as at", "true as gone"
        )
        if spec.changed_at is not None:
            # a key that is back may have come with a moment from before its end
            seen = (
                known.select(keys) if past is None else known.select(keys).union(past.select(keys))
            )
            ended = seen.join(alive, keys, "left_anti")
            events = events.unionByName(
                presence(events, layout, moment).join(ended, keys, "left_semi")
            )
        events = events.unionByName(absent, allowMissingColumns=True)
    touched = known.join(events.select(*keys), keys, "left_semi")
    items = touched.selectExpr("*", "0 as kind").unionByName(
        events.selectExpr("*", "1 as kind"), allowMissingColumns=True
    )
    if past is not None:
        gone_by = past.join(events.select(*keys), keys, "left_semi").selectExpr("*", "-1 as kind")
        items = items.unionByName(gone_by, allowMissingColumns=True)
    steps = stepped(classified(items, layout), layout)
    return new_values(versions(steps, layout), layout, spec)


def check_can_end(layout: Layout, spec: DimensionSpec, full_batch: bool) -> None:
    """Raises: TargetError if the end of a key would leave no trace."""
    if (spec.deleted_when is None and not full_batch) or layout.has_history:
        return
    if "valid_to" not in layout.names and "is_current" not in layout.names:
        option = "full_batch" if full_batch else "deleted_when"
        mistake = Mistake(
            option,
            "a column valid_to or is_current, which says that a key has ended",
            "a dimension without either",
            f"add one of them, or leave {option} out",
        )
        raise TargetError(counted("the dimension", [mistake]), [mistake])


def classified(items: DataFrame, layout: Layout) -> DataFrame:
    """Stored rows and events of the touched keys on one timeline, with what is to be done about each: ``outcome``.

    Args: items: ``kind`` is -1 for a row of the history of type 4, which leaves here, 0 for a stored row, 1 for an event.
    """
    keys = ", ".join(key_names(layout))
    seen = items.selectExpr(
        "* except (gone)",
        "coalesce(gone, false) as gone",
        f"max(boundary) over (partition by {keys}) as known_until",
        f"max(said_at) over (partition by {keys}) as said_until",
        f"max(if(kind = 1 and not gone, at, null)) over (partition by {keys}) as last_said_at",
        f"lead(kind = 1 and not gone) over (partition by {keys} order by at, kind) as is_said_again",
        f"count(if(kind = 0 and alive, 1, null)) over (partition by {keys}) as open_rows",
        f"count(if(kind = 0 and current, 1, null)) over (partition by {keys}) as current_rows",
        f"count(if(kind = 0, 1, null)) over (partition by {keys}) as stored_count",
        f"count(if(kind = 0, 1, null)) over (partition by {keys}, at) as same_start",
        f"max(if(kind = -1, until, null)) over (partition by {keys}) > max(if(kind = 0, at, null)) over (partition by {keys}) as is_behind",
        f"last(if(kind < 1, struct(at, until, state, previous, changed), null), true) over (partition by {keys} order by at, kind "
        "rows between unbounded preceding and current row) as in_force",
    )
    in_force = "in_force is not null and (in_force.until is null or in_force.until > at)"
    agrees = [f"state.a{n} <=> in_force.state.a{n}" for n, _ in numbered(layout, 2, 4, 6)]
    # Of types 1 and 3 a row shows the newest value only: what came later, in the table or in this batch, hides it
    agrees += [
        f"(at < greatest(said_until, last_said_at) or state.a{n} <=> in_force.state.a{n})"
        for n, _ in numbered(layout, 1)
    ]
    for n, attribute in numbered(layout, 3):
        hidden = "coalesce(is_said_again, false)"
        if attribute.changed_at:
            hidden += f" or at < in_force.changed.a{n}"
        else:
            hidden += f" or (at <= in_force.at and state.a{n} <=> in_force.previous.a{n})"
        agrees.append(f"(state.a{n} <=> in_force.state.a{n} or {hidden})")
    is_gone = f"not ({in_force})"
    if not (layout.is_versioned or layout.has_history):
        is_gone += " or at < known_until"  # the one row of a key does not show gaps
    is_known = f"if(gone, {is_gone}, {in_force} and {' and '.join(agrees) or 'true'})"
    too_many = "false" if layout.is_versioned else "stored_count > 1"
    return seen.where("kind >= 0").selectExpr(
        "*",
        f"""case
            when problem is not null then 'refused'
            when open_rows > 1 or current_rows > 1 or same_start > 1 or {too_many} then 'damaged'
            when is_behind then 'ahead'
            when kind = 0 then 'stored'
            when known_until is null or at > known_until then 'event'
            when {is_known} then 'known'
            else 'late'
        end as outcome""",
    )


def stepped(items: DataFrame, layout: Layout) -> DataFrame:
    """Each item with what was known before it, and whether it starts a version, ends one, or changes something."""
    keys = ", ".join(key_names(layout))
    order = f"partition by {keys} order by at, kind"
    why = (
        f"case outcome when 'late' then '{LATE}' when 'damaged' then '{DAMAGED}' "
        f"when 'ahead' then '{AHEAD}' when 'refused' then problem end"
    )
    # what is known already comes to nothing, and must not hide what happened after it
    before = items.where("outcome <> 'known'").selectExpr(
        "*",
        f"max({why}) over (partition by {keys}) as refusal",
        "if(kind = 0, alive, not gone) as here",
        f"lag(if(kind = 0, alive, not gone)) over ({order}) as here_before",
        f"last(state, true) over ({order} rows between unbounded preceding and 1 preceding) as known",
    )
    # to end what is not there is no event
    before = before.where("kind = 0 or here or here_before or refusal is not null")

    def differs(*types: int) -> str:
        parts = [f"not (state.a{n} <=> known.a{n})" for n, _ in numbered(layout, *types)]
        return " or ".join(parts) or "false"

    if layout.is_versioned or layout.has_history:
        starts = f"kind = 1 and here and (not coalesce(here_before, false) or {differs(2, 4, 6)})"
    else:
        starts = "kind = 1 and here and known is null"
    marked = before.selectExpr("*", f"{starts} as starts").selectExpr(
        "*",
        f"kind = 1 and here and known is not null and ({differs(1)}) as overwrites",
        f"kind = 1 and here and known is not null and ({differs(6)}) as moves_current",
        f"count(if(kind = 0 or starts, 1, null)) over ({order} rows between unbounded preceding and current row) as part",
    )
    running = f"over ({order} rows between unbounded preceding and current row)"
    whole = f"over (partition by {keys})"
    ordered_whole = f"over ({order} rows between unbounded preceding and unbounded following)"
    columns = [
        f"last(state, true) {ordered_whole} as newest",
        f"last(row, true) {ordered_whole} as last_row",
        f"first(state, true) {ordered_whole} as first_state",
        f"max(version) {whole} as last_version",
        f"max(if(kind = 0, at, null)) {whole} as last_from",
        f"count(if(kind = 0, 1, null)) {whole} as stored_rows",
        f"greatest(max(if(overwrites or moves_current, at, null)) {whole}, 0L) as moved_at",
    ]
    for n, attribute in numbered(layout, 1, 3):
        change = f"kind = 1 and here and (known is null or not (state.a{n} <=> known.a{n}))"
        if attribute.scd_type == 3:
            columns += [
                f"last(if(kind = 0, struct(previous.a{n} as v), if({change} and known is not null, struct(known.a{n} as v), null)), true) {running} as previous_{n}",
                f"last(if(kind = 0, struct({f'changed.a{n}' if attribute.changed_at else 'cast(null as bigint)'} as v), if({change}, struct(at as v), null)), true) {running} as changed_{n}",
                f"{change} as moves_{n}",
            ]
        elif attribute.changed_at:
            columns.append(
                f"max(if(kind = 0, changed.a{n}, if({change}, at, null))) {whole} as changed_{n}"
            )
    return marked.selectExpr("*", *columns)


def versions(steps: DataFrame, layout: Layout) -> DataFrame:
    """One row per version: stored ones, with what the batch did to them, and new ones."""
    keys = key_names(layout)
    returns = "here and not coalesce(here_before, false)"
    moves = " or ".join(
        ["starts", "gone", returns, *[f"moves_{n}" for n, _ in numbered(layout, 3)]]
    )
    carried = [
        "refusal",
        "newest",
        "first_state",
        "last_row",
        "last_version",
        "last_from",
        "stored_rows",
        "moved_at",
    ]
    for n, attribute in numbered(layout, 1):
        if attribute.changed_at:
            carried.append(f"changed_{n}")
    parts = steps.groupBy(*keys, "part").agg(
        *[f.expr(f"first({name}) as {name}") for name in carried],
        f.expr("min(at) as at"),
        f.expr("min(kind) as kind"),
        f.expr("min_by(row, struct(at, kind)) as row"),
        f.expr("min_by(until, struct(at, kind)) as stored_until"),
        f.expr("min_by(version, struct(at, kind)) as version"),
        f.expr("min_by(updated, struct(at, kind)) as updated"),
        f.expr("min_by(known, struct(at, kind)) as before"),
        f.expr("min_by(coalesce(here_before, false), struct(at, kind)) as was_here"),
        f.expr("max_by(state, if(kind = 0 or here, struct(at, kind), null)) as state"),
        f.expr("max_by(here, struct(at, kind)) as here"),
        f.expr("max_by(if(kind = 0, until, if(gone, at, null)), struct(at, kind)) as ended_at"),
        f.expr(f"max(if(kind = 1 and ({moves}), at, null)) as touched_at"),
        *[
            f.expr(f"max_by(previous_{n}, struct(at, kind)).v as previous_{n}")
            for n, _ in numbered(layout, 3)
        ],
        *[
            f.expr(f"max_by(changed_{n}, struct(at, kind)).v as changed_{n}")
            for n, _ in numbered(layout, 3)
        ],
    )
    order = f"partition by {', '.join(keys)} order by part"
    return parts.selectExpr(
        "*",
        f"lead(if(kind = 1, at, null)) over ({order}) as next_from",
        f"sum(kind) over ({order} rows between unbounded preceding and current row) as new_number",
        f"lead(part) over ({order}) is null as is_last",
        f"max(kind = 0 and stored_until is null) over (partition by {', '.join(keys)}) as was_open",
    )
