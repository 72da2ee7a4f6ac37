"""A dimension as plain files on S3 or a local disk, without a metastore (docs/decisions/0044-files.md).

    dim_buyer/_commits/00000000000000000007.json    which folders are the dimension, and which the tables beside it
    dim_buyer/_data/rows/5f0c.../part-00000.parquet  what a merge has written
    dim_buyer_history/_part_of.json                 a table beside it: names the dimension

A merge writes everything to new folders and then creates the commit with the next number. A file is created once, so of
two merges that have read the same state one wins. Readers take the newest commit.
"""

from __future__ import annotations

import posixpath
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from healing_tables.errors import ArgumentError, Mistake, TargetError, counted
from healing_tables.targets.file_formats import FORMATS, check_types, write_files
from healing_tables.targets.files_commits import Commit, StoredTable
from healing_tables.targets.files_table import FilesSideTable, FilesTable, owner_of
from healing_tables.targets.naming import is_path, name_beside
from healing_tables.targets.paths import absolute, checked_path
from healing_tables.targets.table import DimensionTable, Snapshot

ROWS = "."  # the dimension itself among the tables of a commit


@dataclass(frozen=True)
class FilesSnapshot(Snapshot):
    """Attributes: commit: that the rows are from. Of files that no merge has written, one with the number 0."""

    commit: Commit = field(default_factory=lambda: Commit(0, "", ""))


@dataclass(frozen=True)
class FilesTarget(FilesTable, DimensionTable[FilesSideTable]):
    """A dimension as plain files in a folder, on S3 (``s3a://bucket/folder``) or on a local disk (``/folder``).

    It needs obstore, the extra ``files`` of this package; on S3, Spark needs hadoop-aws as well.
    Args:
        file_format: ``parquet`` or ``csv``, of a new dimension. The tables beside it are in parquet.
        keep_versions: how many versions of the dimension can be read; each is a full copy.
    Raises: ArgumentError for another path or format.
    """

    path: str
    file_format: str = "parquet"
    keep_versions: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", checked_path(self.path))
        mistakes = []
        if self.file_format not in FORMATS:
            mistakes.append(Mistake("file_format", " or ".join(FORMATS), repr(self.file_format), "choose one of them"))
        number = self.keep_versions
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            mistakes.append(
                Mistake(
                    "keep_versions", "a whole number from 1 on", repr(number), "give the number of versions to keep"
                )
            )
        if mistakes:
            raise ArgumentError(counted("the target", mistakes), mistakes)

    @property
    def dimension(self) -> FilesTarget:
        return self

    def named(self, name: str) -> FilesSideTable:
        """A table of this dimension: a path, or the name of a folder beside this one."""
        path = name if is_path(name) else f"{posixpath.dirname(self.path)}/{name.strip('/')}"
        return FilesSideTable(self, checked_path(path))

    def beside(self, suffix: str) -> FilesSideTable:
        """A table next to this one: the path with a suffix."""
        return FilesSideTable(self, name_beside(self.path, suffix))

    # --- reading

    def read(self, spark: SparkSession, version: int | None = None) -> DataFrame | None:
        """The rows now, or those of an earlier commit; None if there are none. They stay what they are.

        The path of a table beside a dimension (its history, its audit) is read as well.
        Raises: ArgumentError if the version is not kept.
        """
        if version is not None:
            return self.load(spark, self.commits(spark).kept(version).tables[ROWS])
        owner = owner_of(spark, self.path)
        return super().read(spark) if owner is None else FilesSideTable(FilesTarget(owner), self.path).read(spark)

    def snapshot(self, spark: SparkSession) -> FilesSnapshot | None:
        """The newest commit; None if there is no dimension. Raises: TargetError for a table beside a dimension."""
        commit = self.commits(spark).newest()
        owner = owner_of(spark, self.path) if commit is None else None
        if owner is not None:
            got = f"a table beside {owner}"
            raise TargetError.one("the target", self.path, "a dimension, or no table yet", got, "choose another name")
        stored = self.stored(spark, commit)
        if stored is None:
            return None
        commit = commit or Commit(0, str(uuid.uuid4()), "", {ROWS: stored})
        return FilesSnapshot(
            table_id=commit.table_id if commit.version else self.path,
            version=commit.version,
            rows=self.load(spark, stored),
            properties=commit.properties,
            partitions=(),
            commit=commit,
        )

    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        commit = self.commits(spark).newest()
        return commit.table_id == table_id if commit else self.plain_files(spark) is not None and table_id == self.path

    def versions(self, spark: SparkSession) -> list[int]:
        """The numbers of the commits that are kept, oldest first."""
        return self.commits(spark).versions()

    # --- writing

    def write(self, rows: DataFrame, folder: str, file_format: str) -> StoredTable:
        """Write rows to a new folder. Args: folder: relative to the path. Raises: TargetError for types not in CSV."""
        check_types(self.path, rows.schema, file_format)
        write_files(rows, absolute(folder, self.path), file_format)
        return StoredTable((folder,), file_format, rows.schema.jsonValue())

    # --- as a table

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Nothing to do: the next state has them."""

    def change_types(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Nothing to do: the next state has them."""

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        commit = self.commits(spark).newest()
        return None if commit is None else commit.properties.get(name)

    def set_property(self, spark: SparkSession, name: str, value: str | None) -> None:
        """Args: value: None removes the property."""
        given = {} if value is None else {name: value}

        def change(commit: Commit) -> Commit:
            others = {other: text for other, text in commit.properties.items() if other != name}
            return replace(commit, properties=others | given)

        self.commits(spark).amend(change)
