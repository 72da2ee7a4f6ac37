"""A batch as events: one row per key and moment, with the state of the key from then on.

With rules of change data capture, they are the rows as they were sent, each different one once: see feed.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.layout import Column, Layout, by_name
from healing_tables.definition.spec import CAUSE, DimensionSpec
from healing_tables.errors import BatchError, Mistake, counted
from healing_tables.plan.set_aside import as_given
from healing_tables.sql import instants
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.instants import DAY, as_micros
from healing_tables.sql.types import types_of
from healing_tables.sql.values import JSON, normal

# Why a row is refused, as in the plan
TWO_ROWS = "two different rows for one key and moment"

# The columns that show whether a row ends its key, and all keys
END = "healing_tables end"
END_OF_ALL = "healing_tables end of all"
# Of the rows of a moment: when the key begins to exist, by all of them and by those that are in the log
LEAST_STARTS = {"first_start": "min(first_start)", "logged_start": "min(if(is_logged, first_start, null))"}


def key_names(layout: Layout) -> list[str]:
    """Keys are ``k1..n`` while a plan is made, attributes ``a1..n``, so no name of a user can clash."""
    return [f"k{number}" for number in range(1, len(layout.keys) + 1)]


def as_keys(layout: Layout, values: Sequence[str]) -> list[str]:
    """The keys of a plan from the values of the key columns, as SQL.

    Where NULL is a value, each is a struct of it: joins by structs find NULL, too. Without any value there is no key.
    """
    if not layout.has_null_keys:
        return list(values)
    nothing = " and ".join(f"({value}) is null" for value in values)
    return [f"if({nothing}, null, struct({value} as v))" for value in values]


def key_values(layout: Layout, prefix: str = "") -> list[str]:
    """The values of the key columns from the keys of a plan, as SQL. Args: prefix: of the names of these keys."""
    return [f"{prefix}{name}{'.v' if layout.has_null_keys else ''}" for name in key_names(layout)]


def named_keys(layout: Layout, prefix: str = "") -> list[str]:
    """The keys of a plan from the columns of a table, as SQL, under their names. Args: prefix: of these columns."""
    keys = as_keys(layout, [prefix + quoted(key.name) for key in layout.keys])
    return [f"{key} as {name}" for name, key in zip(key_names(layout), keys, strict=True)]


def events(batch: DataFrame, layout: Layout, spec: DimensionSpec, at: int | None) -> DataFrame:
    """The batch in the names that the plan works with.

    Args:
        at: the moment of the batch in microseconds, used where the rows have none of their own.
    Returns: ``k1..n``, ``at`` (microseconds), ``is_deleted`` (the key ends), ``state`` (a struct of the attributes
        ``a1..n``, NULL where the key ends), ``tie`` (a struct of the tie breakers), ``cause`` (a struct of the
        texts in CAUSE), ``is_logged`` (false), ``problem`` (why the row is refused, or NULL), ``rows`` (how many rows
        it replaces), ``reason`` (why these rows are set aside, or NULL), ``given`` (the rows as they were given, if
        they are set aside or may be: see set_aside.py).
    """
    moment = f"{at}L" if at is not None else "cast(null as bigint)"
    if spec.changed_at is not None:
        column = next(name for name in batch.columns if name.lower() == spec.changed_at.lower())
        moment = as_micros(quoted(column), batch.schema[column].dataType.simpleString())
    if layout.moment_type == "date":
        moment = f"{moment} - pmod({moment}, {DAY})"
    is_deleted, is_truncation = "false", None
    if spec.deleted_when is not None:
        batch, is_deleted = with_end(batch, "deleted_when", spec), f"coalesce({quoted(END)}, false)"
    if spec.truncated_when is not None:
        batch, is_truncation = with_end(batch, "truncated_when", spec), f"coalesce({quoted(END_OF_ALL)}, false)"
        is_deleted = f"({is_deleted} or {is_truncation})"
    causes = {name: quoted(find(column, batch.columns) or column) for name, column in spec.causes.items()}
    values = [value(key) for key in layout.keys]
    keys = [key if is_truncation is None else f"if({is_truncation}, null, {key})" for key in as_keys(layout, values)]
    named = [f"{key} as {name}" for name, key in zip(key_names(layout), keys, strict=True)]
    given = as_given(types_of(batch.drop(END, END_OF_ALL).schema))
    start = []
    if spec.first_start_column is not None:
        types = types_of(batch.schema)
        column = find(spec.first_start_column, types) or spec.first_start_column
        start = [f"{as_micros(quoted(column), types[column])} as first_start"]
    why = reason(values, moment, layout, spec, is_truncation)
    if spec.on_late == "error":  # in the same projection: a later one would build it for every row
        given = f"if(({why}) is null, null, {given})"
    rows = batch.selectExpr(
        *named,
        f"{moment} as at",
        f"{is_deleted} as is_deleted",
        f"if({is_deleted}, null, {state(layout)}) as state",
        f"{tie(spec)} as tie",
        f"{cause(causes)} as cause",
        "false as is_logged",
        f"{why} as reason",
        f"{given} as given",
        *([f"{literal(spec.is_partial)} as is_partial"] if spec.has_rules else []),
        *([f"{part_of_batch(types_of(batch.schema), layout, spec)} as part"] if spec.within else []),
        *start,
    )
    return distinct_rows(rows, layout, spec) if spec.has_rules else one_per_moment(rows, layout, spec)


def with_end(batch: DataFrame, option: str, spec: DimensionSpec) -> DataFrame:
    """The batch and END, or END_OF_ALL: computed once, of its own columns only. Args: option: the condition.

    Raises: BatchError if the condition is not valid.
    """
    condition, end = getattr(spec, option), {"deleted_when": END, "truncated_when": END_OF_ALL}[option]
    got = None
    try:
        rows = batch.selectExpr("*", f"({condition}\n) as {quoted(end)}")
        kind = rows.schema[end].dataType.simpleString()
        got = None if kind in ("boolean", "void") else f"{condition}, of type {kind}"
    except AnalysisException as error:
        got = f"{condition}: {str(error).strip().splitlines()[0]}"
    if got is not None:
        own = [name for name in batch.columns if name != END]
        wanted = f"a condition over the columns of the batch: {', '.join(own)}"
        mistake = Mistake(option, wanted, got, "write it in SQL, as in a where clause")
        raise BatchError(counted("the batch", [mistake]), [mistake])
    return rows


def reason(keys: Sequence[str], at: str, layout: Layout, spec: DimensionSpec, is_truncation: str | None = None) -> str:
    """Why a row has no place on a timeline, as SQL; NULL if it has one. The words are those of the macro
    `_set_aside_reason`.

    Args: keys: the values of the key columns, as SQL; at: the moment, in microseconds; is_truncation: the row needs no
        key, as SQL; None: none is.
    """
    needs_key = "" if is_truncation is None else f" and not {is_truncation}"
    moment = spec.changed_at or "the moment of the batch"
    end = instants.open_from(spec.valid_to_current, layout.moment_type)
    if layout.has_null_keys:
        found = {" and ".join(f"({key}) is null" for key in keys) + needs_key: "NULL in all key columns"}
    else:
        found = {
            f"({key}) is null{needs_key}": f"NULL in key column {column.column}"
            for key, column in zip(keys, layout.keys, strict=True)
        }
    found[f"({at}) is null"] = f"NULL moment in {moment}"
    found[f"({at}) >= {end}L"] = f"moment at or after the end of time in {moment}"
    return f"case {' '.join(f'when {case} then {literal(text)}' for case, text in found.items())} end"


def one_per_moment(rows: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """One row per key and moment, as `events` returns it; a logged row takes precedence over an equal one.

    Args: rows: those of a change log have no ``reason`` and no ``given``. Rows that are set aside compete with none.
    """
    keys = key_names(layout)
    partition = f"over (partition by {', '.join(keys)}, at"
    is_of_batch = "reason" in rows.columns
    is_aside = "reason is not null" if is_of_batch else "false"
    differ = "not (lowest <=> struct(highest.is_deleted, highest.state))" if spec.on_tie == "error" else "false"
    aside = ["max(reason) as reason", "collect_list(given) as given"] if is_of_batch else []
    part = ["part"] if spec.within and "part" in rows.columns else []
    starts = LEAST_STARTS if first_starts(rows) else {}
    if starts:  # of all rows, also of those that do not count
        rows = rows.withColumns({name: f.expr(f"{least} {partition})") for name, least in starts.items()})
    return (
        rows.selectExpr("*", f"rank() {partition} order by tie desc) as place", f"count(*) {partition}) as rows")
        .where(f"place = 1 or {is_aside}")
        .groupBy(*keys, "at")
        .agg(
            f.expr("min(struct(is_deleted, state)) as lowest"),
            f.expr(f"max(struct({', '.join(['is_deleted', 'state', 'is_logged', 'cause', *part])})) as highest"),
            f.expr("first(tie) as tie"),
            f.expr("first(rows) as rows"),
            *map(f.expr, aside),
            *[f.expr(f"first({name}) as {name}") for name in starts],
        )
        .selectExpr(
            *keys,
            "at",
            "highest.is_deleted",
            "highest.state",
            "tie",
            "highest.cause",
            f"highest.is_logged and {'first_start <=> logged_start' if starts else 'true'} as is_logged",
            f"if(not {is_aside} and {differ}, '{TWO_ROWS}', null) as problem",
            "rows",
            *(["reason", "given"] if is_of_batch else []),
            *[f"highest.{name}" for name in part],
            *starts,
        )
    )


def distinct_rows(rows: DataFrame, layout: Layout, spec: DimensionSpec) -> DataFrame:
    """Each different row of a key and moment once, in the columns of `one_per_moment` and ``is_partial``; for all keys
    at once, truncations. Args: as of `one_per_moment`."""
    keys, is_of_batch = key_names(layout), "reason" in rows.columns
    own = ["reason"] if is_of_batch else []
    part = ["part"] if spec.within and "part" in rows.columns else []
    place = f"over (partition by {', '.join([*keys, place_of(spec), *own])})"
    state = "struct(is_deleted, state)"
    differ = f"not (min({state}) {place} <=> max({state}) {place})" if spec.on_tie == "error" else "false"
    is_aside = "reason is not null" if is_of_batch else "false"
    starts = LEAST_STARTS if first_starts(rows) else {}
    return (
        rows.groupBy(*keys, "at", "tie", "is_deleted", "state", *own)
        .agg(
            f.expr(
                f"max(struct({', '.join(['is_logged', 'cause', 'not is_partial as is_complete', *part])})) as newest"
            ),
            f.expr("count(*) as rows"),
            *([f.expr("collect_list(given) as given")] if is_of_batch else []),
            *([f.expr(f"{least} as {name}") for name, least in starts.items()]),
        )
        .selectExpr(
            *keys,
            "at",
            "is_deleted",
            "state",
            "tie",
            "newest.cause",
            f"newest.is_logged and {'first_start <=> logged_start' if starts else 'true'} as is_logged",
            "not newest.is_complete as is_partial",
            f"if(not {is_aside} and {differ}, '{TWO_ROWS}', null) as problem",
            "rows",
            *(["reason", "given"] if is_of_batch else []),
            *[f"newest.{name}" for name in part],
            *starts,
        )
    )


def first_starts(rows: DataFrame) -> list[str]:
    """The column ``first_start``, in microseconds, if rows have it: from then on the key exists (``valid_from_first``).

    A row that is in the log already is new if it has an earlier one; ``logged_start`` is that of the log.
    """
    return ["first_start"] if "first_start" in rows.columns else []


def part_of_batch(given: Mapping[str, str], layout: Layout, spec: DimensionSpec) -> str:
    """What a row of the batch is a part of (``within``), as SQL: its values as JSON. Args: given: of the batch."""
    stored = {(column.column or column.name).lower(): value(column) for column in (*layout.keys, *layout.attributes)}
    fields = []
    for n, name in enumerate(spec.within, start=1):
        column = find(name, given) or name
        fields.append(f"{stored.get(name.lower()) or normal(quoted(column), given[column])} as w{n}")
    return f"to_json(struct({', '.join(fields)}), {JSON})"


def part_of_stored(layout: Layout, spec: DimensionSpec) -> str | None:
    """The same, computed from keys and attributes (``k1..n``, ``state``); None if `within` names another column."""
    stored = {column.name.lower(): name for name, column in zip(key_values(layout), layout.keys, strict=True)}
    stored |= {attribute.name.lower(): f"state.a{n}" for n, attribute in by_name(layout)}
    if any(name.lower() not in stored for name in spec.within):
        return None
    fields = [f"{stored[name.lower()]} as w{n}" for n, name in enumerate(spec.within, start=1)]
    return f"to_json(struct({', '.join(fields)}), {JSON})"


def place_of(spec: DimensionSpec) -> str:
    """The place of a row among those of its key, as SQL. Rows without a sequence come first, by their moments: stored
    versions, and rows that were logged before the option was set."""
    ties = [f"tie.t{n}" for n, _ in enumerate(spec.order_by, start=1)]
    if not spec.sequence_by:
        return f"struct({', '.join(['at', *ties])})"
    has_none = " and ".join(f"{tie} is null" for tie in ties)
    return f"struct({', '.join(ties)}, if({has_none}, at, null) as moment)"


def presence(events: DataFrame, layout: Layout, full_at: int, order: str = "at") -> DataFrame:
    """Events that repeat the rows of a full batch at its moment, since a deletion may be newer than a row.

    Args: order: of the rows of a key; the last one is repeated.
    """
    newest = (
        events.where(f"at <= {full_at}L")
        .groupBy(*key_names(layout))
        .agg(f.expr(f"max_by(struct(*), {order}) as newest"))
    )
    return (
        newest.where(f"newest.at < {full_at}L and not newest.is_deleted")
        .selectExpr("newest.*")
        .withColumn("at", f.expr(f"{full_at}L"))
    )


def value(column: Column) -> str:
    if column.column is None:
        return f"cast(null as {column.type})"
    return f"cast({normal(quoted(column.column), column.type)} as {column.type})"


def state(layout: Layout) -> str:
    """Fields in the order of the attributes' names, so that the greatest does not depend on the order in a spec."""
    fields = [f"{value(attribute)} as a{number}" for number, attribute in by_name(layout)]
    return f"struct({', '.join(fields) or 'true as present'})"


def tie(spec: DimensionSpec) -> str:
    fields = [f"{quoted(name)} as t{n}" for n, name in enumerate(spec.order_by, start=1)]
    return f"struct({', '.join(fields) or 'true as none'})"


def cause(values: Mapping[str, str]) -> str:
    """The cause of a row, as a struct. Args: values: name in CAUSE to SQL; missing ones are NULL."""
    fields = ", ".join(f"cast({values.get(name, 'null')} as string) as {name}" for name in CAUSE)
    return f"struct({fields})"
