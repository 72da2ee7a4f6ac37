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

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from healing_tables.definition.stored_layout import NEW_TABLE, of_fixed_length
from healing_tables.errors import ArgumentError, Mistake, TargetError, counted
from healing_tables.sql.identifiers import find, in_quotes, literal, quoted
from healing_tables.sql.values import with_plain_text
from healing_tables.targets.buckets import MOST_BUCKETS, folders_of, is_in_buckets, location_of
from healing_tables.targets.conflicts import StalePlan, has_condition
from healing_tables.targets.hive_metastore import (
    FORMATS,
    NO_FILES,
    Described,
    describe_table,
    files_in,
    partitions_in_metastore,
    path_of,
    same_place,
)
from healing_tables.targets.naming import bad_name, full_name, is_table_name, name_beside, name_parts
from healing_tables.targets.table import Snapshot, check_side_table, micro_batches_after

log = logging.getLogger("healing_tables")

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
class HiveTarget:
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
    def sql_name(self) -> str:
        return self.name

    @property
    def partition_columns(self) -> list[str]:
        by = self.partition_by
        return [by] if isinstance(by, str) else list(by)

    def named(self, name: str) -> HiveTarget:
        """Another table, of this kind."""
        return HiveTarget(name, self.file_format, location=self.location)

    def beside(self, suffix: str) -> HiveTarget:
        """A table next to this one: the name with a suffix."""
        return HiveTarget(name_beside(self.name, suffix), self.file_format, location=self.location)

    def full_name(self, spark: SparkSession) -> str:
        return full_name(spark, self.name)

    # --- reading

    def described(self, spark: SparkSession) -> Described | None:
        """The description of the table in the metastore, if it exists. Raises: TargetError for another format."""
        return describe_table(spark, self.name)

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

    def read(self, spark: SparkSession) -> DataFrame | None:
        """The current table; None if it does not exist."""
        return None if self.described(spark) is None else self.rows(spark)

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The current table. A side table does not change as long as a merge can still commit."""
        spark.sql(f"refresh table {self.sql_name}")
        return spark.table(self.sql_name)

    def version(self, spark: SparkSession) -> int:
        """Always 0: the rows of side tables belong to commits of the dimension."""
        return 0

    def snapshot(self, spark: SparkSession) -> HiveSnapshot | None:
        """The rows that readers see, after unfinished commits are finished; None if there is no table.

        Raises: TargetError for a table of another format, or one that cannot be switched.
        """
        commits = self.commits
        last = commits.newest(spark)
        if last is not None and not last.is_finished:
            self.finish(spark, last)
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

    def load(
        self, spark: SparkSession, schema: StructType, paths: Sequence[str], partitions: Sequence[str], base: str = ""
    ) -> DataFrame:
        """The rows in these folders or files. Args: schema: of the table; base: the folder of all partitions."""
        reader = spark.read.format(self.file_format).schema(schema)
        if base and partitions:
            reader = reader.option("basePath", base)
        try:
            return reader.load(list(paths)).select(*map(quoted, schema.names))
        except AnalysisException as error:
            if not has_condition(error, *NO_FILES):
                raise
            return spark.createDataFrame([], schema)

    def late_files(self, spark: SparkSession, last: Commit) -> list[str]:
        """Files that another writer has added to the previous folder while the table was switched.

        Raises: TargetError if other files of that folder have been removed.
        """
        if last.base_files is None or last.base_location is None or same_place(last.base_location, last.location):
            return []
        now = files_in(spark, [last.base_location])
        late, gone = sorted(set(now) - set(last.base_files)), set(last.base_files) - set(now)
        if late and gone:
            mistake = Mistake(
                self.name,
                f"no other writer in {last.base_location}, the folder before the last merge",
                f"a folder with {len(gone)} files fewer and {len(late)} more than when that merge read it",
                f"write these rows again: they are in {path_of(late[0])}, and not in the table; then remove the new "
                "files",
            )
            raise TargetError(counted("the stored dimension", [mistake]), [mistake])
        return [path_of(file) for file in late]

    # --- tables beside a dimension

    def ensure(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own: Iterable[str],
        what: str,
        own_properties: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """The table, created with these columns if it does not exist; a partition per merge. See `Table.ensure`."""
        table = self.read(spark)
        if table is None:
            columns = {name: kind for name, kind in columns.items() if name != "merge_id"}
            by = {"merge_id": "string"}
            statement = self.create_statement(columns, self.new_folder(spark, "rows"), by, own_properties or {})
            spark.sql(statement.replace("create table", "create table if not exists", 1))
            return self.rows(spark)
        check_side_table(self.name, table, columns, own, what)
        return table

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        spark.sql(f"alter table {self.sql_name} add columns ({column_list(dict(columns))})")

    def computed_columns(self, spark: SparkSession) -> dict[str, bool]:
        """The format has none."""
        return {}

    def can_widen(self, spark: SparkSession, stored: str, given: str) -> bool:
        """Spark does not change the types of the columns in the metastore."""
        return False

    def change_types(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        listed = ", ".join(f"{name} {kind}" for name, kind in columns)
        wanted = f"the types of the dimension: {listed}"
        raise TargetError.one("the target", self.name, wanted, "narrower types", NEW_TABLE)

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        described = self.described(spark)
        return None if described is None else described.properties.get(name)

    def set_property(self, spark: SparkSession, name: str, value: str) -> None:
        spark.sql(f"alter table {self.sql_name} set tblproperties ({in_quotes(name)} = {in_quotes(value)})")

    # --- writing

    @property
    def commits(self) -> Commits:
        return Commits(self.beside("__commits"))

    def new_folder(self, spark: SparkSession, name: str) -> str:
        """A folder for files of this table: below ``location``, or beside the files that it has now, or in the schema.

        Args: name: of the folder.
        """
        bare = name_parts(self.name)[-1]
        own = f"/{bare}__versions/"
        root = self.location
        if root is None:
            described = self.described(spark)
            if described is not None:
                place = described.location
                root = place.split(own)[0] if own in place else place.rstrip("/").rpartition("/")[0]
        if root is None:
            schema = self.name.rstrip().rpartition(".")[0] if len(name_parts(self.name)) > 1 else "`default`"
            if schema == "`default`":
                schema = quoted(spark.catalog.currentDatabase())
            told = {row[0]: row[1] for row in spark.sql(f"describe schema {schema}").collect()}
            root = told["Location"]
        return f"{root.rstrip('/')}{own}{name}"

    def create_statement(
        self, columns: Mapping[str, str], location: str, partitions: Mapping[str, str], properties: Mapping[str, str]
    ) -> str:
        """Args: partitions: columns that are not among the others, with their types."""
        parts = [f"create table {self.sql_name} ({column_list({**columns, **partitions})}) using {self.file_format}"]
        by = [*partitions, *self.partition_columns]
        if by:
            parts.append(f"partitioned by ({', '.join(map(quoted, by))})")
        parts.append(f"location {in_quotes(location)}")
        if self.comment is not None:
            parts.append(f"comment {in_quotes(self.comment)}")
        given = {str(name): str(value) for name, value in self.properties.items()} | dict(properties)
        if given:
            listed = ", ".join(f"{in_quotes(name)} = {in_quotes(value)}" for name, value in given.items())
            parts.append(f"tblproperties ({listed})")
        return " ".join(parts)

    def create(self, spark: SparkSession, statement: str) -> None:
        """Create a table whose partitions Spark finds by listing its folder: one switch shows all of them."""
        with partitions_in_metastore(spark, False):
            spark.sql(statement.replace("create table", "create table if not exists", 1))

    def session(self, spark: SparkSession) -> AbstractContextManager[None]:
        """Settings for a merge: the commits and the tables beside a dimension have partitions in the metastore."""
        return partitions_in_metastore(spark, True)

    def write(self, rows: DataFrame, folder: str, partitions: Sequence[str] = ()) -> None:
        """Write rows to a new folder."""
        writer = rows.write.format(self.file_format).mode("overwrite")
        if partitions:
            writer = writer.partitionBy(*partitions)
        writer.save(folder)

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
            self.create(spark, commit.create_table)
            described = self.described(spark)
        if described is not None:
            known = {name.lower() for name in described.columns}
            wanted = [json.loads(line) for line in (commit.add_columns or "").splitlines()]
            missing = [(name, kind) for name, kind in wanted if name.lower() not in known]
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

    def take(self, spark: SparkSession, merge_id: str, folder: str) -> None:
        """Add the rows in a folder to this table beside a dimension, once."""
        described = self.described(spark)
        if described is not None and described.partitions == ("merge_id",):
            partition = f"partition (merge_id = {literal(merge_id)}) location {in_quotes(folder)}"
            spark.sql(f"alter table {self.sql_name} add if not exists {partition}")
            return
        # another program has created it: rows that it already has are left out
        table = self.rows(spark)
        new = self.load(spark, table.schema, [folder], ())
        same = " and ".join(f"s.{quoted(name)} <=> t.{quoted(name)}" for name in table.columns)
        new = new.alias("s").join(table.alias("t"), f.expr(same), "left_anti").localCheckpoint()
        new.coalesce(1).write.insertInto(self.sql_name)

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


@dataclass(frozen=True)
class Commits:
    """``<table>__commits``: a partition for each commit, and another one once it is visible to readers."""

    table: HiveTarget

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
        known = self.steps(spark) if steps is None else steps
        names = [name for name in COMMIT_COLUMNS if name != "committed_at"]
        is_old = f"committed_at < now() - make_interval(0, 0, 0, 0, 0, 0, {KEPT_SECONDS}) as is_old"
        listed = ", ".join(str(version) for version in versions)
        rows = self.table.rows(spark).where(f"step = '{COMMITTED}' and version in ({listed})")
        found = []
        for row in rows.selectExpr("version", is_old, *names).orderBy("version").collect():
            values = {name: row[name] for name in names}
            if values["base_files"] is not None:
                values["base_files"] = tuple(values["base_files"])
            found.append(Commit(row.version, FINISHED in known[row.version], row.is_old, **values))
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
            there = self.read(spark, [commit.version])
            if not there:
                raise
            if there[0].merge_id != commit.merge_id:
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
            by = {"version": "bigint", "step": "string"}
            folder = self.table.new_folder(spark, "rows")
            statement = self.table.create_statement(COMMIT_COLUMNS, folder, by, {})
            spark.sql(statement.replace("create table", "create table if not exists", 1))

    def properties(self, spark: SparkSession) -> Mapping[str, str]:
        """What is recorded about the dimension."""
        described = self.table.described(spark)
        return {} if described is None else described.properties


def column_list(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())


def short(merge_id: str) -> str:
    """The folder of a merge: short, since the location of a table in buckets names many."""
    return merge_id.replace("-", "")[:12]
