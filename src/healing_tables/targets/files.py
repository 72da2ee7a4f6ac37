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
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from healing_tables.errors import ArgumentError, Mistake, TargetError, counted
from healing_tables.sql.identifiers import quoted
from healing_tables.targets.file_formats import FORMATS, check_types, read_files, write_files
from healing_tables.targets.files_commits import COMMITS, LAYOUT, Commit, Commits, StoredTable
from healing_tables.targets.naming import is_path, name_beside
from healing_tables.targets.object_store import open_store
from healing_tables.targets.paths import absolute, checked_path, relative
from healing_tables.targets.table import DIMENSION, Snapshot, check_side_table

PART_OF = "_part_of.json"
ROWS = "."  # the dimension itself among the tables of a commit


@dataclass(frozen=True)
class FilesSnapshot(Snapshot):
    """Attributes: commit: that the rows are from. Of files that no merge has written, one with the number 0."""

    commit: Commit = field(default_factory=lambda: Commit(0, "", ""))


class FilesTable:
    """A table of a dimension in files: the dimension itself, or one beside it."""

    path: str
    file_format: str

    @property
    def dimension(self) -> FilesTarget:
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.path

    @property
    def sql_name(self) -> str:
        return self.path

    @property
    def partition_columns(self) -> list[str]:
        return []

    @property
    def part(self) -> str:
        """The name of this table in a commit."""
        return relative(self.path, self.dimension.path)

    def full_name(self, spark: SparkSession) -> str:
        return self.path

    def stored(self, spark: SparkSession, commit: Commit | None) -> StoredTable | None:
        """What a commit holds of this table, or files that someone else has put here; None if there is neither."""
        found = None if commit is None else commit.tables.get(self.part)
        return found or self.plain_files(spark)

    def read(self, spark: SparkSession) -> DataFrame | None:
        """The table as it is now; None if there is none. The rows stay what they are when the table changes."""
        stored = self.stored(spark, self.dimension.commits(spark).newest())
        return None if stored is None else self.dimension.load(spark, stored)

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The table as it is now. Raises: TargetError if there is none."""
        found = self.read(spark)
        if found is None:
            raise self.missing()
        return found

    def version(self, spark: SparkSession) -> int:
        commit = self.dimension.commits(spark).newest()
        return 0 if commit is None else commit.version

    def missing(self) -> TargetError:
        return TargetError.one("the target", self.path, "files of a dimension", "none", "merge into it first")

    def plain_files(self, spark: SparkSession) -> StoredTable | None:
        """Parquet files that someone else has put here. Raises: TargetError for files in another format."""
        store = open_store(spark, self.path)
        if "_delta_log" in store.folders(""):
            remedy = "merge into DeltaTarget(path)"
            raise TargetError.one("the target", self.path, "plain files, or none yet", "a Delta table", remedy)
        own = [name for name in [*store.names(""), *store.folders("")] if name[0] not in "_."]
        if not own:
            return None
        if any(name.endswith((".csv", ".json", ".orc", ".txt")) for name in own) or self.file_format != "parquet":
            remedy = "name a new folder, and merge the rows of these files into it with the types that they should have"
            got = f"files of others, such as {own[0]}"
            raise TargetError.one("the target", self.path, "files in parquet, or none yet", got, remedy)
        schema = spark.read.parquet(self.path).schema
        return StoredTable((self.part,), "parquet", schema.jsonValue())


@dataclass(frozen=True)
class FilesTarget(FilesTable):
    """A dimension as files in a folder of its own, on S3 (``s3a://bucket/folder``) or on a local disk (``/folder``).

    It needs obstore (``pip install 'dbt-healing-tables[files]'``); on S3, Spark needs hadoop-aws as well.
    Args:
        file_format: ``parquet`` or ``csv``, of a new dimension. The tables beside it are in parquet.
        keep_versions: how many states stay readable; each is a full copy.
    Raises: ArgumentError for another path or format.
    """

    path: str
    file_format: str = "parquet"
    keep_versions: int = 10

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", checked_path(self.path))
        mistakes = []
        if self.file_format not in FORMATS:
            mistakes.append(Mistake("file_format", " or ".join(FORMATS), repr(self.file_format), "correct it"))
        number = self.keep_versions
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            mistakes.append(Mistake("keep_versions", "a whole number from 1 on", repr(number), "correct it"))
        if mistakes:
            raise ArgumentError(counted("the target", mistakes), mistakes)

    @property
    def dimension(self) -> FilesTarget:
        return self

    def named(self, name: str) -> SideTable:
        """A table of this dimension: a path, or the name of a folder beside this one."""
        path = name if is_path(name) else f"{posixpath.dirname(self.path)}/{name.strip('/')}"
        return SideTable(self, checked_path(path))

    def beside(self, suffix: str) -> SideTable:
        """A table next to this one: the path with a suffix."""
        return SideTable(self, name_beside(self.path, suffix))

    def session(self, spark: SparkSession) -> AbstractContextManager[None]:
        """What the statements of a merge need of a session: nothing."""
        return nullcontext()

    # --- reading

    def read(self, spark: SparkSession, version: int | None = None) -> DataFrame | None:
        """The rows now, or those of an earlier commit; None if there are none. They stay what they are.

        The path of a table beside a dimension (its history, its audit) is read as well.
        Raises: ArgumentError if the version is not kept.
        """
        if version is not None:
            return self.load(spark, self.commits(spark).kept(version).tables[ROWS])
        owner = self.owner(spark)
        return super().read(spark) if owner is None else SideTable(FilesTarget(owner), self.path).read(spark)

    def owner(self, spark: SparkSession) -> str | None:
        """The dimension that the table at this path is beside; None if it is beside none."""
        found = open_store(spark, self.path).get(PART_OF)
        return None if found is None else absolute(str(found["dimension"]), self.path)

    def snapshot(self, spark: SparkSession) -> FilesSnapshot | None:
        """The newest commit; None if there is no dimension. Raises: TargetError for a table beside a dimension."""
        commit = self.commits(spark).newest()
        owner = self.owner(spark) if commit is None else None
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

    def commits(self, spark: SparkSession) -> Commits:
        return Commits(open_store(spark, self.path))

    def versions(self, spark: SparkSession) -> list[int]:
        """The numbers of the commits that are kept, oldest first."""
        return self.commits(spark).versions()

    def load(self, spark: SparkSession, table: StoredTable) -> DataFrame:
        """The rows of a table of a commit."""
        schema = StructType.fromJson(dict(table.schema))
        return read_files(spark, [absolute(folder, self.path) for folder in table.folders], table.file_format, schema)

    # --- writing

    def write(self, rows: DataFrame, folder: str, file_format: str) -> StoredTable:
        """Write rows to a new folder. Args: folder: relative to the path. Raises: TargetError for types of no CSV."""
        check_types(self.path, rows.schema, file_format)
        write_files(rows, absolute(folder, self.path), file_format)
        return StoredTable((folder,), file_format, rows.schema.jsonValue())

    # --- as a table

    def ensure(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own: Iterable[str],
        what: str,
        own_properties: Mapping[str, str] | None = None,
    ) -> DataFrame:
        return self.rows(spark)

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """The next state has them."""

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        commit = self.commits(spark).newest()
        return None if commit is None else commit.properties.get(name)

    def set_property(self, spark: SparkSession, name: str, value: str | None) -> None:
        """Args: value: None removes the property."""
        given = {} if value is None else {name: value}

        def change(commit: Commit) -> Commit:
            others = {known: text for known, text in commit.properties.items() if known != name}
            return replace(commit, properties=others | given)

        self.commits(spark).amend(change)


@dataclass(frozen=True)
class SideTable(FilesTable):
    """A table beside a dimension. Its rows are in the folder of the dimension, and its commits name them."""

    of: FilesTarget
    path: str
    file_format: str = "parquet"

    @property
    def dimension(self) -> FilesTarget:
        return self.of

    def snapshot(self, spark: SparkSession) -> Snapshot | None:
        raise NotImplementedError

    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        raise NotImplementedError

    def ensure(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own: Iterable[str],
        what: str,
        own_properties: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """The table; without rows if there is none. See `Table.ensure`."""
        store = open_store(spark, self.path)
        if store.names(COMMITS):
            raise self.taken(what, "a dimension of its own")
        if store.get(PART_OF) is None:
            store.create(PART_OF, self.reference(spark, columns))
        owner = FilesTarget(self.path).owner(spark)
        if owner != self.of.path:
            raise self.taken(what, f"a table of {owner}")
        table = self.rows(spark)
        check_side_table(self.name, table, columns, own, what)
        return table

    def reference(self, spark: SparkSession, columns: Mapping[str, str]) -> dict[str, object]:
        """What is in `_part_of.json`: the dimension, and the columns until a commit has rows."""
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        schema = spark.createDataFrame([], listed).schema
        return {"layout": LAYOUT, "dimension": relative(self.of.path, self.path), "schema": schema.jsonValue()}

    def stored(self, spark: SparkSession, commit: Commit | None) -> StoredTable | None:
        found = super().stored(spark, commit)
        if found is None:
            reference = open_store(spark, self.path).get(PART_OF)
            found = reference and StoredTable((), self.file_format, reference["schema"])
        return found

    def taken(self, what: str, got: str) -> TargetError:
        wanted = f"the {what} of {self.of.path}, or no table yet"
        return TargetError.one(f"the {what}", self.path, wanted, got, "choose another name")

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        commits, store = self.of.commits(spark), open_store(spark, self.path)
        if commits.newest() is None:
            reference = store.get(PART_OF)
            wider = StoredTable((), self.file_format, reference["schema"]).with_columns(dict(columns))
            store.replace(PART_OF, {**reference, "schema": wider.schema})
            return

        def change(commit: Commit) -> Commit:
            table = self.stored(spark, commit)
            if table is None:
                return commit
            return replace(commit, tables={**commit.tables, self.part: table.with_columns(dict(columns))})

        commits.amend(change)

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        return self.of.full_name(spark) if name == DIMENSION else None

    def set_property(self, spark: SparkSession, name: str, value: str) -> None:
        """`_part_of.json` names the dimension."""
