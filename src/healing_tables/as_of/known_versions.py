"""What was known of a dimension: each version that was published, from its audit. The macro known_versions() does the
same in SQL."""

from __future__ import annotations

import datetime as dt
import json

from pyspark.sql import DataFrame

from healing_tables.as_of.known_columns import END_OF_TEXT, known_columns, read_texts
from healing_tables.definition.spec import OPEN_END
from healing_tables.errors import ArgumentError, Mistake, counted
from healing_tables.sql import instants
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import TIMESTAMP, as_moment
from healing_tables.sql.types import types_of

# The number of a publish after all others
AFTER_ALL = 2**63 - 1


def known_versions(
    dimension: DataFrame,
    audit: DataFrame,
    *,
    valid_from: str | None = "valid_from",
    valid_to_current: str | dt.datetime | dt.date | None = OPEN_END,
) -> DataFrame:
    """Return every version of a dimension that was ever published, with the time in which it was what the table said.

    Args:
        dimension: the table as it is now; a row that the audit does not have has been known since the first publish in
            it.
        audit: its audit; rows that were written before publishes had numbers do not count.
        valid_from: the column with the start of a version; None for a table with one row per key.
        valid_to_current: the open end, for known_to.
    Returns: the columns of the dimension, then those that it had before, ``known_from`` and ``known_to`` (timestamps).
    Raises: ArgumentError with all mistakes.
    """
    mistakes: list[Mistake] = []
    end = open_end(valid_to_current, mistakes)
    versions = published_versions(dimension, audit, valid_from, mistakes)
    taken = [name for name in ("known_from", "known_to") if find(name, dimension.columns) is not None]
    mistakes += [
        Mistake("dimension", f"a dimension without a column {name}", name, "rename that column") for name in taken
    ]
    if versions is None or mistakes:
        raise ArgumentError(counted("known_versions", mistakes), mistakes)
    return versions.selectExpr("row.*", "known_from", f"coalesce(known_to, {end}) as known_to")


def versions_known_at(
    dimension: DataFrame, audit: DataFrame | None, known_at: str | dt.datetime | dt.date | None, valid_from: str
) -> DataFrame:
    """Return the rows of a dimension as they were at a moment.

    Raises: ArgumentError with all mistakes; also where the audit begins later.
    """
    mistakes: list[Mistake] = []
    if audit is None:
        wanted = "the audit of the dimension, with known_at"
        mistakes.append(Mistake("audit", wanted, "none", "pass it, such as audit=spark.table('dim_customer_audit')"))
    try:
        at = instants.micros(known_at or "")
    except (ValueError, AttributeError):
        wanted = "a moment in UTC such as '2024-01-31' or '2024-01-31 10:00:00'"
        mistakes.append(Mistake("known_at", wanted, repr(known_at), "correct it, or leave out audit"))
    versions = published_versions(dimension, audit, valid_from, mistakes) if audit is not None else None
    if audit is not None and not mistakes:
        mistakes += before_first(audit, at, str(known_at))
    if versions is None or mistakes:
        raise ArgumentError(counted("as_of", mistakes), mistakes)
    moment = as_moment(f"{at}L", TIMESTAMP)
    return versions.where(f"known_from <= {moment} and (known_to is null or known_to > {moment})").selectExpr("row.*")


def before_first(audit: DataFrame, at: int, given: str) -> list[Mistake]:
    """The mistake of a moment before the first publish in an audit."""
    published = audit.where("publish_no is not null")
    since: int | None = published.selectExpr("unix_micros(min(published_at)) as since").collect()[0].since
    if since is not None and since <= at:
        return []
    remedy = (
        "what was known is known from the next publish on"
        if since is None
        else f"its first publish is of {instants.moment_text(since)}: name a later moment"
    )
    return [Mistake("known_at", "a moment after the first publish in the audit", given, remedy)]


def published_versions(
    dimension: DataFrame, audit: DataFrame, valid_from: str | None, mistakes: list[Mistake]
) -> DataFrame | None:
    """``row`` (a struct of the columns), ``known_from`` and ``known_to`` (NULL while it is known); None with a mistake.

    Each row of the audit tells which row it found (side 0) and which it left (side 1). A row that is in the table now
    (side 2) counts if the audit does not have it. The clock of a publish may be behind that of the one before.
    """
    stored = types_of(dimension.schema)
    if valid_from is not None and find(valid_from, stored) is None:
        wanted = f"a column of the dimension, which has {', '.join(stored)}"
        mistakes.append(Mistake("valid_from", wanted, valid_from, "where a key has one row, write valid_from=None"))
    if "published_at" not in audit.columns:
        wanted = "an audit of the dimension that says when a row was published"
        got = "an audit of an earlier version, or another table"
        mistakes.append(Mistake("audit", wanted, got, "publish the dimension once, or name its audit"))
    if mistakes:
        return None
    published = audit.where("publish_no is not null")
    texts = "inline(array(struct(0 as side, old_values as text), struct(1 as side, new_values as text)))"
    ends = published.selectExpr("key", texts).where("text is not null").selectExpr("key", f"{END_OF_TEXT} as text_end")
    kinds = ends.groupBy("text_end").agg({"key": "min"}).toDF("text_end", "key").collect()
    columns = known_columns(stored, [row.text_end for row in kinds])
    stored_row = struct_of({column.name: column.stored_value(stored) for column in columns})
    if not kinds:
        never = f"cast(null as {TIMESTAMP}) as known_to"
        return dimension.selectExpr(f"{stored_row} as row", "now() as known_from", never)
    clock = published.groupBy("publish_no").agg({"published_at": "max"}).toDF("publish_no", "at")
    clock = clock.selectExpr("publish_no", "max(at) over (order by publish_no) as at")
    told = (
        published.join(clock, "publish_no")
        .selectExpr("publish_no", "at", texts)
        .where("text is not null")
        .selectExpr("*", *read_texts(columns))
        .selectExpr("publish_no", "side", "at", f"{struct_of({one.name: one.value() for one in columns})} as row")
    )
    present = dimension.selectExpr(
        f"{AFTER_ALL}L as publish_no", "2 as side", f"cast(null as {TIMESTAMP}) as at", f"{stored_row} as row"
    )
    names = [*json.loads(kinds[0].key), *([valid_from] if valid_from is not None else [])]
    identity = ", ".join(f"row.{quoted(find(name, [one.name for one in columns]) or name)}" for name in names)
    of_row = f"over (partition by {identity} order by publish_no, side)"
    since = published.selectExpr("min(published_at) as since")
    return (
        told.unionAll(present)
        .selectExpr(
            "row",
            "side",
            "at",
            f"lag(side) {of_row} is null as is_first",
            f"if(side = 0, at, lead(at) {of_row}) as until",
        )
        .crossJoin(since)
        .where("side = 1 or (is_first and (until is null or since < until))")
        .selectExpr("row", "if(side = 1, at, since) as known_from", "until as known_to")
    )


def struct_of(values: dict[str, str]) -> str:
    return f"named_struct({', '.join(f'{literal(name)}, {value}' for name, value in values.items())})"


def open_end(end: str | dt.datetime | dt.date | None, mistakes: list[Mistake]) -> str:
    """As SQL, of the type of ``known_to``."""
    try:
        return "null" if end is None else as_moment(f"{instants.micros(end)}L", TIMESTAMP)
    except (ValueError, AttributeError):
        wanted = "a moment such as '9999-12-31 00:00:00', or None"
        mistakes.append(Mistake("valid_to_current", wanted, repr(end), "write a date, or a date and a time"))
        return "null"
