"""A dimension in a Delta table: read, made, and changed in one MERGE, one commit."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from healing_tables.errors import ArgumentError, Mistake, TargetError, counted
from healing_tables.layout import Layout, find, types_of
from healing_tables.naming import in_quotes, literal, quoted
from healing_tables.spec import DimensionSpec
from healing_tables.stored_layout import fits
from healing_tables.targets.conflicts import is_conflict
from healing_tables.targets.merge_statement import merge_statement

MISSING = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "PATH_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
)
# What Spark and Delta call an error, and its text up to the stack trace
CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\](?:.(?!\n\n|\n\tat |SQLSTATE))*", re.DOTALL)
AFTER_COMMIT = "DELTA_POST_COMMIT_HOOK_FAILED"
BEING_MADE = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
METADATA = "spark.databricks.delta.commitInfo.userMetadata"
LARGEST_KEY = "healing_tables.largest_key"
# The text that a commit carries is a setting of the session, which threads share
commit_text = threading.Lock()
# Ids that an interrupt has left in a session
interrupted: set[str] = set()


def put_back(spark: SparkSession, before: str | None) -> None:
    """Args: before: what the user has set, or an earlier merge has left."""
    if before is None or before in interrupted:
        spark.conf.unset(METADATA)
    else:
        spark.conf.set(METADATA, before)


@contextmanager
def as_view(rows: DataFrame) -> Iterator[str]:
    """A name under which SQL finds these rows; gone afterwards."""
    name = f"healing_tables_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(name)
    try:
        yield name
    finally:
        rows.sparkSession.catalog.dropTempView(name)


@dataclass(frozen=True)
class DeltaTarget:
    """A Delta table by name (``schema.table``) or path (``/somewhere`` or ``s3://...``).

    The rest is used when the table is made, on the first merge. Raises: ArgumentError if it is no name.
    """

    name: str
    partition_by: Sequence[str] | str = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    location: str | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        is_name = isinstance(self.name, str) and self.name.strip() != ""
        if not is_name or (not self.is_path and "/" in self.name and "`" not in self.name):
            mistake = Mistake(
                "target",
                "a table such as 'schema.table', or a whole path such as '/somewhere' or 's3://bucket/somewhere'",
                repr(self.name),
                "correct it",
            )
            raise ArgumentError(counted("the target", [mistake]), [mistake])

    @property
    def partition_columns(self) -> list[str]:
        by = self.partition_by
        return [by] if isinstance(by, str) else list(by)

    def partitions(self, spark: SparkSession, *, is_new: bool) -> list[str]:
        """Columns that the table is partitioned by; of a new one those that it will be."""
        if is_new:
            return self.partition_columns
        detail = spark.sql(f"describe detail {self.sql_name}").select("partitionColumns")
        return list(detail.collect()[0][0])

    @property
    def is_path(self) -> bool:
        return re.match("/|[A-Za-z][A-Za-z0-9+.-]*:/", self.name) is not None

    @property
    def sql_name(self) -> str:
        return f"delta.{quoted(self.name)}" if self.is_path else self.name

    def beside(self, suffix: str) -> DeltaTarget:
        """A table next to this one: the name with a suffix."""
        if self.name.endswith("`"):
            return DeltaTarget(self.name[:-1] + suffix + "`")
        return DeltaTarget(self.name.rstrip("/") + suffix)

    def read(self, spark: SparkSession) -> DataFrame | None:
        """The table as it is now; None if there is none. Raises: TargetError if it is not Delta."""
        try:
            detail = spark.sql(f"describe detail {self.sql_name}").collect()
        except AnalysisException as error:
            if any(mark in str(error) for mark in MISSING):
                return None
            raise self.not_delta(str(error).splitlines()[0]) from error
        if detail[0]["format"] != "delta":
            raise self.not_delta(f"a table of format {detail[0]['format']}")
        return self.rows(spark)

    def ensure(
        self, spark: SparkSession, columns: Mapping[str, str], own: Iterable[str], what: str
    ) -> DataFrame:
        """The table, made with these columns if there is none.

        Args: own: what it must have, or it is someone else's; what: what it is, for the error ("change log").
        Raises: TargetError
        """
        table = self.read(spark)
        if table is None:
            self.create(spark, columns)
            return self.rows(spark)
        present = types_of(table.schema)
        missing = [
            f"{name} {columns[name]}"
            for name in own
            if not fits(columns[name], present.get(find(name, present) or "", ""))
        ]
        if missing:
            mistake = Mistake(
                self.name,
                f"the {what} of a dimension, which a merge has made, or no table yet",
                f"a table without {', '.join(missing)}",
                "choose another name",
            )
            raise TargetError(counted(f"the {what}", [mistake]), [mistake])
        return table

    def rows(self, spark: SparkSession) -> DataFrame:
        """The table as it is now; it has to be there."""
        return spark.sql(f"select * from {self.sql_name}")

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """What the table or its schema does not take is a TargetError; a conflict stays what it is."""
        try:
            yield
        except Exception as error:
            told = CONDITION.search(str(error))
            # without one it may be the connection, and after the commit the rows are there
            if is_conflict(error) or told is None or AFTER_COMMIT in told[0]:
                raise
            mistake = Mistake(
                self.name,
                "a table that takes what the merge writes",
                " ".join(told[0].split()),
                "make the table, its schema or the batch fit",
            )
            raise TargetError(counted("the target", [mistake]), [mistake]) from error

    def not_delta(self, got: str) -> TargetError:
        mistake = Mistake(
            self.name,
            "a Delta table, or none yet",
            got,
            "choose another name, or convert it: CONVERT TO DELTA",
        )
        return TargetError(counted("the target", [mistake]), [mistake])

    def create(self, spark: SparkSession, columns: Mapping[str, str]) -> None:
        properties = {str(name): str(value) for name, value in self.properties.items()}
        # also an INSERT of someone else must not slip between what a merge has read and its commit
        properties.setdefault("delta.isolationLevel", "Serializable")
        # a batch changes a few rows in many files: they are marked, and the files not written anew
        properties.setdefault("delta.enableDeletionVectors", "true")
        named = [*columns, *re.findall("`((?:[^`]|``)*)`", " ".join(columns.values()))]
        if any(character in name for name in named for character in " ,;{}()\n\t="):
            properties.setdefault("delta.columnMapping.mode", "name")
        parts = [
            f"create table if not exists {self.sql_name} (",
            ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items()),
            ") using delta",
        ]
        if self.partition_columns:
            by = ", ".join(quoted(name) for name in self.partition_columns)
            parts.append(f"partitioned by ({by})")
        if self.location is not None:
            parts.append(f"location {in_quotes(self.location)}")
        if self.comment is not None:
            parts.append(f"comment {in_quotes(self.comment)}")
        listed = ", ".join(
            f"{in_quotes(name)} = {in_quotes(value)}" for name, value in properties.items()
        )
        parts.append(f"tblproperties ({listed})")
        with self.named_errors():
            for is_last in (False, False, False, False, True):
                try:
                    spark.sql(" ".join(parts))
                    return
                except AnalysisException as error:
                    # another first merge is making it: its folder is there, and not yet its first commit
                    if is_last or BEING_MADE not in str(error):
                        raise
                    time.sleep(1)

    def add_columns(
        self, spark: SparkSession, columns: Sequence[tuple[str, str]], within: str = ""
    ) -> None:
        """Args: columns: names and types; within: a struct column and a dot."""
        listed = ", ".join(f"{within}{quoted(name)} {kind}" for name, kind in columns)
        with self.named_errors():
            spark.sql(f"alter table {self.sql_name} add columns ({listed})")

    def apply(
        self,
        spark: SparkSession,
        plan: str,
        layout: Layout,
        spec: DimensionSpec,
        *,
        merge_id: str,
        keys: str = "",
        largest_key: int = 0,
        open_rows: tuple[int, int] | None = None,
    ) -> int | None:
        """Apply a plan in one MERGE.

        Args:
            plan: name of a view with the rows of plan.plan.
            merge_id: stands in the commit, so that it can be found again.
            keys: a condition on ``t``, the target, that holds for all keys of the plan.
            largest_key: new integer keys are larger.
            open_rows: see `merge_statement.merge_statement`.
        Returns: the version of the commit; None if there was none.
        Raises: what Delta raises on a conflict, or an error with STALE if a row is not as the plan expects it.
        """
        statement = merge_statement(self.sql_name, plan, layout, spec, keys, largest_key, open_rows)
        return self.commit(spark, statement, merge_id)

    def commit(self, spark: SparkSession, statement: str, merge_id: str) -> int | None:
        """Run a statement that writes to the table; the version of its commit, which carries the id, or None."""
        with commit_text:
            before = spark.conf.get(METADATA, None)
            spark.conf.set(METADATA, merge_id)
            try:
                with self.named_errors():
                    spark.sql(statement).collect()
            except KeyboardInterrupt:
                # the statement may go on without us: its commit needs the id, for the next merge to find it
                interrupted.add(merge_id)
                raise
            finally:
                if merge_id not in interrupted:
                    put_back(spark, before)
        return self.version_of(spark, merge_id)

    def has_commit_since(self, spark: SparkSession, moment: int) -> bool:
        """Whether the newest commit is not older than a moment (microseconds); commits are timed in milliseconds."""
        newest = spark.sql(f"describe history {self.sql_name} limit 1")
        found = newest.where(f"unix_micros(timestamp) + 1000 > {moment}L")
        return not found.isEmpty()

    def largest_key(self, spark: SparkSession) -> int:
        """The largest integer key of the rows that have left the table; 0 if none has."""
        found = spark.sql(f"show tblproperties {self.sql_name}").where(f"key = '{LARGEST_KEY}'")
        rows = found.select("value").collect()
        return int(rows[0][0]) if rows else 0

    def remember_largest_key(self, spark: SparkSession, key: int) -> None:
        spark.sql(f"alter table {self.sql_name} set tblproperties ('{LARGEST_KEY}' = '{key}')")

    def version(self, spark: SparkSession) -> int:
        """The newest version; the table has to be there."""
        newest = spark.sql(f"describe history {self.sql_name} limit 1")
        return int(newest.select("version").collect()[0][0])

    def version_of(self, spark: SparkSession, merge_id: str) -> int | None:
        """The commit that carries an id, among the newest thousand."""
        return self.versions_of(spark, [merge_id]).get(merge_id)

    def versions_of(self, spark: SparkSession, merge_ids: Sequence[str]) -> dict[str, int]:
        """The commits that carry these ids, in one look at the newest thousand."""
        history = spark.sql(f"describe history {self.sql_name} limit 1000")
        listed = ", ".join(literal(merge_id) for merge_id in merge_ids)
        found = history.where(f"userMetadata in ({listed})").select("userMetadata", "version")
        return {str(merge_id): int(version) for merge_id, version in found.collect()}
