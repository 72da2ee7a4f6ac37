"""The interface of a table for a merge; each format has a file next to this one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.stored_layout import fits, is_wider
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.identifiers import find
from healing_tables.sql.types import types_of

# A dimension names its change log, and a change log its dimension
CHANGE_LOG = "healing_tables.change_log"
DIMENSION = "healing_tables.dimension"


@dataclass(frozen=True)
class Snapshot:
    """A table at one version: on Spark Connect, too, ``rows`` do not change when the table does.

    Attributes:
        table_id: of the table; it changes if the table is dropped and created again.
        computed: see `Table.computed_columns`.
    """

    table_id: str
    version: int
    rows: DataFrame
    properties: Mapping[str, str]
    partitions: tuple[str, ...]
    computed: Mapping[str, bool] = field(default_factory=dict, kw_only=True)

    @property
    def columns(self) -> dict[str, str]:
        """Name to type."""
        return types_of(self.rows.schema)


class Table(Protocol):
    """A table by name: a dimension, or a table beside one."""

    @property
    def name(self) -> str: ...

    @property
    def sql_name(self) -> str: ...

    @property
    def partition_columns(self) -> list[str]: ...

    def full_name(self, spark: SparkSession) -> str:
        """The name with its catalog and schema, in lower case without quotes; a path without its ``file:``."""

    def read(self, spark: SparkSession) -> DataFrame | None:
        """The current table; None if it does not exist."""

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The current table, or at a version; it must exist."""

    def version(self, spark: SparkSession) -> int:
        """The newest version; the table must exist."""

    def snapshot(self, spark: SparkSession) -> Snapshot | None:
        """The newest version of the table; None if there is no table."""

    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        """Whether the table still has this id."""

    def ensure(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own: Iterable[str],
        what: str,
        own_properties: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """The table, created with these columns if it does not exist.

        Args: own: the columns that a table of a merge has; what: its kind, for the error ("change log").
        Raises: TargetError
        """

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Args: columns: names and types."""

    def computed_columns(self, spark: SparkSession) -> dict[str, bool]:
        """Identity and generated columns, to whether a writer may give their values."""

    def can_widen(self, spark: SparkSession, stored: str, given: str) -> bool:
        """Whether the type of a column can be changed to a wider one; see `stored_layout.is_wider`."""

    def change_types(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Args: columns: names and their new types. Raises: StalePlan if another writer changes them."""

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        """A property of the table; None if it has none of that name."""

    def set_property(self, spark: SparkSession, name: str, value: str) -> None: ...


def micro_batch_of(merge_id: str) -> tuple[str, int] | None:
    """The mark of the stream and the number of the micro-batch in the id of a merge, see merge/micro_batch.py."""
    match = re.search(r"(@.+:)(\d+)$", merge_id)
    return None if match is None else (match[1], int(match[2]))


def micro_batches_after(before: Mapping[str, int], merge_id: str) -> dict[str, int]:
    """Stream to the number of its newest micro-batch, after a merge. Args: before: the same before it."""
    mine = micro_batch_of(merge_id)
    return {**before, **({mine[0]: mine[1]} if mine else {})}


def may_hold(wanted: str, present: str) -> bool:
    """Whether a column has a type, or can be widened to it."""
    return fits(wanted, present) or is_wider(wanted, present)


def missing_columns(wanted: Mapping[str, str], present: Mapping[str, str]) -> list[tuple[str, str]]:
    """The columns that a table lacks, with their types."""
    return [(name, kind) for name, kind in wanted.items() if find(name, present) is None]


def check_side_table(name: str, table: DataFrame, columns: Mapping[str, str], own: Iterable[str], what: str) -> None:
    """Raises: TargetError if a table beside a dimension was not created by a merge.

    Args: own: the columns that it must have; what: its expected kind, for the error ("change log").
    """
    present = types_of(table.schema)
    missing = [
        f"{column} {columns[column]}"
        for column in own
        if not may_hold(columns[column], present.get(find(column, present) or "", ""))
    ]
    if missing:
        mistake = Mistake(
            name,
            f"the {what} of a dimension, which a merge has made, or no table yet",
            f"a table without {', '.join(missing)}",
            "choose another name",
        )
        raise TargetError(counted(f"the {what}", [mistake]), [mistake])
