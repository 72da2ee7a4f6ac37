"""A dimension in a Delta table: read, made, and changed in one MERGE, one commit."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession

from healing_tables.definition.layout import Layout
from healing_tables.definition.spec import DimensionSpec
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.identifiers import in_quotes, literal, quoted
from healing_tables.targets.conflicts import (
    StalePlan,
    conditions,
    has_condition,
    is_conflict,
    raised,
)
from healing_tables.targets.merge_statement import merge_statement, stale_text
from healing_tables.targets.naming import bad_name, full_name, is_path, is_table_name, name_beside
from healing_tables.targets.table import Snapshot, check_side_table

MISSING = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "PATH_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
)
# What Spark and Delta call an error, and its text up to the stack trace
CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\](?:(?!\n\n|\n\tat |SQLSTATE).)*", re.DOTALL)
AFTER_COMMIT = "DELTA_POST_COMMIT_HOOK_FAILED"
BEING_MADE = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
# Spark without Delta says one of these, or takes "describe detail" for a table called detail
NO_DELTA = (
    "DATA_SOURCE_NOT_FOUND",
    "CANNOT_CREATE_DATA_SOURCE_TABLE.EXTERNAL_METADATA_UNSUPPORTED",
    "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG",
)
# The statement may still be at work
UNKNOWN_OUTCOME = ("INVALID_HANDLE", "INVALID_CURSOR", "OPERATION_CANCELED", "RETRIES_EXCEEDED")


@dataclass(frozen=True)
class Commit:
    """A commit of a table. Attributes: merge_id: of the MERGE that made it; None if no merge of ours did."""

    version: int
    operation: str
    merge_id: str | None


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
    cluster_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        is_name = isinstance(self.name, str) and (self.is_path or is_table_name(self.name))
        if not is_name:
            raise bad_name(
                self.name,
                "a table such as 'schema.table', or a whole path such as '/somewhere' or 's3://bucket/somewhere'",
            )

    @property
    def partition_columns(self) -> list[str]:
        by = self.partition_by
        return [by] if isinstance(by, str) else list(by)

    @property
    def is_path(self) -> bool:
        return is_path(self.name)

    @property
    def sql_name(self) -> str:
        return f"delta.{quoted(self.name)}" if self.is_path else self.name

    def named(self, name: str) -> DeltaTarget:
        """Another table, of this kind."""
        return DeltaTarget(name)

    def beside(self, suffix: str) -> DeltaTarget:
        """A table next to this one: the name with a suffix."""
        return DeltaTarget(name_beside(self.name, suffix))

    def full_name(self, spark: SparkSession) -> str:
        """The name with its catalog and schema, in lower case without quotes; a path without its ``file:``."""
        if self.is_path:
            return re.sub("^file:/+", "/", self.name.rstrip("/"))
        return full_name(spark, self.name)

    def session(self, spark: SparkSession) -> AbstractContextManager[None]:
        """What the statements of a merge need of a session: nothing."""
        return nullcontext()

    def read(self, spark: SparkSession) -> DataFrame | None:
        """The table as it is now; None if there is none. Raises: TargetError if it is not Delta."""
        return None if self.detail(spark) is None else self.rows(spark)

    def detail(self, spark: SparkSession) -> Row | None:
        """What Delta says of the table; None if there is none. Raises: TargetError if it is not Delta."""
        try:
            detail = spark.sql(f"describe detail {self.sql_name}").collect()
        except Exception as error:
            if not self.is_without_delta(error):
                if has_condition(error, *MISSING):
                    return None
                if isinstance(error, AnalysisException):
                    raise self.not_delta(str(error).splitlines()[0]) from error
                raise
            raise self.no_delta() from error
        if detail[0]["format"] != "delta":
            raise self.not_delta(f"a table of format {detail[0]['format']}")
        return detail[0]

    def snapshot(self, spark: SparkSession) -> Snapshot | None:
        """The newest version of the table; None if there is no table. Raises: TargetError if it is not Delta."""
        detail = self.detail(spark)
        if detail is None:
            return None
        try:
            version = self.version(spark)
            rows = self.rows(spark, version)
        except AnalysisException:
            if self.is_still(spark, detail["id"]):
                raise
            return self.snapshot(spark)
        return Snapshot(
            detail["id"],
            version,
            rows,
            detail["properties"] or {},
            tuple(detail["partitionColumns"]),
        )

    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        """Whether the table still has this id: it has not been dropped or recreated."""
        detail = self.detail(spark)
        return detail is not None and detail["id"] == table_id

    def ensure(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own: Iterable[str],
        what: str,
        own_properties: Mapping[str, str] | None = None,
    ) -> DataFrame:
        """The table, made with these columns if there is none.

        Args: own: what it must have, or it is someone else's; what: what it is, for the error ("change log").
        Raises: TargetError
        """
        table = self.read(spark)
        if table is None:
            self.create(spark, columns, own_properties)
            return self.rows(spark)
        check_side_table(self.name, table, columns, own, what)
        return table

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The table as it is now, or at a version; it has to be there."""
        at = "" if version is None else f" version as of {version}"
        return spark.sql(f"select * from {self.sql_name}{at}")

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """What the table or its schema does not take is a TargetError; a conflict stays what it is."""
        try:
            yield
        except Exception as error:
            told = CONDITION.search(str(error))
            found = conditions(error)
            # without one it may be the connection, and after the commit the rows are there
            is_unknown = any(name.startswith((AFTER_COMMIT, *UNKNOWN_OUTCOME)) for name in found)
            if is_conflict(error) or told is None or is_unknown:
                raise
            if self.is_without_delta(error):
                raise self.no_delta() from error
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

    def is_without_delta(self, error: BaseException) -> bool:
        is_taken_for_a_table = (
            has_condition(error, "TABLE_OR_VIEW_NOT_FOUND")
            and "`detail` cannot be found" in str(error).splitlines()[0]
            and self.sql_name.strip("`").lower() != "detail"
        )
        return is_taken_for_a_table or has_condition(error, *NO_DELTA)

    def no_delta(self) -> TargetError:
        mistake = Mistake(
            self.name,
            "a Spark session with Delta Lake: its jar, its extension and its catalog",
            "a session without one of them",
            "start Spark with these settings (in dbt: server_side_parameters of the profile): "
            "spark.jars.packages = io.delta:delta-spark_<version for your Spark>, "
            "spark.sql.extensions = io.delta.sql.DeltaSparkSessionExtension, "
            "spark.sql.catalog.spark_catalog = org.apache.spark.sql.delta.catalog.DeltaCatalog",
        )
        return TargetError(counted("the session", [mistake]), [mistake])

    def create(
        self,
        spark: SparkSession,
        columns: Mapping[str, str],
        own_properties: Mapping[str, str] | None = None,
        query: str = "",
    ) -> None:
        """Make the table if it is not there.

        Args:
            own_properties: what the library notes of the table.
            query: a select of its first rows, with these columns.
        """
        properties = {str(name): str(value) for name, value in self.properties.items()}
        properties |= own_properties or {}
        # also an INSERT of someone else must not slip between what a merge has read and its commit
        properties.setdefault("delta.isolationLevel", "Serializable")
        # a batch changes a few rows in many files: they are marked, and the files not written anew
        properties.setdefault("delta.enableDeletionVectors", "true")
        named = [*columns, *re.findall("`((?:[^`]|``)*)`", " ".join(columns.values()))]
        if any(character in name for name in named for character in " ,;{}()\n\t="):
            properties.setdefault("delta.columnMapping.mode", "name")
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        parts = [f"create table if not exists {self.sql_name}"]
        parts += ["using delta"] if query else [f"({listed}) using delta"]
        if self.partition_columns:
            by = ", ".join(quoted(name) for name in self.partition_columns)
            parts.append(f"partitioned by ({by})")
        if self.cluster_by:
            parts.append(f"cluster by ({', '.join(quoted(name) for name in self.cluster_by)})")
        if self.location is not None:
            parts.append(f"location {in_quotes(self.location)}")
        if self.comment is not None:
            parts.append(f"comment {in_quotes(self.comment)}")
        listed = ", ".join(f"{in_quotes(name)} = {in_quotes(value)}" for name, value in properties.items())
        parts.append(f"tblproperties ({listed})")
        if query:
            parts.append(f"as {query}")
        with self.named_errors():
            for is_last in (False, False, False, False, True):
                try:
                    spark.sql(" ".join(parts))
                    return
                except Exception as error:
                    # another first merge is making it: its folder is there, and not yet its first commit
                    if is_last or not has_condition(error, BEING_MADE):
                        raise
                    time.sleep(1)

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]], within: str = "") -> None:
        """Args: columns: names and types; within: a struct column and a dot."""
        listed = ", ".join(f"{within}{quoted(name)} {kind}" for name, kind in columns)
        with self.named_errors():
            spark.sql(f"alter table {self.sql_name} add columns ({listed})")

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        detail = self.detail(spark)
        return None if detail is None else (detail["properties"] or {}).get(name)

    def set_property(self, spark: SparkSession, name: str, value: str) -> None:
        with self.named_errors():
            spark.sql(f"alter table {self.sql_name} set tblproperties ({in_quotes(name)} = {in_quotes(value)})")

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
        statement = merge_statement(
            self.sql_name,
            plan,
            layout,
            spec,
            merge_id=merge_id,
            stored=stored,
            keys=keys,
            open_rows=open_rows,
        )
        return self.commit(spark, statement, merge_id=merge_id, base_version=base_version)

    def commit(self, spark: SparkSession, statement: str, *, merge_id: str, base_version: int) -> int | None:
        """Run a MERGE; the version of its commit, None if there was none.

        An error does not say that there is no commit (a put whose answer was lost, a hook after the commit): its id
        does.

        Args:
            merge_id: stands in the ON clause, and so in the commit.
            base_version: the commit is newer.
        Raises: StalePlan, what Delta raises on a conflict, or TargetError: there is no commit. Another error: it is not
        known.
        """
        try:
            spark.sql(statement).collect()
        except Exception as error:
            version = self.version_of(spark, merge_id, base_version)
            if version is not None:
                return version
            if raised(error, stale_text(merge_id)):
                raise StalePlan from error
            with self.named_errors():
                raise
        return self.version_of(spark, merge_id, base_version)

    def version(self, spark: SparkSession) -> int:
        """The newest version; the table has to be there."""
        newest = spark.sql(f"describe history {self.sql_name} limit 1")
        return int(newest.select("version").collect()[0][0])

    def version_of(self, spark: SparkSession, merge_id: str, base_version: int) -> int | None:
        """The version that a merge has committed after a version."""
        found = self.commits_since(spark, base_version, [merge_id])
        return next((commit.version for commit in found if commit.merge_id == merge_id), None)

    def newest_number(self, spark: SparkSession, mark: str) -> int | None:
        """The number after this text in the newest merge whose id has it; None if there is none."""
        predicate = "operationParameters['predicate']"
        number = f"cast(regexp_extract({predicate}, {literal(re.escape(mark) + '([0-9]+)')}, 1) as bigint)"
        history = spark.sql(f"describe history {self.sql_name}")
        found = history.where(f"operation = 'MERGE' and contains({predicate}, {literal(mark)})")
        newest = found.selectExpr(f"max_by({number}, version)").collect()[0][0]
        return None if newest is None else int(newest)

    def commits_since(self, spark: SparkSession, version: int, merge_ids: Sequence[str]) -> list[Commit]:
        """The commits after a version, none if there is no table. Args: merge_ids: those to look for."""
        ids = ", ".join(literal(merge_id) for merge_id in merge_ids)
        # Delta writes the condition of a MERGE into the commit; here only the id leaves Spark
        condition = "coalesce(operationParameters['predicate'], '')"
        found = f"try_element_at(filter(array({ids}), id -> contains({condition}, id)), 1)"
        merge_id = f"if(operation = 'MERGE', {found}, null)" if ids else "cast(null as string)"
        limit = 20
        while True:
            try:
                newest = spark.sql(f"describe history {self.sql_name} limit {limit}")
                rows = newest.selectExpr("version", "operation", merge_id).collect()
            except AnalysisException as error:
                # dropped, not made yet, or a folder of other files
                if has_condition(error, *MISSING, "DELTA_TABLE_ONLY_OPERATION"):
                    return []
                raise
            if len(rows) < limit or min(row[0] for row in rows) <= version + 1:
                return [Commit(*row) for row in rows if row[0] > version]
            limit *= 10
