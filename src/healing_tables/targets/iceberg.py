"""A dimension in an Iceberg table (docs/decisions/0046-iceberg-merges.md).

A merge writes to a branch, which starts at the snapshot that it has read. One `fast_forward` publishes the branch; it
fails if another writer has committed in between. The branch is kept until the rows for the other tables are delivered:
it shows whether the merge has committed.
"""

from __future__ import annotations

import random
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.definition.stored_layout import scale
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.identifiers import find, in_quotes, literal, quoted
from healing_tables.targets.conflicts import StalePlan, conditions, has_condition, java_causes, java_classes, raised
from healing_tables.targets.merge_statement import stale_text
from healing_tables.targets.naming import bad_name, is_path, is_table_name, name_parts
from healing_tables.targets.sql_table import RowCommit, SqlTable, Unfinished
from healing_tables.targets.table import CHANGE_LOG, Snapshot, micro_batch_of

MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
# Spark without Iceberg, or without its extension, raises one of these
NO_ICEBERG = ("DATA_SOURCE_NOT_FOUND", "PARSE_SYNTAX_ERROR", "UNSUPPORTED_FEATURE.TABLE_OPERATION")
# A property that Iceberg shows: the current snapshot
NEWEST, NO_SNAPSHOT = "current-snapshot-id", "none"
PREFIX = "healing_merge_"
# The time of its start in seconds, the snapshot that it starts from, the id of the merge
BRANCH = re.compile(rf"{PREFIX}(\d+)_(\d+)_(.+)")
ABANDONED = 24 * 3600  # seconds
# Each micro-batch of a stream sets its own property. Only the highest number counts, so a late lower one has no effect.
MICRO_BATCH = "healing_tables.micro_batch"
# The tags of builds, and the id of the newest statement: see macros/formats/_iceberg_tags.sql and _written_by.sql
TAG, WRITTEN_BY = "healing_tables.build.", "healing_tables.written_by"
# Concurrent writers also change other metadata: branches, properties
RETRIES, LONGEST_WAIT = 20, 0.5  # seconds
COMMIT_FAILED = "org.apache.iceberg.exceptions.CommitFailedException"
VALIDATION = "org.apache.iceberg.exceptions.ValidationException"


@dataclass(frozen=True)
class Branch(Unfinished):
    """The branch of a merge. Attributes: head: its newest snapshot."""

    name: str = ""
    head: int = 0


@dataclass(frozen=True)
class IcebergTarget(SqlTable):
    """An Iceberg table by name (``catalog.schema.table`` or ``schema.table``).

    The other arguments are used when the first merge creates the table; ``partition_by`` also takes transforms such as
    ``bucket(16, id)``; by ``cluster_by``, the rows of each file are sorted. Raises: ArgumentError for a wrong name.
    """

    cluster_by: Sequence[str] = ()

    # Spark turns an insert-only MERGE into an append, for which Iceberg does not check conflicts
    when_matched: ClassVar[str] = "when matched and false then delete"
    has_bucket_filter: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_table_name(self.name) or is_path(self.name):
            raise bad_name(self.name, "a table such as 'schema.table' or 'catalog.schema.table'")

    def growing(self, *, is_append_only: bool = False) -> IcebergTarget:
        # each merge adds a version of the metadata
        return self.with_properties({"write.metadata.delete-after-commit.enabled": "true"})

    @property
    def partition_columns(self) -> list[str]:
        """None that a merge must check: Iceberg stores every value exactly."""
        return []

    def partition_terms(self) -> list[str]:
        return [name if "(" in name else quoted(name) for name in super().partition_columns]

    def as_stored(self, schema: t.StructType) -> t.StructType:
        stored = as_stored(schema)
        assert isinstance(stored, t.StructType)
        return stored

    # --- reading

    def refresh(self, spark: SparkSession) -> None:
        """The catalog of a session caches tables, and does not see what other sessions commit."""
        spark.sql(f"refresh table {self.name}")

    def described(self, spark: SparkSession) -> dict[str, str] | None:
        """The properties of the table as it is now; None if there is none. Raises: TargetError if it is not Iceberg."""
        if not spark.catalog.tableExists(self.name):  # PySpark logs each error, also one that is caught
            return None
        try:
            self.refresh(spark)
            rows = spark.sql(f"show tblproperties {self.name}").collect()
        except Exception as error:
            if has_condition(error, *MISSING):
                return None
            # of a view in a catalog other than Spark's own
            if not has_condition(error, "INTERNAL_ERROR"):
                raise
            rows = []
        found = {str(row[0]): str(row[1]) for row in rows}
        if not is_iceberg(found):
            raise self.not_iceberg("a table of another format")
        return found

    def not_iceberg(self, got: str) -> TargetError:
        remedy = "choose another name, or convert a table: call <catalog>.system.migrate"
        return TargetError.one("the target", self.name, "an Iceberg table, or none yet", got, remedy)

    def read(self, spark: SparkSession) -> DataFrame | None:
        return None if self.described(spark) is None else spark.sql(f"select * from {self.name}")

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        self.refresh(spark)
        at = "" if version is None else f" version as of {version}"
        return spark.sql(f"select * from {self.name}{at}")

    def version(self, spark: SparkSession) -> int:
        return int(self.newest(self.described(spark)))

    def newest(self, properties: Mapping[str, str] | None) -> str:
        """The newest snapshot, from `described`. Raises: StalePlan if the table was dropped, or has none yet."""
        found = (properties or {}).get(NEWEST, NO_SNAPSHOT)
        if found == NO_SNAPSHOT:
            raise StalePlan("the table was dropped or has just been created")
        return found

    def recover(self, spark: SparkSession) -> None:
        """Add a snapshot if nobody has written to the table yet, or since its columns were changed.

        Raises: StalePlan if the table is dropped in the meantime.
        """
        properties = self.described(spark)
        try:
            if properties is not None and (
                properties[NEWEST] == NO_SNAPSHOT
                or not self.has_current_columns(spark, self.at(spark, properties[NEWEST]))
            ):
                self.add_version(spark)
        except Exception as error:
            if has_condition(error, *MISSING):
                raise StalePlan("the table was dropped") from error
            raise

    def at(self, spark: SparkSession, version: str) -> DataFrame:
        return spark.sql(f"select * from {self.name} version as of {version}")

    def has_current_columns(self, spark: SparkSession, rows: DataFrame) -> bool:
        """Whether a snapshot has the columns of the table: it keeps those that the table had then."""
        return rows.schema == spark.sql(f"select * from {self.name}").schema

    def snapshot(self, spark: SparkSession) -> Snapshot | None:
        properties = self.described(spark)
        if properties is None:
            return None
        version = self.newest(properties)
        rows = self.at(spark, version)
        if not self.has_current_columns(spark, rows):
            raise StalePlan("another writer has changed the columns")
        return Snapshot(version, int(version), rows, properties, ())

    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        if self.described(spark) is None:
            return False
        found = spark.sql(f"select 1 from {self.path(spark)}.snapshots where snapshot_id = {table_id}")
        return not found.isEmpty()

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        return (self.described(spark) or {}).get(name)

    # --- making and changing

    def create(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own_properties: Mapping[str, str] | None = None,
        query: str = "",
    ) -> None:
        # a batch changes a few rows in many files; merge-on-read avoids rewriting these files
        defaults = {"commit.retry.num-retries": str(RETRIES), "write.merge.mode": "merge-on-read"}
        properties = {**defaults, **self.properties, **(own_properties or {})}
        with self.named_errors(), self.invalid_schemas():
            spark.sql(self.create_statement("iceberg", columns, properties, query))
            if self.cluster_by:
                listed = ", ".join(quoted(name) for name in self.cluster_by)
                spark.sql(f"alter table {self.name} write locally ordered by {listed}")
        if not spark.catalog.tableExists(self.name):  # for Spark, "if not exists" is true of a view, too
            raise self.not_iceberg("a view")

    def begin(
        self, spark: SparkSession, columns: Mapping[str, str], own_properties: Mapping[str, str] | None = None
    ) -> int:
        self.create(spark, columns, own_properties)
        self.recover(spark)
        snapshot = self.snapshot(spark)
        noted = (own_properties or {}).get(CHANGE_LOG)
        if snapshot is None or snapshot.properties.get(CHANGE_LOG) != noted or not snapshot.rows.isEmpty():
            raise StalePlan("another writer has created the table")
        return snapshot.version

    @contextmanager
    def invalid_schemas(self) -> Iterator[None]:
        """An error of a statement that changes the schema, with or without a condition, is not a commit conflict."""
        try:
            yield
        except Exception as error:
            is_bare = isinstance(error, (AnalysisException, IllegalArgumentException)) and self.text_of(error) is None
            if is_bare or VALIDATION in java_classes(error):
                raise self.refused(self.text_of(error) or str(error).splitlines()[0]) from error
            raise

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]], within: str = "") -> None:
        with self.invalid_schemas():
            super().add_columns(spark, columns, within)

    def can_widen(self, spark: SparkSession, stored: str, given: str) -> bool:
        """Iceberg promotes int to bigint, float to double, and a decimal to one with more digits before the point."""
        if "decimal(" in stored + given:
            return stored.startswith("decimal(") and given.startswith("decimal(") and scale(stored) == scale(given)
        return True

    def change_type(self, spark: SparkSession, column: str, kind: str) -> None:
        self.refresh(spark)
        with self.invalid_schemas():
            self.alter(spark, f"alter column {column} type {kind}")

    def add_version(self, spark: SparkSession) -> None:
        with self.named_errors():
            spark.sql(f"insert into {self.name} select * from {self.name} where false").collect()

    def text_of(self, error: Exception) -> str | None:
        for cause in java_causes(error):
            if cause.getClass().getName().startswith("org.apache.iceberg."):
                return str(cause.getMessage())
        is_own = any(name.startswith("org.apache.iceberg.") for name in java_classes(error))
        return super().text_of(error) or (str(error).splitlines()[0] if is_own else None)

    def check_session(self, error: Exception) -> None:
        if any(condition.startswith(NO_ICEBERG) for condition in conditions(error)):
            mistake = Mistake(
                self.name,
                "a Spark session with Iceberg: its jar, its extension and a catalog",
                "a session without one of them",
                "start Spark with these settings (in dbt: server_side_parameters of the profile): "
                "spark.jars.packages = org.apache.iceberg:iceberg-spark-runtime-<version for your Spark>, "
                "spark.sql.extensions = org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions, "
                "spark.sql.catalog.<name> = org.apache.iceberg.spark.SparkCatalog",
            )
            raise TargetError(counted("the session", [mistake]), [mistake]) from error

    def run(self, spark: SparkSession, statement: str) -> None:
        self.refresh(spark)
        super().run(spark, statement)

    def change(self, spark: SparkSession, statement: Callable[[str], str]) -> None:
        self.commit(spark, statement, merge_id=str(uuid.uuid4()), base_version=self.version(spark))
        self.finish(spark, self.unfinished(spark))

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
        """See `SqlTable.apply`. The branch has the rows that the plan has read, so the open ones are not compared."""
        missing = [(name, kind) for name, kind in layout.columns(spec).items() if find(name, stored) is None]
        if missing:  # a MERGE does not add columns
            self.add_columns(spark, missing)
            stored = {**stored, **dict(missing)}
        return super().apply(
            spark, plan, layout, spec, merge_id=merge_id, base_version=base_version, stored=stored, keys=keys
        )

    # --- committing

    def commit(
        self, spark: SparkSession, statement: Callable[[str], str], *, merge_id: str, base_version: int
    ) -> int | None:
        name = f"{PREFIX}{int(time.time())}_{base_version}_{merge_id}"
        try:
            self.alter(spark, f"create branch {quoted(name)} as of version {base_version}")
            spark.sql(statement(f"{self.path(spark)}.{quoted('branch_' + name)}")).collect()
            head = self.heads(spark).get(name)
        except Exception as error:
            self.drop_quietly(spark, name)
            if raised(error, stale_text(merge_id)) or not self.is_still(spark, str(base_version)):
                raise StalePlan from error
            with self.named_errors():
                raise
        if head is None:
            raise StalePlan("the branch was dropped")
        if head == base_version:
            self.drop_quietly(spark, name)
            return None
        self.publish(spark, name, head, base_version)
        return head

    def publish(self, spark: SparkSession, name: str, head: int, base_version: int) -> None:
        """Publish a branch. After an error, read from the table whether it is published.

        Raises: StalePlan if another writer has committed since the branch began. With another error, this is not known.
        """
        catalog, table = self.place(spark)
        places = f"table => {in_quotes(table)}, branch => 'main', to => {in_quotes(name)}"
        for is_last in (*[False] * RETRIES, True):
            try:
                spark.sql(f"call {quoted(catalog)}.system.fast_forward({places})").collect()
                return
            except Exception:
                # read in this order: the call may still be running, and main may change in between
                newest = (self.described(spark) or {}).get(NEWEST)
                if head in self.published(spark, [head]):
                    return
                if newest != str(base_version):
                    self.drop_quietly(spark, name)
                    raise StalePlan from None
                if is_last:
                    raise
                time.sleep(random.uniform(0, LONGEST_WAIT))  # another writer has changed other metadata

    def path(self, spark: SparkSession) -> str:
        """The name with at least its schema: a prefix for the name of a branch or of a metadata table."""
        if len(name_parts(self.name)) > 1:
            return self.name
        catalog, table = self.place(spark)
        return f"{quoted(catalog)}.{table}"

    def place(self, spark: SparkSession) -> tuple[str, str]:
        """The catalog of the table, and its quoted name in the catalog."""
        first, *rest = name_parts(self.name)
        if rest and spark.conf.get(f"spark.sql.catalog.{first}", None) is not None:
            return first, ".".join(map(quoted, rest))
        catalog, namespace = spark.sql("select current_catalog(), current_database()").collect()[0]
        names = [first, *rest] if rest else [*name_parts(namespace), first]
        return catalog, ".".join(map(quoted, names))

    def alter(self, spark: SparkSession, change: str) -> None:
        """Change metadata that belongs to no snapshot, also while other writers do so."""
        for is_last in (*[False] * RETRIES, True):
            try:
                spark.sql(f"alter table {self.name} {change}")
                return
            except Exception as error:
                if is_last or COMMIT_FAILED not in java_classes(error):
                    raise
                time.sleep(random.uniform(0, LONGEST_WAIT))

    # --- branches of merges

    def heads(self, spark: SparkSession) -> dict[str, int]:
        """The branches of merges, with their newest snapshots."""
        self.refresh(spark)
        refs = spark.sql(f"select name, snapshot_id from {self.path(spark)}.refs")
        return {str(row[0]): int(row[1]) for row in refs.where(f"startswith(name, '{PREFIX}')").collect()}

    def published(self, spark: SparkSession, snapshots: Sequence[int]) -> set[int]:
        """Those of these snapshots that are, or were, the current one."""
        listed = ", ".join(map(str, snapshots))
        self.refresh(spark)
        rows = spark.sql(f"select distinct snapshot_id from {self.path(spark)}.history where snapshot_id in ({listed})")
        return {int(row[0]) for row in rows.collect()}

    def unfinished(self, spark: SparkSession) -> list[Branch]:
        if self.described(spark) is None:
            return []
        found = {name: (match, head) for name, head in self.heads(spark).items() if (match := BRANCH.fullmatch(name))}
        if not found:
            return []
        published = self.published(spark, [head for _, head in found.values()])
        return [
            Branch(
                match[3],
                # the snapshot that it starts from is published, too
                is_committed=head in published and head != int(match[2]),
                is_old=int(match[1]) < time.time() - ABANDONED,
                name=name,
                head=head,
            )
            for name, (match, head) in found.items()
        ]

    def finish(self, spark: SparkSession, merges: Iterable[Unfinished]) -> None:
        ids = {merge.merge_id for merge in merges if merge.is_committed or merge.is_old}
        if not ids:
            return
        for branch in self.unfinished(spark):
            if branch.merge_id in ids:
                if branch.is_committed and (micro_batch := micro_batch_of(branch.merge_id)):
                    self.note_number(spark, *micro_batch)
                self.alter(spark, f"drop branch if exists {quoted(branch.name)}")

    def drop_quietly(self, spark: SparkSession, name: str) -> None:
        """Drop a branch that is not published; if this fails, a later merge drops it."""
        with suppress(Exception):
            self.alter(spark, f"drop branch if exists {quoted(name)}")

    def committed(
        self, spark: SparkSession, merges: Mapping[str, int], unfinished: Iterable[Unfinished]
    ) -> dict[str, int]:
        return {
            merge.merge_id: merge.head
            for merge in unfinished
            if isinstance(merge, Branch) and merge.is_committed and merge.merge_id in merges
        }

    def moment(self, spark: SparkSession, version: int) -> str:
        entries = spark.sql(f"select made_current_at from {self.path(spark)}.history where snapshot_id = {version}")
        return f"timestamp_micros({entries.selectExpr('max(unix_micros(made_current_at))').collect()[0][0]}L)"

    def newest_commits(self, spark: SparkSession) -> list[tuple[int, str]]:
        found = self.described(spark) or {}
        if not any(name.startswith(TAG) for name in found):
            return []
        rows = spark.sql(f"select snapshot_id, parent_id from {self.path(spark)}.history order by made_current_at")
        commits: list[tuple[int, str]] = []
        before = None
        for row in rows.collect():
            made = found.get(f"{TAG}after.{before or 'none'}", "") if row.parent_id is None else ""
            before = row.snapshot_id
            commits.insert(0, (int(before), found.get(f"{TAG}{before}", made)))
        return commits

    def row_commits(self, spark: SparkSession) -> list[RowCommit]:
        if self.described(spark) is None:
            return []
        # a snapshot that only replaces files follows the one before it
        rows = spark.sql(
            f"select h.snapshot_id, h.parent_id, s.operation from {self.path(spark)}.history h "
            f"left join {self.path(spark)}.snapshots s on h.snapshot_id = s.snapshot_id order by h.made_current_at"
        )
        found: list[RowCommit] = []
        before: int | None = None
        for row in rows.collect():
            if row.operation != "replace" or row.parent_id != before:
                found.insert(0, RowCommit(int(row.snapshot_id), before, is_ours=False))
            before = int(row.snapshot_id)
        return found[:20]

    def version_before(self, version: int, base: int | None) -> int | None:
        return base

    def merges_since(
        self, spark: SparkSession, merge_id: re.Pattern[str], version: Callable[[], int | None]
    ) -> list[str]:
        if self.table_property(spark, WRITTEN_BY) is None:
            return []
        since = version()
        if since == self.version(spark):
            return []
        ids = self.rows(spark).select("merge_id")
        if since is not None and self.is_still(spark, str(since)):
            ids = ids.subtract(self.rows(spark, since).select("merge_id"))
        return sorted({one for row in ids.distinct().collect() for one in merge_id.findall(row[0])})

    def was_written_by(self, spark: SparkSession, statement_id: str) -> bool:
        return self.table_property(spark, WRITTEN_BY) == statement_id

    def note_written_by(self, spark: SparkSession, statement_id: str) -> None:
        self.alter(spark, f"set tblproperties ({in_quotes(WRITTEN_BY)} = {in_quotes(statement_id)})")

    def may_lie_between(self, base_version: int, version: int) -> bool:
        return False

    def has_rows_of_others(self, spark: SparkSession, version: int, merge_ids: Sequence[str]) -> bool:
        now = self.version(spark)
        listed = ", ".join(map(literal, merge_ids))
        counts = [
            f"(select count(*) from {self.name} version as of {at}{where})"
            for where in ("", f" where merge_id in ({listed})")  # the first count is in the metadata
            for at in (now, version)
        ]
        all_now, all_then, mine_now, mine_then = spark.sql(f"select {', '.join(counts)}").collect()[0]
        return bool(all_now - all_then != mine_now - mine_then)

    # --- micro-batches

    def newest_number(self, spark: SparkSession, mark: str) -> int | None:
        branches = self.unfinished(spark)  # first: a branch is dropped after its number is recorded
        named = [micro_batch_of(branch.merge_id) for branch in branches if branch.is_committed]
        numbers = [number for found, number in filter(None, named) if found == mark]
        numbers += self.noted_numbers(spark, mark)
        return max(numbers, default=None)

    def noted_numbers(self, spark: SparkSession, mark: str) -> list[int]:
        begin = MICRO_BATCH + mark
        return [
            int(name.removeprefix(begin))
            for name in self.described(spark) or {}
            if name.startswith(begin) and name.removeprefix(begin).isdecimal()
        ]

    def note_number(self, spark: SparkSession, mark: str, number: int) -> None:
        noted = self.noted_numbers(spark, mark)
        if max(noted, default=-1) < number:
            self.alter(spark, f"set tblproperties ({in_quotes(f'{MICRO_BATCH}{mark}{number}')} = 'merged')")
        old = [in_quotes(f"{MICRO_BATCH}{mark}{earlier}") for earlier in noted if earlier < max(noted + [number])]
        if old:
            self.alter(spark, f"unset tblproperties if exists ({', '.join(old)})")


def is_iceberg(properties: Mapping[str, str]) -> bool:
    """Args: properties: as `show tblproperties` gives them."""
    return NEWEST in properties and properties.get("format", "").startswith("iceberg/")


def as_stored(kind: t.DataType) -> t.DataType:
    """The type that Iceberg stores for a type of Spark, also inside other types."""
    if isinstance(kind, (t.ByteType, t.ShortType)):
        return t.IntegerType()
    if isinstance(kind, (t.CharType, t.VarcharType)):
        return t.StringType()
    if isinstance(kind, t.ArrayType):
        return t.ArrayType(as_stored(kind.elementType), kind.containsNull)
    if isinstance(kind, t.MapType):
        return t.MapType(as_stored(kind.keyType), as_stored(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, t.StructType):
        return t.StructType([t.StructField(f.name, as_stored(f.dataType), f.nullable, f.metadata) for f in kind])
    return kind
