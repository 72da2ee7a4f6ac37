"""A table of a dimension in files: the dimension itself, or one beside it. See files.py."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from healing_tables.errors import TargetError
from healing_tables.sql.identifiers import quoted
from healing_tables.targets.file_formats import read_files
from healing_tables.targets.files_commits import COMMITS, LAYOUT, Commit, Commits, StoredTable
from healing_tables.targets.object_store import open_store
from healing_tables.targets.paths import absolute, relative
from healing_tables.targets.table import DIMENSION, SideTable, Table

PART_OF = "_part_of.json"


class FilesTable(Table):
    """A table of a dimension in files: the dimension itself, or one beside it."""

    path: str
    file_format: str

    @property
    @abstractmethod
    def dimension(self) -> FilesTable:
        """The dimension, in whose folder the rows and the commits are."""

    @property
    def name(self) -> str:
        return self.path

    @property
    def sql_name(self) -> str:
        return self.path

    @property
    def part(self) -> str:
        """The name of this table in a commit."""
        return relative(self.path, self.dimension.path)

    def full_name(self, spark: SparkSession) -> str:
        return self.path

    def commits(self, spark: SparkSession) -> Commits:
        return Commits(open_store(spark, self.dimension.path))

    def load(self, spark: SparkSession, table: StoredTable) -> DataFrame:
        """The rows of a table of a commit."""
        schema = StructType.fromJson(dict(table.schema))
        folders = [absolute(folder, self.dimension.path) for folder in table.folders]
        return read_files(spark, folders, table.file_format, schema)

    def stored(self, spark: SparkSession, commit: Commit | None) -> StoredTable | None:
        """The entry of a commit for this table, or existing files of another program; None if there is neither."""
        found = None if commit is None else commit.tables.get(self.part)
        return found or self.plain_files(spark)

    def read(self, spark: SparkSession) -> DataFrame | None:
        """The current table; None if it does not exist. The rows do not change when the table does."""
        stored = self.stored(spark, self.commits(spark).newest())
        return None if stored is None else self.load(spark, stored)

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The current table. Raises: TargetError if there is none."""
        found = self.read(spark)
        if found is None:
            raise self.missing()
        return found

    def version(self, spark: SparkSession) -> int:
        commit = self.commits(spark).newest()
        return 0 if commit is None else commit.version

    def can_widen(self, spark: SparkSession, stored: str, given: str) -> bool:
        """Every merge writes all rows, in the types of its schema."""
        return True

    def missing(self) -> TargetError:
        return TargetError.one("the target", self.path, "files of a dimension", "none", "merge into it first")

    def plain_files(self, spark: SparkSession) -> StoredTable | None:
        """Existing parquet files of another program. Raises: TargetError for files in another format."""
        store = open_store(spark, self.path)
        if "_delta_log" in store.folders(""):
            remedy = "merge into DeltaTarget(path)"
            raise TargetError.one("the target", self.path, "plain files, or none yet", "a Delta table", remedy)
        own = [name for name in [*store.names(""), *store.folders("")] if name[0] not in "_."]
        if not own:
            return None
        if any(name.endswith((".csv", ".json", ".orc", ".txt")) for name in own) or self.file_format != "parquet":
            remedy = "name a new folder, and merge the rows of these files into it with the types that they should have"
            got = f"files of another program, such as {own[0]}"
            raise TargetError.one("the target", self.path, "files in parquet, or none yet", got, remedy)
        schema = spark.read.parquet(self.path).schema
        return StoredTable((self.part,), "parquet", schema.jsonValue())


@dataclass(frozen=True)
class FilesSideTable(FilesTable, SideTable):
    """A table beside a dimension. Its rows are in the folder of the dimension, and its commits name them."""

    of: FilesTable
    path: str
    file_format: str = "parquet"

    @property
    def dimension(self) -> FilesTable:
        return self.of

    def create(
        self, spark: SparkSession, columns: Mapping[str, str], own_properties: Mapping[str, str] | None = None
    ) -> None:
        open_store(spark, self.path).create(PART_OF, self.reference(spark, columns))

    def ensure(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own: Iterable[str],
        what: str,
        own_properties: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """See `SideTable.ensure`. Raises: TargetError also if the table belongs to another dimension."""
        store = open_store(spark, self.path)
        if store.names(COMMITS):
            raise self.taken(what, "a dimension of its own")
        if store.get(PART_OF) is None:  # files of another program have none
            self.create(spark, columns)
        owner = owner_of(spark, self.path)
        if owner != self.of.path:
            raise self.taken(what, f"a table of {owner}")
        return super().ensure(spark, columns, own, what, own_properties)

    def reference(self, spark: SparkSession, columns: Mapping[str, str]) -> dict[str, object]:
        """The content of `_part_of.json`: the dimension, and the columns until a commit has rows."""
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
        commits, store = self.commits(spark), open_store(spark, self.path)
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

    def change_types(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        """Nothing to do: the next rows have them, and then all rows are written again."""

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        return self.of.full_name(spark) if name == DIMENSION else None

    def set_property(self, spark: SparkSession, name: str, value: str) -> None:
        """`_part_of.json` names the dimension."""


def owner_of(spark: SparkSession, path: str) -> str | None:
    """The dimension that the table at this path is beside; None if it is beside none."""
    found = open_store(spark, path).get(PART_OF)
    return None if found is None else absolute(str(found["dimension"]), path)
