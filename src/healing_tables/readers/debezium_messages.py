"""The reader of messages of Debezium."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.definition.options import check_choice
from healing_tables.errors import ArgumentError, Mistake, counted
from healing_tables.readers.feed import ENVELOPE, Feed, check_columns, check_schema, row_types
from healing_tables.sql.identifiers import find, literal, quoted

# The positions in ``source`` of PostgreSQL, SQL Server, MySQL and Oracle
POSITIONS = {
    "lsn": "bigint",
    "commit_lsn": "string",
    "change_lsn": "string",
    "event_serial_no": "bigint",
    "file": "string",
    "pos": "bigint",
    "row": "int",
    "scn": "string",
}


def debezium(
    frame: DataFrame,
    payload: str | None = None,
    schema: str | None = None,
    *,
    timestamps: str | Mapping[str, str] = "us",
    decimals: str = "base64",
    column_names: Mapping[str, str] | None = None,
) -> DataFrame:
    """Messages of Debezium. Heartbeats, tombstones and messages without a row are left out.

    Args:
        payload: the column with the JSON, as text or bytes, with or without its schema. None: the frame has the columns
            of an envelope, or rows that were flattened by ExtractNewRecordState.
        schema: of the row, as DDL.
        timestamps: the unit of timestamps that are numbers: ms, us or ns; or a map from column to unit.
        decimals: how decimals are written in JSON: base64 (decimal.handling.mode precise) or text (string, double).
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    names = column_names or {}
    kinds: dict[str, str | None]
    check_schema(payload, schema)
    if payload is None and find("op", frame.columns) is None:
        return flattened_debezium(frame, names)
    if payload is None:
        check_columns(frame, "Debezium", ("op", "source", "before", "after"))
        rows, kinds = frame, dict.fromkeys(frame.select("after.*").columns)
        fields = frame.select("source.*").columns
    else:
        check_columns(frame, "Debezium", (payload,))
        kinds = dict(row_types(schema or ""))
        texts = ", ".join(f"{quoted(name)} string" for name in kinds)
        source = ", ".join(
            f"{name} {kind}" for name, kind in {"ts_ms": "bigint", "ts_us": "bigint", **POSITIONS}.items()
        )
        members = f"op string, source struct<{source}>, before struct<{texts}>, after struct<{texts}>"
        text = f.col(quoted(payload)).cast("string")
        parsed = frame.select(f.from_json(text, f"payload struct<{members}>, {members}").alias("m"))
        bare = "struct(m.op, m.source, m.before, m.after)"
        rows = parsed.selectExpr(f"coalesce(m.payload, {bare}) as m").select("m.*")
        fields = ["ts_us", *POSITIONS]
    moments = ["timestamp_micros(source.ts_us)"] * ("ts_us" in fields) + ["timestamp_millis(source.ts_ms)"]
    at = f"coalesce({', '.join(moments)})"
    order = [
        "cast(source.scn as decimal(38,0)) as scn" if name == "scn" else f"source.{name}"
        for name in POSITIONS
        if name in fields
    ]
    place = placed(order, at, "if(op = 'r', 0, 1)")

    def value(name: str, kind: str | None) -> str:
        given = f"if(op = 'd', before, after).{quoted(name)}"
        return given if kind is None else debezium_value(name, given, kind, timestamps, decimals)

    rows = rows.where("op in ('c', 'u', 'd', 'r', 't')").selectExpr(
        *(f"{value(name, kind)} as {quoted(name)}" for name, kind in kinds.items()),
        f"{at} as healing_tables_at",
        f"{place} as healing_tables_place",
        "op = 'd' as healing_tables_gone",
        "op = 't' as healing_tables_truncated",
    )
    return ENVELOPE.read(rows, names)


def placed(order: Sequence[str], at: str, part: str) -> str:
    """The place of a row among those of its key, as SQL: its position in the log of the database, or its moment where
    it has none. A row of a snapshot comes before others of its place, also if it was read later.

    Args: order: the columns of the position; part: 0 for a row of a snapshot.
    """
    if not order:
        return f"struct({at} as at, {part} as part)"
    has_none = " and ".join(f"{column.rpartition(' as ')[0] or column} is null" for column in order)
    return f"struct({', '.join(order)}, if({has_none}, {at}, null) as at, {part} as part, {at} as read_at)"


def flattened_debezium(frame: DataFrame, column_names: Mapping[str, str]) -> DataFrame:
    names = {name.lower() for name in frame.columns}
    functions = {"__source_ts_us": "timestamp_micros", "__source_ts_ms": "timestamp_millis"}
    moments = [f"{function}({name})" for name, function in functions.items() if name in names]
    if not moments:
        mistake = Mistake(
            "the rows of Debezium",
            "a column op (an envelope), or __source_ts_ms (flattened rows with add.fields=op,lsn,source.ts_ms)",
            ", ".join(frame.columns),
            "pass payload and schema, or add the fields",
        )
        raise ArgumentError(counted("the reader", [mistake]), [mistake])
    at = f"coalesce({', '.join(moments)})"
    spellings = [spelling for name in POSITIONS for spelling in (f"__{name}", f"__source_{name}")]
    order = [spelling for spelling in spellings if spelling in names]
    has_op = "__op" in names
    flags = ["coalesce(cast(__deleted as string) = 'true', false)"] * ("__deleted" in names)
    flags += ["coalesce(__op = 'd', false)"] * has_op
    return Feed(
        (),
        at,
        placed(order, at, "if(__op = 'r', 0, 1)" if has_op else "1"),
        " or ".join(flags) or "false",
        "__.*",
        is_truncated="coalesce(__op = 't', false)" if has_op else "false",
    ).read(frame, column_names)


def debezium_value(name: str, value: str, kind: str, timestamps: str | Mapping[str, str], decimals: str) -> str:
    """A value that Debezium has written as JSON, in its type, as SQL. Args: value: its text."""
    unit = timestamps if isinstance(timestamps, str) else timestamps.get(name, "us")
    factors, mistakes = {"ms": " * 1000", "us": "", "ns": " div 1000"}, list[Mistake]()
    check_choice("timestamps", unit, list(factors), mistakes)
    check_choice("decimals", decimals, ["base64", "text"], mistakes)
    if mistakes:
        raise ArgumentError(counted("the reader", mistakes), mistakes)
    micros = f"try_cast({value} as bigint){factors[unit]}"
    if kind == "string":
        return value
    if kind == "date":
        return f"coalesce(date_from_unix_date(try_cast({value} as int)), try_cast({value} as date))"
    if kind in ("timestamp", "timestamp_ltz"):
        return f"coalesce(timestamp_micros({micros}), try_cast({value} as timestamp))"
    if kind == "timestamp_ntz":
        shifted = f"timestamp_ntz '1970-01-01 00:00:00' + ({micros}) * interval '0.000001' second"
        return f"coalesce({shifted}, try_cast({value} as timestamp_ntz))"
    if kind == "binary":
        return f"unbase64({value})"
    if kind.startswith("decimal(") and decimals == "base64":
        digits = f"hex(unbase64({value}))"
        byte = f"cast(conv(substr({digits}, 2 * i - 1, 2), 16, 10) as int)"
        total = f"cast(total * 256 + {byte} - if(i = 1 and {byte} >= 128, 256, 0) as decimal(38,0))"
        places = f"sequence(1, length({digits}) div 2)"
        unscaled = f"aggregate({places}, cast(0 as decimal(38,0)), (total, i) -> {total})"
        scale = kind[:-1].split(",")[1]
        return f"if({value} is null, null, cast(concat(cast({unscaled} as string), 'E-{scale}') as {kind}))"
    if kind.startswith(("array<", "struct<", "map<")):
        return f"from_json({value}, {literal(kind)})"
    return f"cast({value} as {kind})"
