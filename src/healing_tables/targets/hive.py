"""A dimension in a Hive table without transactions, in parquet or ORC (docs/decisions/0042-hive-tables.md).

A merge writes all rows to a new folder and publishes it by two calls of the metastore:

1. It adds the partition ``version = n`` to ``<table>__commits``. The metastore accepts a partition only once: of two
   merges that have read the same rows, one succeeds, and the other reads again. This call is the commit.
2. ``alter table ... set location`` makes the new folder visible to readers in one step. The previous folder is kept for
   those that still read it.

A merge that finds a commit whose second call is missing makes that call. Nothing is rolled back.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from healing_tables.definition.stored_layout import of_fixed_length
from healing_tables.errors import ArgumentError, Mistake, TargetError, counted
from healing_tables.sql.identifiers import find, in_quotes
from healing_tables.sql.values import with_plain_text
from healing_tables.targets.buckets import MOST_BUCKETS, folders_of, is_in_buckets, location_of
from healing_tables.targets.conflicts import StalePlan
from healing_tables.targets.hive_commits import Commit, Commits
from healing_tables.targets.hive_metastore import (
    FORMATS,
    Described,
    files_in,
    partitions_in_metastore,
    path_of,
    same_place,
)
from healing_tables.targets.hive_table import HiveSideTable, HiveTable
from healing_tables.targets.naming import bad_name, is_table_name, name_beside, name_parts
from healing_tables.targets.table import DimensionTable, Snapshot

log = logging.getLogger("healing_tables")


@dataclass(frozen=True)
class HiveSnapshot(Snapshot):
    """The rows of a table at one location.

    Attributes:
        location: where its files are; `table_id` is the same.
        files: its files as path, time and size; None if no other program can write (key buckets).
        key_buckets: how many there are; None without.
        has_late_rows: the rows are more than readers see: the next commit has to show them.
        micro_batches: stream to the number of the newest one that is in the table.
    """

    file_format: str = "orc"
    location: str = ""
    files: tuple[str, ...] | None = None
    key_buckets: int | None = None
    has_late_rows: bool = False
    micro_batches: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class HiveTarget(HiveTable, DimensionTable[HiveSideTable]):
    """A Hive table without transactions, by name (``schema.table``).

    The other arguments are used when the first merge creates the table.
    Args:
        file_format: ``orc`` or ``parquet``.
        key_buckets: the rows are stored in that many folders by a hash of their key, and a merge writes only the
            folders with keys of its batch.
        location: the folder for the data of the table. Default: in the folder of the schema.
    Raises: ArgumentError for another name or format.
    """

    name: str
    file_format: str = "orc"
    key_buckets: int | None = None
    partition_by: Sequence[str] | str = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        if not is_table_name(self.name):
            raise bad_name(self.name, "a table such as 'schema.table'")
        mistakes = []
        if self.file_format not in FORMATS:
            mistakes.append(Mistake("file_format", " or ".join(FORMATS), repr(self.file_format), "choose one of them"))
        buckets = self.key_buckets
        is_number = isinstance(buckets, int) and not isinstance(buckets, bool)
        if buckets is not None and not (is_number and 2 <= buckets <= MOST_BUCKETS):
            wanted = f"a whole number from 2 to {MOST_BUCKETS}, or None"
            mistakes.append(Mistake("key_buckets", wanted, repr(buckets), "give a number of buckets, or leave it out"))
        if buckets is not None and self.partition_columns:
            remedy = "leave one of them out"
            mistakes.append(Mistake("partition_by", "none beside key_buckets", str(self.partition_by), remedy))
        if mistakes:
            raise ArgumentError(counted("the target", mistakes), mistakes)

    @property
    def partition_columns(self) -> list[str]:
        by = self.partition_by
        return [by] if isinstance(by, str) else list(by)

    def named(self, name: str) -> HiveSideTable:
        """A table beside this one, in its format."""
        return HiveSideTable(name, self.file_format, self.location)

    def beside(self, suffix: str) -> HiveSideTable:
        """A table next to this one: the name with a suffix."""
        return self.named(name_beside(self.name, suffix))

    def noted(self, spark: SparkSession, name: str) -> str | None:
        return self.commits.properties(spark).get(name)

    # --- reading

    def check_switch(self, described: Described) -> None:
        """Raises: TargetError if the table cannot be switched to a new folder by one call."""
        remedy = (
            f"healing_tables.convert_table(spark, {self.name!r}), or dbt run-operation healing_tables.convert_table "
            f"--args '{{dimension: {self.name}}}': it copies the table to an external one of this name, and "
            "keeps the old one under another name"
        )
        got = None
        if not described.is_external:
            got = "a managed table, whose files belong to the metastore"
        elif described.has_listed_partitions:
            got = f"a table whose partitions (by {', '.join(described.partitions)}) each have a location"
        if got is not None:
            wanted = "an external table that one ALTER TABLE ... SET LOCATION can switch to a new folder"
            mistake = Mistake(self.name, wanted, got, remedy)
            raise TargetError(counted("the target", [mistake]), [mistake])

    def recover(self, spark: SparkSession) -> None:
        """Finish the newest commit, if a killed merge has not."""
        commit = self.commits.unfinished(spark)
        if commit is not None:
            self.finish(spark, commit)

    def snapshot(self, spark: SparkSession) -> HiveSnapshot | None:
        """The rows that readers see; None if there is no table.

        Raises: StalePlan if a commit is not finished; TargetError for another format, or a table that cannot be
        switched.
        """
        last = self.commits.newest(spark)
        if last is not None and not last.is_finished:
            raise StalePlan("another writer is committing")
        described = self.described(spark)
        if described is None:
            return None
        self.check_switch(described)
        location, stored = described.location, replace(self, file_format=described.file_format)
        buckets = last.key_buckets if last is not None and is_in_buckets(location) else None
        files = files_in(spark, [location]) if buckets is None else None
        rows = stored.load(spark, self.rows(spark).schema, folders_of(location), described.partitions)
        late: list[str] = []
        if last is not None and same_place(last.location, location):
            late = self.late_files(spark, last)
        elif last is not None:
            log.warning("%s: another program has set its location to %s; the merge uses it", self.name, location)
        if late and last is not None and last.base_location is not None:
            log.warning("%s: rows that another writer has added to %s are kept", self.name, last.base_location)
            more = stored.load(spark, rows.schema, late, described.partitions, last.base_location)
            rows = rows.unionByName(more)
        if not of_fixed_length(rows.schema):  # which are refused
            rows = with_plain_text(rows)
        return HiveSnapshot(
            table_id=location,
            version=0 if last is None else last.version,
            rows=rows,
            properties=self.commits.properties(spark),
            partitions=described.partitions,
            file_format=described.file_format,
            location=location,
            files=files,
            key_buckets=buckets,
            has_late_rows=bool(late),
            micro_batches={} if last is None else last.micro_batches_after,
        )

    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        described = self.described(spark)
        return described is not None and same_place(described.location, table_id)

    def late_files(self, spark: SparkSession, last: Commit) -> list[str]:
        """Files that another writer has added to the previous folder while the table was switched.

        Raises: TargetError if other files of that folder have been removed.
        """
        if last.base_files is None or last.base_location is None or same_place(last.base_location, last.location):
            return []
        now = files_in(spark, [last.base_location])
        late, removed = sorted(set(now) - set(last.base_files)), set(last.base_files) - set(now)
        if late and removed:
            mistake = Mistake(
                self.name,
                f"no other writer in {last.base_location}, the folder before the last merge",
                f"a folder with {len(removed)} files fewer and {len(late)} more than when that merge read it",
                f"write these rows again: they are in {path_of(late[0])}, and not in the table; then remove the new "
                "files",
            )
            raise TargetError(counted("the stored dimension", [mistake]), [mistake])
        return [path_of(file) for file in late]

    # --- writing

    @property
    def commits(self) -> Commits:
        return Commits(self.beside("__commits"))

    def new_table_statement(
        self, columns: Mapping[str, str], location: str, properties: Mapping[str, object] | None = None
    ) -> str:
        """Args: columns: name to type; properties: besides those of the target."""
        return self.create_statement(
            columns,
            location,
            partition_by=self.partition_columns,
            properties={**self.properties, **(properties or {})},
            comment=self.comment,
        )

    def create_listed(self, spark: SparkSession, statement: str) -> None:
        """Create a table whose partitions Spark finds by listing its folder: one switch shows all of them."""
        with partitions_in_metastore(spark, False):
            # commits of earlier versions lack the condition
            spark.sql(re.sub("^create table (?!if not exists)", "create table if not exists ", statement))

    def session(self, spark: SparkSession) -> AbstractContextManager[None]:
        """Settings for a merge: the commits and the tables beside a dimension have partitions in the metastore."""
        return partitions_in_metastore(spark, True)

    def write_buckets(self, rows: DataFrame, bucket: str, folder: str, others: Mapping[int, str]) -> str:
        """Write rows to a folder per bucket.

        Args: bucket: the number, as SQL; others: the folders of the other buckets.
        Returns: the location of all buckets.
        """
        name = "ht_b"
        while find(name, rows.columns):
            name += "_"
        self.write(rows.selectExpr("*", f"{bucket} as {name}").repartition(name), folder, [name])
        files = files_in(rows.sparkSession, [folder])
        written = {str(path_of(file)).rpartition("/")[0] for file in files}
        folders = dict(others)
        for place in sorted(written):
            part = place.rpartition("/")[2]
            folders[int(part.rpartition("=")[2])] = f"{folder}/{part}"
        if not folders:  # the table needs a file to read
            folders[0] = f"{folder}/{name}=0"
            self.write(rows.limit(0), folders[0])
        root = folder[: folder.index("__versions/") + len("__versions/")]
        return location_of(root, [folders[number] for number in sorted(folders)])

    def check_unchanged(self, spark: SparkSession, snapshot: HiveSnapshot) -> None:
        """Raises: StalePlan if another writer has moved the table or changed its files since the snapshot."""
        if not self.is_still(spark, snapshot.location):
            raise StalePlan("the table has another location")
        if snapshot.files is not None and files_in(spark, [snapshot.location]) != snapshot.files:
            raise StalePlan("another writer has changed files of the table")

    def finish(self, spark: SparkSession, commit: Commit) -> None:
        """Make a commit visible and deliver its rows to the side tables. Several processes may do so at once.

        Raises: StalePlan if another writer has changed the files that it was made from: these are made visible again.
        """
        described = self.described(spark)
        if described is None and commit.create_table is not None:
            self.create_listed(spark, commit.create_table)
            described = self.described(spark)
        if described is not None:
            present = {name.lower() for name in described.columns}
            wanted = [json.loads(line) for line in (commit.add_columns or "").splitlines()]
            missing = [(name, kind) for name, kind in wanted if name.lower() not in present]
            if missing:
                self.add_columns(spark, missing)
            if not same_place(described.location, commit.location):
                self.set_location(spark, commit.location)
        base = commit.base_location or commit.location
        is_switched = commit.base_files is not None and not same_place(base, commit.location)
        if is_switched and files_in(spark, [base]) != commit.base_files:
            self.go_back(spark, commit)
        for table, folder in commit.side_tables.items():
            self.named(table).take(spark, commit.merge_id, folder)
        self.commits.set_finished(spark, commit.version)
        steps = self.commits.steps(spark)
        if max(steps) > commit.version:
            # another merge has committed after this one in the meantime: the table must not go back to this commit
            self.set_location(spark, self.commits.read(spark, [max(steps)], steps)[0].location)

    def go_back(self, spark: SparkSession, commit: Commit) -> None:
        """Add a commit that restores the rows before a commit, with the rows that another writer has added.

        Raises: StalePlan
        """
        location, merge_id = commit.base_location or commit.location, str(uuid.uuid4())
        back = Commit.unchanged(commit.version + 1, merge_id, location, commit.key_buckets, commit.micro_batches)
        self.commits.add(spark, back, self.new_folder(spark, f"{short(merge_id)}/commit"))
        self.finish(spark, back)
        raise StalePlan("another writer has changed files of the table while it was switched")

    def set_location(self, spark: SparkSession, location: str) -> None:
        """Switch the table to a new folder, which readers see from now on."""
        spark.sql(f"alter table {self.sql_name} set location {in_quotes(location)}")
        spark.sql(f"refresh table {self.sql_name}")

    def expire(self, spark: SparkSession, version: int) -> None:
        """Empty folders of states that were replaced long ago, a few at a time, and drop their commits.

        The last two states are always kept. Args: version: of the newest.
        """
        steps = self.commits.steps(spark)
        old = [number for number in sorted(steps) if number <= version - 2][:5]
        if not old:
            return
        read = self.commits.read(spark, {*old, old[-1] + 1, version - 1, version}, steps)
        states = {commit.version: commit for commit in read}
        last = [states[number] for number in (version - 1, version) if number in states]
        kept = {folder for state in last for folder in folders_of(state.location)}
        for state in [states[number] for number in old if number in states]:
            after = states.get(state.version + 1, state)
            if not after.is_old:
                return
            self.empty(spark, set(folders_of(state.location)) - set(folders_of(after.location)) - kept, after)
            self.commits.drop(spark, state.version)

    def empty(self, spark: SparkSession, folders: Iterable[str], after: Commit) -> None:
        """Empty folders of a merge; SQL cannot delete them. Args: after: the commit that has replaced them."""
        own = f"/{name_parts(self.name)[-1]}__versions/"
        for folder in folders:
            if own not in folder:
                continue
            if after.base_files is not None and files_in(spark, [folder]) != after.base_files:
                log.warning("%s: %s keeps the rows that another writer has added", self.name, folder)
                continue
            empty = spark.createDataFrame([], "emptied boolean")
            empty.write.format(self.file_format).mode("overwrite").save(folder)


def short(merge_id: str) -> str:
    """The folder of a merge: short, since the location of a table in buckets names many."""
    return merge_id.replace("-", "")[:12]
