"""The reader of messages of Oracle GoldenGate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from healing_tables.readers.feed import ENVELOPE, check_columns, check_schema
from healing_tables.sql.identifiers import quoted


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
