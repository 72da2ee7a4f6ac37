"""What a merge needs of a table, as a dimension and beside one; each format has a file next to this one."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from healing_tables.definition.stored_layout import fits, is_wider
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.identifiers import find
from healing_tables.sql.types import types_of
from healing_tables.targets.conflicts import StalePlan

if TYPE_CHECKING:
    from typing_extensions import Self

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


class Table(ABC):
    """A table by name: a dimension, or a table beside one. The methods with a body are the defaults of a format."""

    if TYPE_CHECKING:  # a field or a property

        @property
        def name(self) -> str: ...

    @property
    @abstractmethod
    def sql_name(self) -> str:
        """The name in a statement."""

    @property
    def partition_columns(self) -> list[str]:
        return []

    @abstractmethod
    def full_name(self, spark: SparkSession) -> str:
        """The name with its catalog and schema, in lower case without quotes; a path without its ``file:``."""

    @abstractmethod
    def read(self, spark: SparkSession) -> DataFrame | None:
        """The current table; None if it does not exist. Raises: TargetError if it has another format."""

    @abstractmethod
    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The current table, or at a version if the format keeps them; it must exist."""

    @abstractmethod
    def version(self, spark: SparkSession) -> int:
        """The newest version; the table must exist."""

    def columns_of(self, spark: SparkSession) -> dict[str, str] | None:
        """Name to type; None if there is no table."""
        table = self.read(spark)
        return None if table is None else types_of(table.schema)

    def computed_columns(self, spark: SparkSession) -> dict[str, bool]:
        """Identity and generated columns, to whether a writer may give their values."""
        return {}

    def as_stored(self, schema: StructType) -> StructType:
        """The schema in the types that the table stores."""
        return schema

    @abstractmethod
    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Args: columns: names and types."""

    @abstractmethod
    def can_widen(self, spark: SparkSession, stored: str, given: str) -> bool:
        """Whether the type of a column can be changed to a wider one; see `stored_layout.is_wider`."""

    @abstractmethod
    def change_types(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Args: columns: names and their new types. Raises: StalePlan if another writer changes them; TargetError."""

    @abstractmethod
    def table_property(self, spark: SparkSession, name: str) -> str | None:
        """A property of the table; None if it has none of that name."""

    @abstractmethod
    def set_property(self, spark: SparkSession, name: str, value: str) -> None: ...

    def recover(self, spark: SparkSession) -> None:
        """Finish what the table needs before a version of it can be read, such as the commit of a killed merge."""


class SideTable(Table):
    """A table beside a dimension: history, audit, change log, key map, outbox, rows set aside."""

    @abstractmethod
    def create(
        self, spark: SparkSession, columns: Mapping[str, str], own_properties: Mapping[str, str] | None = None
    ) -> None:
        """Create the table if it does not exist. Args: own_properties: those that the library sets."""

    def ensure(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own: Iterable[str],
        what: str,
        own_properties: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The columns of the table, with their types; it is created with these columns if it does not exist.

        Args: own: the columns that a table of a merge has; what: its kind, for the error ("change log").
        Raises: TargetError
        """
        present = self.columns_of(spark)
        if present is None:
            self.create(spark, columns, own_properties)
            present = self.columns_of(spark)
            if present is None:
                raise StalePlan("the table was dropped")
        check_side_table(self.name, present, columns, own, what)
        return present

    def growing(self, *, is_append_only: bool = False) -> Self:
        """The table, with the properties of one to which every merge adds a few rows."""
        return self

    def ordered(self, by: Sequence[str], columns: Mapping[str, str]) -> Self:
        """The table with its files in an order, if it can have that one when it is created.

        Args: by: columns by which it is read; columns: of the table, with their types.
        """
        return self


Beside = TypeVar("Beside", bound=SideTable)


class DimensionTable(Table, Generic[Beside]):
    """The table of a dimension. ``Beside``: the class of the tables beside it."""

    @abstractmethod
    def named(self, name: str) -> Beside:
        """Another table, of this kind."""

    @abstractmethod
    def beside(self, suffix: str) -> Beside:
        """A table next to this one: the name with a suffix."""

    def session(self, spark: SparkSession) -> AbstractContextManager[None]:
        """The settings of a session that the statements of a merge need."""
        return nullcontext()

    @abstractmethod
    def snapshot(self, spark: SparkSession) -> Snapshot | None:
        """The newest version of the table; None if there is no table. Nothing is written.

        Raises: StalePlan if another writer has left something to `recover`; TargetError for another format.
        """

    @abstractmethod
    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        """Whether the table still has this id: it has not been dropped or recreated."""

    def noted(self, spark: SparkSession, name: str) -> str | None:
        """What merges have recorded about the dimension; None if there is nothing of that name."""
        return self.table_property(spark, name)


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


def check_side_table(
    name: str, present: Mapping[str, str], columns: Mapping[str, str], own: Iterable[str], what: str
) -> None:
    """Raises: TargetError if a table beside a dimension was not created by a merge.

    Args: present: its columns; own: those that it must have; what: its expected kind, for the error ("change log").
    """
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
