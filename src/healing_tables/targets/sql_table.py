"""A table with commits that Spark writes by SQL: what Delta and Iceberg share.

A merge commits the dimension under its id, so that a later one can find out whether it has.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql import SparkSession

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.definition.stored_layout import is_wider
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.identifiers import find, in_quotes, quoted
from healing_tables.sql.types import types_of
from healing_tables.targets.conflicts import StalePlan, conditions, is_conflict
from healing_tables.targets.merge_statement import merge_statement
from healing_tables.targets.naming import full_name, name_beside
from healing_tables.targets.table import DimensionTable, SideTable

if TYPE_CHECKING:
    from typing_extensions import Self

# The condition of an error of Spark or the format, and its text up to the stack trace
CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\](?:(?!\n\n|\n\tat |SQLSTATE).)*", re.DOTALL)
# The statement may still be running, or may have committed
UNKNOWN_OUTCOME = (
    "INVALID_HANDLE",
    "INVALID_CURSOR",
    "OPERATION_CANCELED",
    "RETRIES_EXCEEDED",
    "DELTA_POST_COMMIT_HOOK_FAILED",
)


@dataclass(frozen=True)
class Unfinished:
    """A merge with a mark in the table.

    Attributes:
        is_old: it is older than the longest possible merge.
    """

    merge_id: str
    is_committed: bool
    is_old: bool


@dataclass(frozen=True)
class RowCommit:
    """A commit that may have changed rows.

    Attributes: before: the version before it, or None; is_ours: it says that a merge or a build has made it.
    """

    version: int
    before: int | None
    is_ours: bool


@dataclass(frozen=True)
class SqlTable(DimensionTable["SqlTable"], SideTable):
    """A table by name; the other arguments are for a new table. A subclass defines how to read, create and commit."""

    name: str
    partition_by: Sequence[str] | str = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None

    # What an insert-only MERGE needs, so that the format detects a concurrent one that inserts the same rows
    when_matched: ClassVar[str] = ""
    # Whether a MERGE is faster with a condition that few rows of the table satisfy
    has_bucket_filter: ClassVar[bool] = True

    @property
    def partition_columns(self) -> list[str]:
        by = self.partition_by
        return [by] if isinstance(by, str) else list(by)

    @property
    def sql_name(self) -> str:
        return self.name

    def named(self, name: str) -> Self:
        """Another table, of this kind."""
        return type(self)(name)

    def beside(self, suffix: str) -> Self:
        """A table next to this one: the name with a suffix."""
        return type(self)(name_beside(self.name, suffix))

    def with_properties(self, properties: Mapping[str, str]) -> Self:
        return replace(self, properties={**properties, **self.properties})

    def full_name(self, spark: SparkSession) -> str:
        """The name with its catalog and schema, in lower case without quotes; a path without its ``file:``."""
        return full_name(spark, self.name)

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Turns errors of the table or its schema into TargetErrors; conflicts are not changed."""
        try:
            yield
        except Exception as error:
            text = self.text_of(error)
            # without a condition, the connection may be the cause; after the commit, the rows are stored
            is_unknown = any(name.startswith(UNKNOWN_OUTCOME) for name in conditions(error))
            if is_conflict(error) or text is None or is_unknown:
                raise
            self.check_session(error)
            raise self.refused(text) from error

    def refused(self, text: str) -> TargetError:
        mistake = Mistake(
            self.name,
            "a table that accepts the rows of the merge",
            " ".join(text.split()),
            "change the table, its schema or the batch",
        )
        return TargetError(counted("the target", [mistake]), [mistake])

    def text_of(self, error: Exception) -> str | None:
        """The text of an error about the table; None if the error may have another cause."""
        found = CONDITION.search(str(error))
        return None if found is None else found[0]

    def check_session(self, error: Exception) -> None:
        """Raises: TargetError if the error shows that the session does not support the format."""

    @abstractmethod
    def create(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own_properties: Mapping[str, str] | None = None,
        query: str = "",
    ) -> None:
        """Create the table if it does not exist.

        Args:
            own_properties: the properties that the library sets.
            query: a select of its first rows, with these columns.
        """

    def create_statement(
        self,
        file_format: str,
        columns: Mapping[str, str],
        properties: Mapping[str, object],
        query: str = "",
        cluster_by: Sequence[str] = (),
    ) -> str:
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        parts = [f"create table if not exists {self.sql_name}"]
        parts += [f"using {file_format}"] if query else [f"({listed}) using {file_format}"]
        if terms := self.partition_terms():
            parts.append(f"partitioned by ({', '.join(terms)})")
        if cluster_by:
            parts.append(f"cluster by ({', '.join(quoted(name) for name in cluster_by)})")
        if self.location is not None:
            parts.append(f"location {in_quotes(self.location)}")
        if self.comment is not None:
            parts.append(f"comment {in_quotes(self.comment)}")
        listed = ", ".join(f"{in_quotes(name)} = {in_quotes(str(value))}" for name, value in properties.items())
        if listed:
            parts.append(f"tblproperties ({listed})")
        if query:
            parts.append(f"as {query}")
        return " ".join(parts)

    def partition_terms(self) -> list[str]:
        return [quoted(name) for name in self.partition_columns]

    @abstractmethod
    def begin(
        self, spark: SparkSession, columns: Mapping[str, str], own_properties: Mapping[str, str] | None = None
    ) -> int:
        """Create the table of a dimension if it does not exist. Returns: the version before its first rows."""

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]], within: str = "") -> None:
        """Args: columns: names and types; within: a struct column and a dot."""
        listed = ", ".join(f"{within}{quoted(name)} {kind}" for name, kind in columns)
        with self.named_errors():
            spark.sql(f"alter table {self.sql_name} add columns ({listed})")

    def change_types(self, spark: SparkSession, columns: Sequence[tuple[str, str]], within: str = "") -> None:
        """Args: columns: names and their new types; within: a struct column and a dot.

        Raises: StalePlan if another writer changes them, too; TargetError.
        """
        for name, kind in columns:
            stored = self.stored_type(spark, name, within)
            if stored == kind:
                continue
            if stored is None or not is_wider(kind, stored):
                raise StalePlan("another writer has changed the types")
            try:
                with self.named_errors():
                    self.change_type(spark, f"{within}{quoted(name)}", kind)
            except TargetError as error:
                if self.stored_type(spark, name, within) != stored:
                    raise StalePlan from error
                raise

    def stored_type(self, spark: SparkSession, column: str, within: str = "") -> str | None:
        types = types_of(self.rows(spark).select(f"{within}*").schema)
        return types.get(find(column, types) or "")

    def change_type(self, spark: SparkSession, column: str, kind: str) -> None:
        spark.sql(f"alter table {self.sql_name} alter column {column} type {kind}")

    def set_property(self, spark: SparkSession, name: str, value: str) -> None:
        with self.named_errors():
            spark.sql(f"alter table {self.sql_name} set tblproperties ({in_quotes(name)} = {in_quotes(value)})")

    def add_version(self, spark: SparkSession) -> None:
        """Add a version after a change of properties, so that no merge that was planned before it commits.

        It does nothing if such a change is a version itself.
        """

    def run(self, spark: SparkSession, statement: str) -> None:
        """Run a statement that reads and writes the table as it is now, and can be run twice."""
        spark.sql(statement).collect()

    @abstractmethod
    def change(self, spark: SparkSession, statement: Callable[[str], str]) -> None:
        """Run a MERGE whose source reads the table, too, without other writers in between.

        Args: statement: from the name of the table.
        """

    def apply(
        self,
        spark: SparkSession,
        plan: str,
        layout: Layout,
        spec: DimensionSpec,
        *,
        merge_id: str,
        base_version: int,
        stored: Mapping[str, str],
        keys: str = "",
        open_rows: tuple[int, int] | None = None,
    ) -> int | None:
        """Apply a plan in one MERGE.

        Args:
            plan: name of a view with the rows of plan.plan.
            merge_id, base_version: see `commit`.
            stored, keys, open_rows: see `merge_statement`.
        Returns: the version of the commit; None if there was none.
        Raises: as `commit`; StalePlan if a row, or the columns of the table, are not as the plan expects them.
        """

        def statement(table: str) -> str:
            return merge_statement(
                table, plan, layout, spec, merge_id=merge_id, stored=stored, keys=keys, open_rows=open_rows
            )

        return self.commit(spark, statement, merge_id=merge_id, base_version=base_version)

    @abstractmethod
    def commit(
        self, spark: SparkSession, statement: Callable[[str], str], *, merge_id: str, base_version: int
    ) -> int | None:
        """Run a MERGE; the version of its commit, None if there was none.

        Args:
            statement: from the name of the table.
            merge_id: by which later merges find the commit, until `finish`.
            base_version: the commit is newer.
        Raises: StalePlan, what the format raises on a conflict, or TargetError: there is no commit. Another error: it
        is not known.
        """

    def unfinished(self, spark: SparkSession) -> Sequence[Unfinished]:
        """Merges with a mark of their own in the table; a format that keeps them with its commits needs none."""
        return []

    def finish(self, spark: SparkSession, merges: Iterable[Unfinished]) -> None:
        """Remove the marks of these merges, which are complete."""

    @abstractmethod
    def committed(
        self, spark: SparkSession, merges: Mapping[str, int], unfinished: Iterable[Unfinished]
    ) -> dict[str, int]:
        """Those of these merges that have committed, with their versions.

        Args: merges: id to a version before; unfinished: all of them.
        """

    @abstractmethod
    def moment(self, spark: SparkSession, version: int) -> str:
        """When this version became the current one, as SQL."""

    @abstractmethod
    def newest_commits(self, spark: SparkSession) -> list[tuple[int, str]]:
        """The newest commits, newest first: their versions, and a text that has the tag of a build."""

    @abstractmethod
    def row_commits(self, spark: SparkSession) -> list[RowCommit]:
        """The newest commits that may have changed rows, newest first."""

    @abstractmethod
    def version_before(self, version: int, base: int | None) -> int | None:
        """The version before a commit of a build; None if there is none. Args: base: of its tag."""

    @abstractmethod
    def merges_since(
        self, spark: SparkSession, merge_id: re.Pattern[str], version: Callable[[], int | None]
    ) -> list[str]:
        """Of a change log: the ids of the merges that have added to it since a version, or since its beginning.

        Args: merge_id: what the ids to look for are like; version: asked only if there are such merges.
        """

    @abstractmethod
    def was_written_by(self, spark: SparkSession, statement_id: str) -> bool:
        """Whether a newest MERGE into a table beside a dimension has this id."""

    def note_written_by(self, spark: SparkSession, statement_id: str) -> None:
        """Let `was_written_by` find a MERGE that has just been run, if its condition does not do that."""

    @abstractmethod
    def may_lie_between(self, base_version: int, version: int) -> bool:
        """Whether another writer may have committed since a plan was made.

        Args: base_version: that of the plan; version: that of the commit of its merge.
        """

    @abstractmethod
    def has_rows_of_others(self, spark: SparkSession, version: int, merge_ids: Sequence[str]) -> bool:
        """Of a change log: whether another writer than these merges has added to it since a version."""

    @abstractmethod
    def newest_number(self, spark: SparkSession, mark: str) -> int | None:
        """The number after this text in the newest merge whose id has it; None if there is none."""
