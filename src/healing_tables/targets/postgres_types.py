"""Values between Spark and PostgreSQL, as text: each side writes a type exactly, and reads the text of the other side.

timestamptz  is transferred as microseconds or with its offset, never in the time zone of a session
numeric      without a precision is decimal(38,18) in Spark
uuid, jsonb  and other types that Spark does not have are strings in Spark, and keep their type in the table
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from healing_tables.sql.instants import TIMESTAMP, as_micros, as_moment

SPARK_TYPES = {
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "date": "date",
    "bytea": "binary",
    "timestamp with time zone": TIMESTAMP,
    "timestamp without time zone": "timestamp_ntz",
    "numeric": "decimal(38,18)",
}
POSTGRES_TYPES = {spark: postgres for postgres, spark in SPARK_TYPES.items()} | {
    "tinyint": "smallint",
    "string": "text",
    "timestamp": "timestamp with time zone",
}


def spark_type(postgres: str) -> str:
    """The Spark type of a PostgreSQL type, as `format_type` writes it."""
    if postgres.endswith("[]"):
        return f"array<{spark_type(postgres[:-2])}>"
    number = re.fullmatch(r"numeric\((\d+),(\d+)\)", postgres)
    if number and int(number[1]) <= 38:
        return f"decimal({number[1]},{number[2]})"
    plain = re.sub(r"\(\d+\)", "", postgres)  # timestamp(3) with time zone
    return SPARK_TYPES.get(plain, "string")


def postgres_type(spark: str) -> str:
    """The type of a new column for a type of Spark; nested ones are jsonb, except arrays of plain values."""
    number = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", spark)
    if number:
        return f"numeric({number[1]},{number[2]})"
    array = re.fullmatch(r"array<([^<>]+)>", spark)
    if array and postgres_type(array[1]) not in ("bytea", "jsonb"):
        return postgres_type(array[1]) + "[]"
    if re.match(r"(var)?char\(", spark):
        return "text"
    return POSTGRES_TYPES.get(spark, "jsonb")


@dataclass(frozen=True)
class Column:
    """A column of a table in PostgreSQL.

    Attributes:
        type: as `format_type` writes it.
        is_identity: its values come from a sequence.
        is_always: the server computes every value; a writer may not give one.
    """

    name: str
    type: str
    is_identity: bool = False
    is_always: bool = False

    @property
    def spark(self) -> str:
        return spark_type(self.type)

    def read(self, value: str) -> str:
        """The text of a value, as SQL of PostgreSQL."""
        if self.spark in (TIMESTAMP, "timestamp_ntz"):
            return f"(extract(epoch from {value}) * 1000000)::bigint::text"
        if self.spark == "binary":
            return f"encode({value}, 'hex')"
        return f"to_jsonb({value})::text" if self.type.endswith("[]") else f"{value}::text"

    def from_read(self, text: str) -> str:
        """The value of such a text, as SQL of Spark."""
        kind = self.spark
        if kind in (TIMESTAMP, "timestamp_ntz"):
            return as_moment(f"cast({text} as bigint)", kind)
        if kind == "binary":
            return f"unhex({text})"
        if kind.startswith("array"):
            return f"from_json({text}, '{kind}')"
        return text if kind == "string" else f"cast({text} as {kind})"

    def store(self, text: str) -> str:
        """The value of a text of `written`, as SQL of PostgreSQL."""
        if self.type == "bytea":
            return f"decode({text}, 'hex')"
        if self.type.endswith("[]"):
            elements = f"array(select jsonb_array_elements_text({text}::jsonb))::{self.type}"
            return f"case when {text} is not null then {elements} end"
        return f"{text}::{self.type}"


def written(value: str, kind: str) -> str:
    """The text of a value, as SQL of Spark. Args: kind: its type."""
    if kind in (TIMESTAMP, "timestamp"):
        return f"concat(cast({as_moment(as_micros(value, TIMESTAMP), 'timestamp_ntz')} as string), 'Z')"
    if kind == "binary":
        return f"hex({value})"
    if re.match("array|map|struct|variant", kind):
        return f"to_json({value}, map('timeZone', 'UTC'))"
    return f"cast({value} as string)"
