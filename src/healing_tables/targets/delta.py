"""A dimension in a Delta table: read, created, and changed in one MERGE, one commit."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession

from healing_tables.definition.stored_layout import WHOLE
from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.identifiers import literal, quoted
from healing_tables.sql.types import DECIMAL_DIGITS
from healing_tables.targets.conflicts import StalePlan, has_condition, java_causes, java_classes, raised
from healing_tables.targets.merge_statement import MERGE_ID, stale_text
from healing_tables.targets.naming import bad_name, is_path, is_table_name
from healing_tables.targets.sql_table import RowCommit, SqlTable, Unfinished
from healing_tables.targets.table import Snapshot

MISSING = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "PATH_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
)
# In the metadata of a column: its expression; whether an INSERT may give values of an identity column
GENERATED, EXPLICIT = "delta.generationExpression", "delta.identity.allowExplicitInsert"
TYPE_WIDENING = "delta.enableTypeWidening"
METASTORE = "org.apache.hadoop.hive.ql.metadata.HiveException"
BEING_MADE = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
# Operations that change no rows, as in the macro `_delta_maintenance_operations`
MAINTENANCE = (
    "OPTIMIZE",
    "VACUUM START",
    "VACUUM END",
    "REORG",
    "SET TBLPROPERTIES",
    "UNSET TBLPROPERTIES",
    "CHANGE COLUMN",
    "CHANGE COLUMNS",
    "ADD CONSTRAINT",
    "DROP CONSTRAINT",
    "CLUSTER BY",
    "UPGRADE PROTOCOL",
    "COMPUTE STATS",
    "ADD FEATURE",
    "DROP FEATURE",
)
# How the tag of a build begins, in the parameters of its commit: see macros/build/_commit_tag.sql
TAGGED = "~7B~22"
# Spark without Delta raises one of these, or reads "describe detail" as a table named detail
NO_DELTA = (
    "DATA_SOURCE_NOT_FOUND",
    "CANNOT_CREATE_DATA_SOURCE_TABLE.EXTERNAL_METADATA_UNSUPPORTED",
    "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG",
)


ORDERED = re.compile(
    r"(tinyint|smallint|int|bigint|float|double|string|date|timestamp|timestamp_ltz|timestamp_ntz)|decimal\(.*"
)
CLUSTERED = 4  # columns by which Delta can cluster a table, at most


def with_statistics(columns: Mapping[str, str]) -> set[str]:
    """The columns by which Delta can cluster a table: simple types, among its first 32. See formats/_clustering.sql."""
    found, seen = set(), 0
    for name, kind in columns.items():
        seen += max(1, kind.count(":"))  # each field of a struct counts as one
        if seen <= 32 and ORDERED.fullmatch(kind):
            found.add(name)
    return found


@dataclass(frozen=True)
class Commit:
    """A commit of a table.

    Attributes:
        merge_id: of the MERGE that made it; None if no merge of ours did.
        moment: in microseconds since 1970.
    """

    version: int
    operation: str
    merge_id: str | None
    moment: int


@dataclass(frozen=True)
class DeltaTarget(SqlTable):
    """A Delta table by name (``schema.table``) or path (``/somewhere`` or ``s3://...``).

    The other arguments are used when the first merge creates the table. Raises: ArgumentError for a wrong name or path.
    """

    cluster_by: Sequence[str] = ()

    def __post_init__(self) -> None:
        is_name = isinstance(self.name, str) and (self.is_path or is_table_name(self.name))
        if not is_name:
            raise bad_name(
                self.name,
                "a table such as 'schema.table', or a whole path such as '/somewhere' or 's3://bucket/somewhere'",
            )

    @property
    def is_path(self) -> bool:
        return is_path(self.name)

    @property
    def sql_name(self) -> str:
        return f"delta.{quoted(self.name)}" if self.is_path else self.name

    def growing(self, *, is_append_only: bool = False) -> DeltaTarget:
        # each merge adds a small file; auto compaction combines them
        properties = {"delta.autoOptimize.autoCompact": "true"}
        if is_append_only:
            properties["delta.appendOnly"] = "true"
        return self.with_properties(properties)

    def ordered(self, by: Sequence[str], columns: Mapping[str, str]) -> DeltaTarget:
        by = by[:CLUSTERED]
        return replace(self, cluster_by=tuple(by)) if set(by) <= with_statistics(columns) else self

    def full_name(self, spark: SparkSession) -> str:
        """The name with its catalog and schema, in lower case without quotes; a path without its ``file:``."""
        if self.is_path:
            return re.sub("^file:/+", "/", self.name.rstrip("/"))
        return super().full_name(spark)

    def read(self, spark: SparkSession) -> DataFrame | None:
        return None if self.detail(spark) is None else self.rows(spark)

    def detail(self, spark: SparkSession) -> Row | None:
        """Delta's details of the table; None if there is none. Raises: TargetError if it is not Delta."""
        try:
            detail = spark.sql(f"describe detail {self.sql_name}").collect()
        except Exception as error:
            if not self.is_without_delta(error):
                if has_condition(error, *MISSING):
                    return None
                if METASTORE in java_classes(error):
                    raise self.no_catalog(error) from error
                if isinstance(error, AnalysisException):
                    raise self.not_delta(str(error).splitlines()[0]) from error
                raise
            raise self.no_delta() from error
        if detail[0]["format"] != "delta":
            raise self.not_delta(f"a table of format {detail[0]['format']}")
        return detail[0]

    def snapshot(self, spark: SparkSession) -> Snapshot | None:
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
            computed=self.computed_of(spark, detail),
        )

    def computed_columns(self, spark: SparkSession) -> dict[str, bool]:
        detail = self.detail(spark)
        return {} if detail is None else self.computed_of(spark, detail)

    def computed_of(self, spark: SparkSession, detail: Row) -> dict[str, bool]:
        """See `Table.computed_columns`. Spark's schema of a table does not show them, but the log of Delta does."""
        if not {"generatedColumns", "identityColumns"} & set(detail["tableFeatures"] or ()):
            return {}
        newest = None
        for file_format, names in (("json", "*.json"), ("parquet", "*.checkpoint*.parquet")):
            log = spark.read.schema("metaData struct<schemaString: string>").option("pathGlobFilter", names)
            found = log.format(file_format).load(f"{detail['location']}/_delta_log").where("metaData is not null")
            newest = found.selectExpr("max_by(metaData.schemaString, _metadata.file_name)").collect()[0][0]
            if newest is not None:  # older commits are only in a checkpoint
                break
        fields = json.loads(newest)["fields"] if newest else []
        return {
            field["name"]: bool(field["metadata"].get(EXPLICIT, False))
            for field in fields
            if GENERATED in field["metadata"] or EXPLICIT in field["metadata"]
        }

    def is_still(self, spark: SparkSession, table_id: str) -> bool:
        detail = self.detail(spark)
        return detail is not None and detail["id"] == table_id

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        at = "" if version is None else f" version as of {version}"
        return spark.sql(f"select * from {self.sql_name}{at}")

    def check_session(self, error: Exception) -> None:
        if self.is_without_delta(error):
            raise self.no_delta() from error

    def no_catalog(self, error: BaseException) -> TargetError:
        found = str(error)
        for cause in java_causes(error):  # none on Connect; the innermost one says most
            found = str(cause.getMessage() or cause.getClass().getName())
        remedy = "check the connection to the metastore; an embedded one (Derby) serves one process at a time"
        return TargetError.one("the target", self.name, "a catalog that answers", found.splitlines()[0], remedy)

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
        properties = {str(name): str(value) for name, value in self.properties.items()}
        properties |= own_properties or {}
        # also an INSERT of another writer between the read and the commit of a merge must be a conflict
        properties.setdefault("delta.isolationLevel", "Serializable")
        # a batch changes a few rows in many files; deletion vectors avoid rewriting these files
        properties.setdefault("delta.enableDeletionVectors", "true")
        named = [*columns, *re.findall("`((?:[^`]|``)*)`", " ".join(columns.values()))]
        if any(character in name for name in named for character in " ,;{}()\n\t="):
            properties.setdefault("delta.columnMapping.mode", "name")
        statement = self.create_statement("delta", columns, properties, query, self.cluster_by)
        with self.named_errors():
            for is_last in (False, False, False, False, True):
                try:
                    spark.sql(statement)
                    return
                except Exception as error:
                    # another first merge is creating it: its folder exists, but not yet its first commit
                    if is_last or not has_condition(error, BEING_MADE):
                        raise
                    time.sleep(1)

    def can_widen(self, spark: SparkSession, stored: str, given: str) -> bool:
        if spark.version.startswith("3."):  # with Delta 3.3
            return stored in ("tinyint", "smallint") and given in ("smallint", "int")
        if stored in WHOLE and given.startswith("decimal("):
            precision, scale = (int(part) for part in given[8:-1].split(","))
            return precision - scale >= max(DECIMAL_DIGITS[stored], DECIMAL_DIGITS["int"])
        return True

    def change_types(self, spark: SparkSession, columns: Sequence[tuple[str, str]], within: str = "") -> None:
        if columns and self.table_property(spark, TYPE_WIDENING) != "true":
            self.set_property(spark, TYPE_WIDENING, "true")
        super().change_types(spark, columns, within)

    def begin(
        self, spark: SparkSession, columns: Mapping[str, str], own_properties: Mapping[str, str] | None = None
    ) -> int:
        self.create(spark, columns, own_properties)
        return -1

    def table_property(self, spark: SparkSession, name: str) -> str | None:
        detail = self.detail(spark)
        return None if detail is None else (detail["properties"] or {}).get(name)

    def change(self, spark: SparkSession, statement: Callable[[str], str]) -> None:
        self.run(spark, statement(self.sql_name))

    def commit(
        self, spark: SparkSession, statement: Callable[[str], str], *, merge_id: str, base_version: int
    ) -> int | None:
        """See `SqlTable.commit`.

        An error does not mean that there is no commit (a lost response, a failed post-commit hook): the history shows
        the id.

        Args: merge_id: part of the ON clause, and so of the commit.
        """
        try:
            spark.sql(statement(self.sql_name)).collect()
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
        newest = spark.sql(f"describe history {self.sql_name} limit 1")
        return int(newest.select("version").collect()[0][0])

    def version_of(self, spark: SparkSession, merge_id: str, base_version: int) -> int | None:
        """The version of a merge's commit after a base version."""
        found = self.commits_since(spark, base_version, [merge_id])
        return next((commit.version for commit in found if commit.merge_id == merge_id), None)

    def committed(
        self, spark: SparkSession, merges: Mapping[str, int], unfinished: Iterable[Unfinished]
    ) -> dict[str, int]:
        if not merges:
            return {}
        found = self.commits_since(spark, min(merges.values()), list(merges))
        return {commit.merge_id: commit.version for commit in found if commit.merge_id is not None}

    def moment(self, spark: SparkSession, version: int) -> str:
        found = next(commit for commit in self.commits_since(spark, version - 1, []) if commit.version == version)
        return f"timestamp_micros({found.moment}L)"

    def newest_commits(self, spark: SparkSession) -> list[tuple[int, str]]:
        rows = self.history(spark, 20, "version", "operationParameters")
        return [(int(row[0]), str(row[1])) for row in rows]

    def row_commits(self, spark: SparkSession) -> list[RowCommit]:
        rows = self.history(spark, 20, "version", "operation", "cast(operationParameters as string)")
        return [
            RowCommit(int(version), version - 1 if version else None, MERGE_ID in text or TAGGED in text)
            for version, operation, text in rows
            if operation not in MAINTENANCE
        ]

    def version_before(self, version: int, base: int | None) -> int | None:
        return version - 1 if version > 0 else None

    def merges_since(
        self, spark: SparkSession, merge_id: re.Pattern[str], version: Callable[[], int | None]
    ) -> list[str]:
        found = [(number, merge_id.findall(text)) for number, text in self.newest_commits(spark)]
        if not any(ids for _, ids in found):
            return []
        since = version()
        return sorted({one for number, ids in found for one in ids if since is None or number > since})

    def was_written_by(self, spark: SparkSession, statement_id: str) -> bool:
        return any(statement_id in text for _, text in self.newest_commits(spark))

    def history(self, spark: SparkSession, limit: int, *columns: str) -> list[Row]:
        """The newest commits; empty if there is no table."""
        try:
            return spark.sql(f"describe history {self.sql_name} limit {limit}").selectExpr(*columns).collect()
        except AnalysisException as error:
            # dropped, not created yet, or a folder of other files
            if has_condition(error, *MISSING, "DELTA_TABLE_ONLY_OPERATION"):
                return []
            raise

    def may_lie_between(self, base_version: int, version: int) -> bool:
        return version > base_version + 1

    def has_rows_of_others(self, spark: SparkSession, version: int, merge_ids: Sequence[str]) -> bool:
        found = self.commits_since(spark, version, merge_ids)
        return any(commit.merge_id is None and commit.operation not in MAINTENANCE for commit in found)

    def newest_number(self, spark: SparkSession, mark: str) -> int | None:
        predicate = "operationParameters['predicate']"
        number = f"cast(regexp_extract({predicate}, {literal(re.escape(mark) + '([0-9]+)')}, 1) as bigint)"
        history = spark.sql(f"describe history {self.sql_name}")
        found = history.where(f"operation = 'MERGE' and contains({predicate}, {literal(mark)})")
        newest = found.selectExpr(f"max_by({number}, version)").collect()[0][0]
        return None if newest is None else int(newest)

    def commits_since(self, spark: SparkSession, version: int, merge_ids: Sequence[str]) -> list[Commit]:
        """The commits after a version; empty if there is no table. Args: merge_ids: those to look for."""
        ids = ", ".join(literal(merge_id) for merge_id in merge_ids)
        # Delta writes the condition of a MERGE into the commit; only the id is collected here
        condition = "coalesce(operationParameters['predicate'], '')"
        found = f"try_element_at(filter(array({ids}), id -> contains({condition}, id)), 1)"
        merge_id = f"if(operation = 'MERGE', {found}, null)" if ids else "cast(null as string)"
        limit = 20
        while True:
            rows = self.history(spark, limit, "version", "operation", merge_id, "unix_micros(timestamp)")
            if len(rows) < limit or min(row[0] for row in rows) <= version + 1:
                return [Commit(*row) for row in rows if row[0] > version]
            limit *= 10
