"""A table of a dimension in Hive: the dimension itself, or one beside it. See hive.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from healing_tables.definition.stored_layout import NEW_TABLE
from healing_tables.errors import TargetError
from healing_tables.sql.identifiers import in_quotes, literal, quoted
from healing_tables.targets.conflicts import has_condition
from healing_tables.targets.hive_metastore import NO_FILES, Described, describe_table
from healing_tables.targets.naming import full_name, name_parts
from healing_tables.targets.table import SideTable, Table


class HiveTable(Table):
    """A table in Hive, by name."""

    name: str
    file_format: str
    location: str | None

    @property
    def sql_name(self) -> str:
        return self.name

    def full_name(self, spark: SparkSession) -> str:
        return full_name(spark, self.name)

    def described(self, spark: SparkSession) -> Described | None:
        """The description of the table in the metastore, if it exists. Raises: TargetError for another format."""
        return describe_table(spark, self.name)

    def read(self, spark: SparkSession) -> DataFrame | None:
        return None if self.described(spark) is None else self.rows(spark)

    def rows(self, spark: SparkSession, version: int | None = None) -> DataFrame:
        """The current table. A side table does not change as long as a merge can still commit."""
        spark.sql(f"refresh table {self.sql_name}")
        return spark.table(self.sql_name)

    def version(self, spark: SparkSession) -> int:
        """Always 0: the rows of side tables belong to commits of the dimension."""
        return 0

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

    def add_columns(self, spark: SparkSession, columns: Sequence[tuple[str, str]]) -> None:
        spark.sql(f"alter table {self.sql_name} add columns ({column_list(dict(columns))})")

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
            described_schema = {row[0]: row[1] for row in spark.sql(f"describe schema {schema}").collect()}
            root = described_schema["Location"]
        return f"{root.rstrip('/')}{own}{name}"

    def create_statement(
        self,
        columns: Mapping[str, str],
        location: str,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, object] | None = None,
        comment: str | None = None,
    ) -> str:
        """Args: columns: name to type; partition_by: the last of them."""
        parts = [f"create table if not exists {self.sql_name} ({column_list(columns)}) using {self.file_format}"]
        if partition_by:
            parts.append(f"partitioned by ({', '.join(map(quoted, partition_by))})")
        parts.append(f"location {in_quotes(location)}")
        if comment is not None:
            parts.append(f"comment {in_quotes(comment)}")
        if properties:
            listed = ", ".join(f"{in_quotes(name)} = {in_quotes(str(value))}" for name, value in properties.items())
            parts.append(f"tblproperties ({listed})")
        return " ".join(parts)

    def write(self, rows: DataFrame, folder: str, partitions: Sequence[str] = ()) -> None:
        """Write rows to a new folder."""
        writer = rows.write.format(self.file_format).mode("overwrite")
        if partitions:
            writer = writer.partitionBy(*partitions)
        writer.save(folder)


@dataclass(frozen=True)
class HiveSideTable(HiveTable, SideTable):
    """A table beside a dimension: a partition per merge."""

    name: str
    file_format: str
    location: str | None = None

    def create(
        self, spark: SparkSession, columns: Mapping[str, str], own_properties: Mapping[str, str] | None = None
    ) -> None:
        columns = {name: kind for name, kind in columns.items() if name != "merge_id"} | {"merge_id": "string"}
        folder = self.new_folder(spark, "rows")
        spark.sql(self.create_statement(columns, folder, partition_by=["merge_id"], properties=own_properties))

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


def column_list(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
