"""What the readers share: their columns, and the checks of what they are given."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from healing_tables.definition.options import unknown_options
from healing_tables.errors import ArgumentError, Mistake, counted
from healing_tables.sql.identifiers import find, quoted
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
        if mistakes := unknown_options("column_names.", column_names, list(own)):
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


def check_schema(payload: str | None, schema: str | None) -> None:
    """Raises: ArgumentError for one without the other."""
    if (payload is None) != (schema is None):
        remedy = "write schema='id int, city string'"
        raise ArgumentError.one("the reader", "schema", "payload and schema, or neither of them", "one of them", remedy)


def row_types(schema: str) -> dict[str, str]:
    parsed = StructType.fromDDL(schema)
    assert isinstance(parsed, StructType)
    return types_of(parsed)
