"""Rows for the time in which a key is deleted (``deleted_rows``): a deletion is a state like others, with a mark.

at | state        at | state
10 | {Ann}    ->  10 | {Ann, false}
20 | NULL         20 | {Ann, true}
30 | {Eve}        30 | {Eve, false}

The macros have the same rule in macros/timeline/_slices.sql.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from healing_tables.definition.layout import Column, Layout, by_name
from healing_tables.plan.batch import key_names
from healing_tables.plan.columns import with_columns


def layout_with_mark(layout: Layout) -> Layout:
    """The layout of these events: whether the key is deleted is an attribute of type 2, the last one."""
    mark = Column(layout.names["is_deleted"], None, "boolean")
    return replace(layout, attributes=(*layout.attributes, mark))


def with_marks(events: DataFrame, layout: Layout) -> DataFrame:
    """The events, where a deletion has the values of the state before it. A deletion before any state has no effect.

    Args: events: of all moments of their keys; layout: without the mark.
    """
    order = f"partition by {', '.join(key_names(layout))} order by at"
    known = f"last(state, true) over ({order} rows between unbounded preceding and current row)"
    mark = len(layout.attributes) + 1
    fields = ", ".join(
        f"is_deleted as a{n}" if n == mark else f"known_state.a{n} as a{n}"
        for n, _ in by_name(layout_with_mark(layout))
    )
    rows = events.selectExpr("*", f"{known} as known_state").where("known_state is not null")
    return with_columns(rows, state=f"struct({fields})", is_deleted="false").drop("known_state")
