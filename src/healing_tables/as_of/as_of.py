"""Look-up of the version of each key that was valid at the moment of a fact. The macro as_of() does the same in SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.as_of.known_versions import versions_known_at
from healing_tables.as_of.request import LookUp, look_up
from healing_tables.definition.spec import OPEN_END
from healing_tables.sql.identifiers import quoted
from healing_tables.sql.types import has_no_equality, types_of


def as_of(
    facts: DataFrame,
    dimension: DataFrame,
    key_columns: Mapping[str, str] | Sequence[str] | str,
    at: str,
    columns: Mapping[str, str] | Sequence[str] | str,
    unknown: object = None,
    *,
    valid_from: str = "valid_from",
    valid_to: str = "valid_to",
    valid_to_current: str | dt.datetime | dt.date | None = OPEN_END,
    versions_per_key: str | None = None,
    known_at: str | dt.datetime | dt.date | None = None,
    audit: DataFrame | None = None,
    null_keys: str = "set_aside",
) -> DataFrame:
    """Return every fact once, with columns of the version of its key that was valid at its moment.

    A fact without a key, without a moment, or whose key has no version at that moment gets the unknown member.
    If versions overlap, the one with the latest start is used; of those, the one with the latest end; of those, the one
    with the greatest values.

    Args:
        key_columns: the business key: names, or a map from the dimension's column to that of the facts.
        at: the column of the facts with the moment: date, timestamp or timestamp_ntz (read as UTC).
        columns: the columns of the dimension to add: names, or a map from the name in the result to the column.
        unknown: the unknown member: a map from a name in the result to its value, or one value for all.
        valid_from: the column with the start of a version.
        valid_to: the column with its end.
        valid_to_current: the open end, if it is before 9999-12-31. Otherwise NULL and every moment from 2200-01-01 on
            are open: a table of another program may have another open end than the default.
        versions_per_key: ``"many"`` or ``"few"``: the method of the look-up; the result is the same. Default: many,
            since counting the versions of a DataFrame could cost as much as the look-up.
        known_at: the dimension as it was at this moment, from its audit; see `known_versions`.
        audit: the audit of the dimension, with known_at.
        null_keys: ``"keep"``: NULL in one of several key columns is a value like others.
    Returns: the columns of the facts, then the added columns.
    Raises: ArgumentError with all mistakes.
    """
    if known_at is not None or audit is not None:
        dimension = versions_known_at(dimension, audit, known_at, valid_from)
    request = look_up(
        types_of(facts.schema),
        types_of(dimension.schema),
        key_columns=key_columns,
        at=at,
        columns=columns,
        unknown=unknown,
        valid_from=valid_from,
        valid_to=valid_to,
        valid_to_current=valid_to_current,
        versions_per_key=versions_per_key,
        null_keys=null_keys,
    )
    found = (as_of_by_join if versions_per_key == "few" else as_of_by_window)(facts, dimension, request)
    return found.selectExpr("fact.*", *[shown(column.name, column.unknown) for column in request.columns])


def shown(name: str, unknown: str) -> str:
    value = f"version.row.{quoted(name)}"
    return f"case when at < version.until then {value} else {unknown} end as {quoted(name)}"


def as_of_by_window(facts: DataFrame, dimension: DataFrame, request: LookUp) -> DataFrame:
    """Facts and versions under one another, in one shuffle; then each fact looks back.

    The sort by key and moment compares rows of a key column by column, which is slow where a key has many: so they are
    first put in order by one number, the key's hash and then the moment, and come to it in runs.

    Returns: ``fact`` (a struct), ``at``, and ``version`` {until, row}: the one that began last by then, or NULL.
    """
    keys = ", ".join(key_names(request))
    fact_rows = facts.selectExpr(
        *named(request.fact_keys),
        # facts without a key would all meet in one task
        f"if({request.has_key}, null, {request.at}) as spread",
        f"{request.at} as at",
        "struct(*) as fact",
        "null as version",
    )
    version_rows = dimension.where(request.is_proper).selectExpr(
        *named(request.version_keys),
        "null as spread",
        f"{request.start} as at",
        "null as fact",
        f"{version(request)} as version",
    )
    return (
        fact_rows.unionAll(version_rows)
        .repartition(*key_names(request), "spread")
        .sortWithinPartitions(f.expr(f"shiftleft(cast(hash({keys}) as bigint), 40) ^ shiftright(at, 24)"))
        .selectExpr(
            "fact",
            "at",
            f"last_value(version) ignore nulls over (partition by {keys}, spread "
            f"order by at, {order(request)} "
            "rows between unbounded preceding and current row) as version",
        )
        .where("fact is not null")
    )


def as_of_by_join(facts: DataFrame, dimension: DataFrame, request: LookUp) -> DataFrame:
    """As `as_of_by_window`, by a join. A version is cut where the next one begins, so no fact can meet two."""
    keys = key_names(request)
    next_start = f"lead(at) over (partition by {', '.join(keys)} order by at, {order(request)})"
    fact_rows = facts.selectExpr(*named(request.fact_keys), f"{request.at} as at", "struct(*) as fact")
    version_rows = (
        dimension.where(request.is_proper)
        .selectExpr(*named(request.version_keys), f"{request.start} as at", f"{version(request)} as version")
        .selectExpr(
            *keys,
            "at",
            f"struct(least(version.until, {next_start}) as until, version.row as row) as version",
        )
    )
    same_key = " and ".join(f"facts.{key} {request.same} versions.{key}" for key in keys)
    in_force = "facts.at >= versions.at and facts.at < versions.version.until"
    return (
        fact_rows.alias("facts")
        .join(version_rows.alias("versions"), f.expr(f"{same_key} and {in_force}"), "left")
        .selectExpr("facts.fact", "facts.at", "versions.version")
    )


def key_names(request: LookUp) -> list[str]:
    return [f"key_{number}" for number in range(1, len(request.fact_keys) + 1)]


def named(keys: Sequence[str]) -> list[str]:
    return [f"{key} as key_{number}" for number, key in enumerate(keys, start=1)]


def version(request: LookUp) -> str:
    fields = ", ".join(f"{quoted(one.column)} as {quoted(one.name)}" for one in request.columns)
    return f"struct({request.until} as until, struct({fields}) as row)"


def order(request: LookUp) -> str:
    """What orders rows of one moment: versions before facts; among versions the end, then the columns to look up.

    A bare column is not carried through the shuffle twice. Maps have no order.
    """
    fields = [one.name for one in request.columns if not has_no_equality(one.type)]
    if len(fields) == len(request.columns):
        return "version nulls last"
    brought = [f"version.row.{quoted(name)}" for name in fields]
    return ", ".join(["version is null", "version.until", *brought])
