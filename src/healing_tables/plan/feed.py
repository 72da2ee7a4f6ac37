"""The rows of feeds of change data capture, which a change log keeps as they were sent, as events of a timeline.

at | tie | state                 at | state
10 | {1} | {a: 1, b: x}     ->   10 | {a: 1, b: x}
30 | {2} | {a: 2, b: NULL}       30 | {a: 3, b: x}
20 | {3} | {a: 3, b: NULL}

Here NULL means "not sent", and the ties are of ``sequence_by``. The macros have the same rules in
macros/timeline/_cdc_rows.sql (docs/decisions/0059-change-data-capture.md).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Layout, by_name, numbered
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import Mistake, SpecError, counted
from healing_tables.plan.batch import first_starts, key_names, place_of
from healing_tables.plan.columns import with_columns
from healing_tables.plan.deleted_rows import layout_with_mark, with_marks
from healing_tables.sql.literals import mark

NO_KEY = "k1 is null"  # of a truncation


def check_has_log(spec: DimensionSpec) -> None:
    """Raises: SpecError for rules without a change log, as a log keeps the rows on which they are based."""
    given = ("ignore_nulls", "unchanged_value", "sequence_by", "truncated_when", "deleted_rows")
    named = [name for name in given if getattr(spec, name)]
    named += ["valid_from_first.batch"] if spec.first_start_column is not None else []
    named += ["null_keys"] if spec.has_null_keys else []
    if named and not isinstance(spec.change_log, str):
        mistakes = [
            Mistake(name, "a merge with a change log", "none", "name its table in change_log, or remove this option")
            for name in named
        ]
        raise SpecError(counted("the dimension", mistakes), mistakes)


def planned_events(rows: DataFrame, layout: Layout, spec: DimensionSpec) -> tuple[DataFrame, Layout]:
    """The events that a plan reads, and the layout of their states.

    Args: rows: of a change log, or of a batch alone; those of the keys in them, all that there are.
    """
    if first_starts(rows):  # before events are made of them: the row with the earliest start may not be the last one
        of_key = f"min(first_start) over (partition by {', '.join(key_names(layout))})"
        rows = with_columns(rows, first_start=of_key)
    events = events_of_rows(rows, layout, spec) if spec.has_rules else rows
    if not spec.deleted_rows:
        return events, layout
    return with_marks(events, layout), layout_with_mark(layout)


def events_of_rows(rows: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """The events of these rows, one per key and moment.

    Args: rows: `batch.distinct_rows` of some keys, all that there are; truncations have no key.
    Returns: the columns of `batch.one_per_moment` that a plan reads.
    """
    keys, sent = key_names(layout), sent_conditions(layout, spec)
    of_key = f"partition by {', '.join(keys)}"
    fields = [
        f"if({sent[n]}, struct(state.a{n} as value, true as is_sent), null) as a{n}" if n in sent else f"state.a{n}"
        for n, _ in by_name(layout)
    ]
    given = f"if(is_deleted, null, struct({', '.join(fields) or 'true as present'}))"
    items = rows.selectExpr("*", f"{place_of(spec)} as place", f"{given} as given", "true as is_row")
    if spec.truncated_when is not None:
        items = with_truncations(items, layout)
    order = "place, is_row, is_deleted, given"
    running = f"({of_key} order by {order} rows between unbounded preceding and current row)"
    filled = {
        n: f"last(if(is_deleted, struct(cast(null as {attribute.type}) as value, false as is_sent), given.a{n}), true) "
        f"over {running}"
        for n, attribute in by_name(layout)
        if n in sent
    }
    values = [f"{filled[n]}.value as a{n}" if n in filled else f"state.a{n}" for n, _ in by_name(layout)]
    moment = f"max(at) over ({of_key} order by place range between unbounded preceding and current row)"
    firsts = [n for n, attribute in numbered(layout, 0) if n in filled]
    items = with_columns(
        items,
        at=moment if spec.sequence_by else "at",
        state=f"if(is_deleted, null, struct({', '.join(values) or 'true as present'}))",
        **{f"sent_{n}": f"not is_deleted and {filled[n]}.is_sent" for n in firsts},
    )
    of_moment = f"({of_key}, at order by {order} rows between unbounded preceding and unbounded following)"
    items = items.selectExpr(
        "*",
        f"row_number() over ({of_key}, at order by {order}) = count(*) over {of_moment} as is_last",
        f"sum(rows) over {of_moment} as all_rows",
    )
    events = with_columns(items.where("is_last"), rows="all_rows")
    if firsts:
        # a key has the first value that was sent, whenever that was
        of_all = f"({of_key} order by at rows between unbounded preceding and unbounded following)"
        values = [
            f"first(if(sent_{n}, struct(state.a{n} as value), null), true) over {of_all}.value as a{n}"
            if n in firsts
            else f"state.a{n}"
            for n, _ in by_name(layout)
        ]
        events = with_columns(events, state=f"if(is_deleted, null, struct({', '.join(values)}))")
    columns = [*keys, "at", "is_deleted", "state", "tie", "cause", "is_logged", "problem", "rows"]
    return events.select(*columns, *first_starts(rows))


def moved_rows(rows: DataFrame, layout: Layout, spec: DimensionSpec) -> int:
    """How many new rows ``sequence_by`` moves: a row that precedes them in it has a later moment.

    Args: rows: as of `events_of_rows`.
    """
    if not spec.sequence_by:
        return 0
    before = f"(partition by {', '.join(key_names(layout))} order by place range between unbounded preceding "
    items = rows.where(f"not ({NO_KEY})").selectExpr("*", f"{place_of(spec)} as place")
    moved = items.selectExpr("is_logged", f"at < max(at) over {before}and current row) as is_moved")
    return moved.where("is_moved and not is_logged").count()


def sent_conditions(layout: Layout, spec: DimensionSpec) -> dict[int, str]:
    """Whether a row says something of an attribute, as SQL, by its number; without those of which every row does."""
    marks = {name.lower(): value for name, value in spec.unchanged_value.items()}
    found = {}
    for n, attribute in by_name(layout):
        column = attribute.column or attribute.name
        conditions = [f"state.a{n} is not null"] if spec.ignores_nulls(column) else []
        if column.lower() in marks:
            conditions.append(f"not (state.a{n} <=> {mark(marks[column.lower()], attribute.type, column, [])})")
        if conditions:
            found[n] = f"(not coalesce(is_partial, false) or {' and '.join(conditions)})"
    return found


def with_truncations(items: DataFrame, layout: Layout) -> DataFrame:
    """The rows of all keys, and the truncations: after each row, the next one if it comes before the next row."""
    keys = key_names(layout)
    all_of_them = items.where(NO_KEY).groupBy()
    truncations = all_of_them.agg(f.expr("array_sort(collect_set(struct(place, at as moment))) as truncations"))
    found = items.where(f"not ({NO_KEY})").crossJoin(f.broadcast(truncations))
    found = found.selectExpr(
        "*",
        "get(filter(truncations, one -> one.place > place), 0) as truncation",
        f"lead(place) over (partition by {', '.join(keys)} order by place, is_deleted, given) as next_place",
    )
    has_none = "is_deleted or truncation is null or next_place < truncation.place"
    pieces = found.selectExpr("*", f"explode(if({has_none}, array(true), array(true, false))) as is_own")
    return pieces.selectExpr(
        *keys,
        "if(is_own, at, truncation.moment) as at",
        "if(is_own, place, truncation.place) as place",
        "is_deleted or not is_own as is_deleted",
        *[f"if(is_own, {name}, null) as {name}" for name in ("state", "given", "tie", "cause", "problem", "rows")],
        *first_starts(found),
        "is_logged",
        "is_own as is_row",
    )
