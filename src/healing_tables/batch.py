"""A batch as events: one row per key and moment, with the state of the key from then on."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.hashing import normal
from healing_tables.layout import Column, Layout, quoted
from healing_tables.moments import as_micros
from healing_tables.naming import by_name
from healing_tables.spec import DimensionSpec

# Why a row is refused, as the plan says it
NULL_KEY = "NULL in a key column or in the moment"
TWO_ROWS = "two different rows for one key and moment"


def key_names(layout: Layout) -> list[str]:
    """Keys are ``k1..n`` while a plan is made, attributes ``a1..n``: no name of a user can clash."""
    return [f"k{number}" for number in range(1, len(layout.keys) + 1)]


def events(batch: DataFrame, layout: Layout, spec: DimensionSpec, at: int | None) -> DataFrame:
    """The batch in the names that the plan works with.

    Args:
        at: the moment of the batch in microseconds, used where the rows have none of their own.
    Returns: ``k1..n``, ``at`` (microseconds), ``gone`` (the key ends), ``state`` (a struct of the attributes ``a1..n``,
        NULL where the key ends), ``problem`` (why the row is refused, or NULL), ``rows`` (how many rows said so).
    """
    moment = f"{at}L" if at is not None else "cast(null as bigint)"
    if spec.changed_at is not None:
        column = next(name for name in batch.columns if name.lower() == spec.changed_at.lower())
        moment = as_micros(quoted(column), batch.schema[column].dataType.simpleString())
    gone = f"coalesce({spec.deleted_when}, false)" if spec.deleted_when is not None else "false"
    tie = ", ".join(quoted(name) for name in spec.tie_break_by) or "true"
    keys = key_names(layout)
    rows = batch.selectExpr(
        *[f"{value(key)} as {name}" for name, key in zip(keys, layout.keys, strict=True)],
        f"{moment} as at",
        f"{gone} as gone",
        f"if({gone}, null, {state(layout)}) as state",
        f"struct({tie}) as tie",
    )
    best = f"rank() over (partition by {', '.join(keys)}, at order by tie desc)"
    is_whole = " and ".join(f"{name} is not null" for name in [*keys, "at"])
    differ = "not (lowest <=> highest)" if spec.on_tie == "error" else "false"
    return (
        rows.selectExpr(
            "*", f"{best} as place", f"count(*) over (partition by {', '.join(keys)}, at) as rows"
        )
        .where("place = 1")
        .groupBy(*keys, "at")
        .agg(
            f.expr("min(struct(gone, state)) as lowest"),
            f.expr("max(struct(gone, state)) as highest"),
            f.expr("first(rows) as rows"),
        )
        .selectExpr(
            *keys,
            "at",
            "highest.gone",
            "highest.state",
            f"case when not ({is_whole}) then '{NULL_KEY}' when {differ} then '{TWO_ROWS}' end as problem",
            "rows",
        )
    )


def value(column: Column) -> str:
    return f"cast({normal(quoted(column.column), column.type)} as {column.type})"


def state(layout: Layout) -> str:
    """Fields in the order of the attributes' names, so that the greatest is the same whatever order a spec has."""
    fields = [f"{value(attribute)} as a{number}" for number, attribute in by_name(layout)]
    return f"struct({', '.join(fields) or 'true as present'})"
