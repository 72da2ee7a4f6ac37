"""The commits of a dimension in Hive: a partition per commit, which the metastore accepts once. See hive.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from healing_tables.sql.identifiers import in_quotes
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.hive_table import HiveSideTable
from healing_tables.targets.table import micro_batches_after

# Columns of a commit, besides its number
COMMIT_COLUMNS = {
    "merge_id": "string",
    "location": "string",
    "base_location": "string",  # of the previous state
    "base_files": "array<string>",
    "key_buckets": "int",
    "create_table": "string",  # the statement, if the commit creates the table
    "add_columns": "string",
    "side_tables": "map<string, string>",  # table to the folder with its new rows
    "micro_batches": "map<string, bigint>",  # before the commit: stream to the number of its newest one
    "committed_at": "timestamp",
}
# A session caches the list of a table's files until `refresh table`: replaced files are kept at least this long
KEPT_SECONDS = 3600
COMMITTED, FINISHED = "committed", "finished"


@dataclass(frozen=True)
class Commit:
    """A row of ``<table>__commits``, with its number.

    Attributes:
        is_finished: readers see it, and its side tables too.
        is_old: the folders before it need not be kept.
    """

    version: int
    is_finished: bool
    is_old: bool
    merge_id: str
    location: str
    base_location: str | None
    base_files: tuple[str, ...] | None
    key_buckets: int | None
    create_table: str | None
    add_columns: str | None  # a line of JSON per column: its name and its type
    side_tables: Mapping[str, str]
    micro_batches: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def unchanged(
        cls, version: int, merge_id: str, location: str, key_buckets: int | None, micro_batches: Mapping[str, int]
    ) -> Commit:
        """A commit of existing files."""
        return cls(
            version, False, False, merge_id, location, location, None, key_buckets, None, None, {}, micro_batches
        )

    @property
    def micro_batches_after(self) -> dict[str, int]:
        """`micro_batches` after this commit, whose own number is part of the id of its merge."""
        return micro_batches_after(self.micro_batches, self.merge_id)


@dataclass(frozen=True)
class Commits:
    """``<table>__commits``: a partition for each commit, and another one once it is visible to readers."""

    table: HiveSideTable

    def unfinished(self, spark: SparkSession) -> Commit | None:
        """The newest commit, if readers do not see it yet."""
        steps = self.steps(spark)
        if not steps or FINISHED in steps[max(steps)]:
            return None
        return self.read(spark, [max(steps)], steps)[0]

    def newest(self, spark: SparkSession) -> Commit | None:
        steps = self.steps(spark)
        return self.read(spark, [max(steps)], steps)[0] if steps else None

    def steps(self, spark: SparkSession) -> dict[int, set[str]]:
        """Number of each commit to its completed steps."""
        if not spark.catalog.tableExists(self.table.sql_name):
            return {}
        partitions = spark.sql(f"show partitions {self.table.sql_name}").collect()
        found: dict[int, set[str]] = {}
        for (partition,) in partitions:
            version, step = re.fullmatch(r"version=(\d+)/step=(\w+)", partition).groups()  # type: ignore[union-attr]
            found.setdefault(int(version), set()).add(step)
        return found

    def read(
        self, spark: SparkSession, versions: Iterable[int], steps: Mapping[int, set[str]] | None = None
    ) -> list[Commit]:
        """The existing ones of these commits, in their order. Args: steps: of `steps`, if it is known."""
        done = self.steps(spark) if steps is None else steps
        names = [name for name in COMMIT_COLUMNS if name != "committed_at"]
        is_old = f"committed_at < now() - make_interval(0, 0, 0, 0, 0, 0, {KEPT_SECONDS}) as is_old"
        listed = ", ".join(str(version) for version in versions)
        rows = self.table.rows(spark).where(f"step = '{COMMITTED}' and version in ({listed})")
        found = []
        for row in rows.selectExpr("version", is_old, *names).orderBy("version").collect():
            values = {name: row[name] for name in names}
            if values["base_files"] is not None:
                values["base_files"] = tuple(values["base_files"])
            found.append(Commit(row.version, FINISHED in done[row.version], row.is_old, **values))
        return found

    def drop(self, spark: SparkSession, version: int) -> None:
        """Remove a commit that is no longer needed."""
        partitions = ", ".join(f"partition (version = {version}, step = '{step}')" for step in (COMMITTED, FINISHED))
        spark.sql(f"alter table {self.table.sql_name} drop if exists {partitions}")

    def add(self, spark: SparkSession, commit: Commit, folder: str) -> None:
        """Make the call that is the commit. Args: folder: a new one, for the row of the commit. Raises: StalePlan"""
        self.ensure(spark)
        values = [getattr(commit, name) for name in COMMIT_COLUMNS if name != "committed_at"]
        schema = ", ".join(f"{name} {kind}" for name, kind in COMMIT_COLUMNS.items() if name != "committed_at")
        row = spark.createDataFrame([tuple(list(v) if isinstance(v, tuple) else v for v in values)], schema)
        self.table.write(row.selectExpr("*", "now() as committed_at").coalesce(1), folder)
        partition = f"partition (version = {commit.version}, step = '{COMMITTED}')"
        try:
            spark.sql(f"alter table {self.table.sql_name} add {partition} location {in_quotes(folder)}")
        except Exception as error:
            # an error does not mean that the partition does not exist (a lost response): its row shows it
            found = self.read(spark, [commit.version])
            if not found:
                raise
            if found[0].merge_id != commit.merge_id:
                raise StalePlan from error
        steps = self.steps(spark)
        if max(steps) > commit.version and FINISHED not in steps[commit.version]:
            # this number was used before, so long ago that it is dropped: a merge finishes the commit before its own
            self.drop(spark, commit.version)
            raise StalePlan

    def set_finished(self, spark: SparkSession, version: int) -> None:
        partition = f"partition (version = {version}, step = '{FINISHED}')"
        spark.sql(f"alter table {self.table.sql_name} add if not exists {partition}")

    def ensure(self, spark: SparkSession) -> None:
        """Create the table if it does not exist."""
        if self.table.described(spark) is None:
            columns = COMMIT_COLUMNS | {"version": "bigint", "step": "string"}
            folder = self.table.new_folder(spark, "rows")
            spark.sql(self.table.create_statement(columns, folder, partition_by=["version", "step"]))

    def properties(self, spark: SparkSession) -> Mapping[str, str]:
        """What is recorded about the dimension."""
        described = self.table.described(spark)
        return {} if described is None else described.properties
