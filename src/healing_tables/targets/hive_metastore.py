"""What the metastore and the file system say about a Hive table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.targets.conflicts import has_condition

FORMATS = ("orc", "parquet")
MISSING = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND")
NO_FILES = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


@dataclass(frozen=True)
class Described:
    """The description of a table in the metastore."""

    file_format: str
    location: str
    is_external: bool
    partitions: tuple[str, ...]
    has_listed_partitions: bool  # in the metastore, each with a location of its own
    properties: Mapping[str, str]
    columns: tuple[str, ...]
    comment: str | None


def describe_table(spark: SparkSession, name: str) -> Described | None:
    """The description of a table, if it exists. Raises: TargetError for a view or a table of another format."""
    if not spark.catalog.tableExists(name):  # PySpark logs each error, also one that is caught
        return None
    try:
        rows = spark.sql(f"describe table extended {name}").collect()
        properties = dict(map(tuple, spark.sql(f"show tblproperties {name}").collect()))
    except AnalysisException as error:
        if has_condition(error, *MISSING):
            return None
        raise
    columns, partitions, details = parts_of(rows)
    formats = f"{details.get('Provider')} {details.get('InputFormat')}".lower()
    file_format = next((known for known in FORMATS if known in formats), None)
    if file_format is None or details.get("Type") == "VIEW":
        got = str(details.get("Provider") or details.get("Type")).lower()
        mistake = Mistake(name, f"a table in {' or '.join(FORMATS)}, or none yet", got, "choose another name")
        raise TargetError(counted("the target", [mistake]), [mistake])
    return Described(
        file_format,
        details["Location"],
        details.get("Type") == "EXTERNAL",
        partitions,
        bool(partitions) and details.get("Partition Provider") == "Catalog",
        properties,
        columns,
        details.get("Comment"),
    )


def parts_of(rows: Sequence[Row]) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, str]]:
    """The columns, the partition columns and the details in the rows of `describe table extended`.

    Spark 3.5 has no `as json`.
    """
    names = [row[0] for row in rows]
    start = len(names) - 1 - names[::-1].index("# Detailed Table Information")
    title = "# Partition Information"
    end = names.index(title) if title in names else start
    columns, partitions = names[:end], names[end + 2 : start]
    return tuple(filter(None, columns)), tuple(filter(None, partitions)), {row[0]: row[1] for row in rows[start + 1 :]}


@contextmanager
def partitions_in_metastore(spark: SparkSession, are_there: bool) -> Iterator[None]:
    """Whether the partitions of tables are in the metastore, or are found by listing folders; for new and old ones."""
    name = "spark.sql.hive.manageFilesourcePartitions"
    before = str(spark.conf.get(name))
    spark.conf.set(name, str(are_there).lower())
    try:
        yield
    finally:
        spark.conf.set(name, before)


def same_place(one: str, other: str) -> bool:
    """Whether two texts are one location: file:/x, file:///x and /x are."""
    return re.sub("^file:/+", "/", one.rstrip("/")) == re.sub("^file:/+", "/", other.rstrip("/"))


def files_in(spark: SparkSession, folders: Sequence[str]) -> tuple[str, ...]:
    """The files in these folders, as `path time size`, sorted. Spark lists them and opens none."""
    try:
        listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(list(folders))
        rows = listed.selectExpr("concat_ws(' ', path, unix_micros(modificationTime), length)").collect()
    except AnalysisException as error:
        if has_condition(error, *NO_FILES):
            return ()
        raise
    return tuple(sorted(row[0] for row in rows))


def path_of(file: str) -> str:
    """The path in a text of `files_in`."""
    return file.rsplit(" ", 2)[0]
