"""Rows of change data capture as a change log: a DataFrame in, a DataFrame out, for `merge` and for streams.

Each returns the columns of the row and ``_changed_at``, ``_sequence`` (for ``sequence_by``), ``_is_deleted`` and, of
tools that have it, ``_is_truncated``. The macros `read_...` are the same in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from healing_tables.errors import ArgumentError, Mistake, counted
from healing_tables.sql.identifiers import find, literal, quoted
from healing_tables.sql.types import types_of


@dataclass(frozen=True)
class Feed:
    """How the rows of a tool are read, as SQL over them.

    Attributes:
        needed: the columns of the tool that it reads, and leaves out.
        hidden: a pattern of further names that it leaves out.
        replaced: column to what stands for it.
    """

    needed: Sequence[str]
    at: str
    sequence: str
    is_deleted: str
    hidden: str = "(?!)"
    replaced: Mapping[str, str] = field(default_factory=dict)
    is_truncated: str | None = None

    def read(self, frame: DataFrame, column_names: Mapping[str, str]) -> DataFrame:
        own = {"_changed_at": self.at, "_sequence": self.sequence, "_is_deleted": self.is_deleted}
        if self.is_truncated is not None:
            own["_is_truncated"] = self.is_truncated
        mistakes = [
            Mistake("column_names", " or ".join(own), name, "correct or remove it")
            for name in column_names
            if name not in own
        ]
        if mistakes:
            raise ArgumentError(counted("the reader", mistakes), mistakes)
        left_out = {name.lower() for name in self.needed}
        kept = [
            name
            for name in frame.columns
            if name.lower() not in left_out and not re.fullmatch(self.hidden, name.lower())
        ]
        listed = [f"{self.replaced.get(name.lower(), quoted(name))} as {quoted(name)}" for name in kept]
        listed += [f"{value} as {quoted(column_names.get(name, name))}" for name, value in own.items()]
        return frame.selectExpr(*listed)


# Rows of an envelope, which a reader has brought to these columns
ENVELOPE = Feed(
    (),
    "healing_tables_at",
    "healing_tables_place",
    "healing_tables_gone",
    "healing_tables_(at|place|gone|truncated)",
    is_truncated="healing_tables_truncated",
)


def check_columns(frame: DataFrame, tool: str, needed: Sequence[str]) -> None:
    """Raises: ArgumentError for columns that the frame lacks."""
    listed = ", ".join(frame.columns)
    mistakes = [
        Mistake(f"the rows of {tool}", f"a column {name}", listed, "read the rows as the tool has written them")
        for name in needed
        if find(name, frame.columns) is None
    ]
    if mistakes:
        raise ArgumentError(counted("the reader", mistakes), mistakes)


def delta_changes(frame: DataFrame, *, column_names: Mapping[str, str] | None = None) -> DataFrame:
    """The change feed of a Delta table.

    Args:
        frame: of ``readChangeFeed``.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    needed = ("_change_type", "_commit_version", "_commit_timestamp")
    check_columns(frame, "the change feed", needed)
    is_deleted = "_change_type in ('delete', 'update_preimage')"
    sequence = f"struct(_commit_version as version, if({is_deleted}, 0, 1) as part)"
    return Feed(needed, "_commit_timestamp", sequence, is_deleted).read(frame, column_names or {})


def iceberg_changes(
    frame: DataFrame, snapshots: DataFrame, *, column_names: Mapping[str, str] | None = None
) -> DataFrame:
    """A changelog view of an Iceberg table.

    Args:
        snapshots: the metadata table ``<table>.snapshots``.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    needed = ("_change_type", "_change_ordinal", "_commit_snapshot_id")
    check_columns(frame, "the changelog view", needed)
    taken = snapshots.selectExpr("snapshot_id as healing_tables_snapshot", "committed_at as healing_tables_at")
    rows = frame.join(taken, f.expr("healing_tables_snapshot = _commit_snapshot_id"))
    is_deleted = "_change_type in ('DELETE', 'UPDATE_BEFORE')"
    sequence = f"struct(_change_ordinal as ordinal, if({is_deleted}, 0, 1) as part)"
    own = (*needed, *taken.columns)
    return Feed(own, "healing_tables_at", sequence, is_deleted).read(rows, column_names or {})


def fivetran(frame: DataFrame, *, column_names: Mapping[str, str] | None = None) -> DataFrame:
    """A table of Fivetran in history mode: a period that has ended ends a millisecond after its last one.

    Args: column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    needed = ("_fivetran_start", "_fivetran_end", "_fivetran_active")
    check_columns(frame, "Fivetran", needed)
    starts = "explode(if(coalesce(_fivetran_active, false), array(true), array(true, false)))"
    rows = frame.selectExpr("*", f"{starts} as healing_tables_starts")
    at = "if(healing_tables_starts, _fivetran_start, _fivetran_end + interval '0.001' second)"
    sequence = f"struct({at} as at, if(healing_tables_starts, 1, 0) as part)"
    hidden = "_fivetran_synced|_fivetran_batch|healing_tables_starts"
    return Feed(needed, at, sequence, "not healing_tables_starts", hidden).read(rows, column_names or {})


def airbyte(
    frame: DataFrame, changed_at: str | None = None, *, column_names: Mapping[str, str] | None = None
) -> DataFrame:
    """An append table of Airbyte: of a sync by change data capture, or of one with a cursor.

    Args:
        changed_at: the column of the cursor; None: the columns ``_ab_cdc_...``.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    cdc = ("_ab_cdc_updated_at", "_ab_cdc_deleted_at")
    check_columns(frame, "Airbyte", ("_airbyte_extracted_at", *((changed_at,) if changed_at is not None else cdc)))
    order: list[str] = []
    if changed_at is None:
        # of PostgreSQL and SQL Server; of MySQL
        names = ("_ab_cdc_lsn", "_ab_cdc_event_serial_no", "_ab_cdc_log_file", "_ab_cdc_log_pos")
        order = [name for name in names if find(name, frame.columns) is not None]
    at = "cast(_ab_cdc_updated_at as timestamp)" if changed_at is None else quoted(changed_at)
    sequence = f"struct({', '.join([*(order or [f'{at} as at']), '_airbyte_extracted_at'])})"
    is_deleted = "_ab_cdc_deleted_at is not null" if changed_at is None else "false"
    return Feed((), at, sequence, is_deleted, "_airbyte_.*|_ab_cdc_.*").read(frame, column_names or {})


def dms(
    frame: DataFrame,
    changed_at: str,
    *,
    op: str = "Op",
    sequence: Sequence[str] = (),
    key_columns: Sequence[str] = (),
    before: str = "BI_",
    column_names: Mapping[str, str] | None = None,
) -> DataFrame:
    """Files or tables of AWS DMS.

    Args:
        changed_at: the column with the moment (the setting TimestampColumnName).
        op: the column with I, U or D; NULL and '' in rows of a full load, which come before others of their moment.
        sequence: columns that order rows besides, for example of AR_H_CHANGE_SEQ.
        key_columns: with columns of before images, a changed key is a deletion and an insertion.
        before: the prefix of before images.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    images = [before + key for key in key_columns]
    needed = (op, changed_at, *sequence, *images)
    check_columns(frame, "DMS", needed)
    operation = f"upper(trim({quoted(op)}))"
    changes = " or ".join(f"{quoted(key)} <> {quoted(image)}" for key, image in zip(key_columns, images, strict=True))
    pieces = f"if({operation} = 'U' and ({changes or 'false'}), array(true, false), array(true))"
    rows = frame.selectExpr("*", f"explode({pieces}) as healing_tables_is_after")
    replaced = {
        key.lower(): f"if(healing_tables_is_after, {quoted(key)}, {quoted(image)})"
        for key, image in zip(key_columns, images, strict=True)
    }
    part = (
        f"if(coalesce({operation}, '') = '', 0, {'if(healing_tables_is_after, 2, 1)' if key_columns else '1'}) as part"
    )
    order = f"struct({', '.join([*map(quoted, sequence or [changed_at]), part])})"
    is_deleted = f"coalesce({operation} = 'D', false) or not healing_tables_is_after"
    hidden = "healing_tables_is_after" + (f"|{re.escape(before.lower())}.*" if before else "")
    return Feed(needed, quoted(changed_at), order, is_deleted, hidden, replaced).read(rows, column_names or {})


def goldengate(
    frame: DataFrame,
    payload: str | None = None,
    schema: str | None = None,
    *,
    key_columns: Sequence[str] = (),
    column_names: Mapping[str, str] | None = None,
) -> DataFrame:
    """Messages of Oracle GoldenGate.

    Args:
        payload: the column with the JSON, as text or bytes; None: its members are columns of the frame.
        schema: of the row, as DDL.
        key_columns: a changed key is a deletion and an insertion.
        column_names: other names for the columns that it adds.
    Raises: ArgumentError.
    """
    needed = ("op_type", "op_ts", "pos", "before", "after")
    check_schema(payload, schema)
    check_columns(frame, "GoldenGate", needed if payload is None else (payload,))
    rows = frame
    if payload is not None:
        members = f"op_type string, op_ts string, pos string, before struct<{schema}>, after struct<{schema}>"
        rows = frame.select(f.from_json(f.col(quoted(payload)).cast("string"), members).alias("m")).select("m.*")
    columns = rows.select("after.*").columns
    changed = " or ".join(f"before.{quoted(key)} <> after.{quoted(key)}" for key in key_columns)
    pieces = f"if(op_type = 'U' and ({changed or 'false'}), array(true, false), array(true))"
    rows = rows.selectExpr("*", f"explode({pieces}) as healing_tables_is_after")
    row = "if(op_type = 'D' or not healing_tables_is_after, before, after)"
    rows = rows.selectExpr(
        *(f"{row}.{quoted(name)} as {quoted(name)}" for name in columns),
        "cast(op_ts as timestamp_ntz) as healing_tables_at",
        "struct(pos, if(healing_tables_is_after, 1, 0) as part) as healing_tables_place",
        "op_type = 'D' or not healing_tables_is_after as healing_tables_gone",
        "op_type = 'T' as healing_tables_truncated",
    )
    return ENVELOPE.read(rows, column_names or {})


def check_schema(payload: str | None, schema: str | None) -> None:
    """Raises: ArgumentError for one without the other."""
    if (payload is None) != (schema is None):
        remedy = "write schema='id int, city string'"
        raise ArgumentError.one("the reader", "schema", "payload and schema, or neither of them", "one of them", remedy)


def row_types(schema: str) -> dict[str, str]:
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return types_of(parsed)


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
    place = f"struct({', '.join([*order, f'{at} as at', placed('op')])})"

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


def placed(op: str) -> str:
    """A row of a snapshot comes before any other of its position."""
    return f"if({op} = 'r', 0, 1) as part"


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
        f"struct({', '.join([*order, f'{at} as at', placed('__op') if has_op else '1 as part'])})",
        " or ".join(flags) or "false",
        "__.*",
        is_truncated="coalesce(__op = 't', false)" if has_op else "false",
    ).read(frame, column_names)


def debezium_value(name: str, value: str, kind: str, timestamps: str | Mapping[str, str], decimals: str) -> str:
    """A value that Debezium has written as JSON, in its type, as SQL. Args: value: its text."""
    unit = timestamps if isinstance(timestamps, str) else timestamps.get(name, "us")
    factors = {"ms": " * 1000", "us": "", "ns": " div 1000"}
    for option, given, choices in (("timestamps", unit, tuple(factors)), ("decimals", decimals, ("base64", "text"))):
        if given not in choices:
            raise ArgumentError.one("the reader", option, " or ".join(choices), given, "choose one of them")
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
