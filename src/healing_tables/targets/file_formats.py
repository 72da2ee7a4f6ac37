"""The files of a `FilesTarget`: parquet, and CSV that reads back exactly."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from healing_tables.errors import Mistake, TargetError, counted
from healing_tables.sql.types import types_of
from healing_tables.targets.conflicts import has_condition

FORMATS = ("parquet", "csv")
NO_FILES = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")
# RFC 4180; NULL is empty, and '' is ""
CSV = {
    "header": "true",
    "escape": '"',
    "ignoreLeadingWhiteSpace": "false",
    "ignoreTrailingWhiteSpace": "false",
    "lineSep": "\n",
    "dateFormat": "yyyy-MM-dd",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
}
WRITE_CSV = {"nullValue": "", "emptyValue": '""'}
# Spark reads a text that equals nullValue as NULL even in quotes: this one occurs in no table
READ_CSV = {
    "nullValue": "0b5ba9d6-no-value",
    "emptyValue": "",
    "multiLine": "true",
    "mode": "FAILFAST",
    "enforceSchema": "true",
}
NOT_IN_CSV = ("array", "binary", "interval", "map", "struct", "variant")


def write_files(rows: DataFrame, folder: str, file_format: str) -> None:
    """Write rows to a new folder."""
    options = CSV | WRITE_CSV if file_format == "csv" else {}
    rows.write.format(file_format).options(**options).mode("overwrite").save(folder)


def read_files(spark: SparkSession, folders: Sequence[str], file_format: str, schema: StructType) -> DataFrame:
    options = CSV | READ_CSV if file_format == "csv" else {}
    try:
        return spark.read.format(file_format).options(**options).schema(schema).load(list(folders))
    except AnalysisException as error:
        if not has_condition(error, *NO_FILES):
            raise
        return spark.createDataFrame([], schema)


def check_types(name: str, schema: StructType, file_format: str) -> None:
    """Raises: TargetError for columns whose values cannot be written to CSV."""
    if file_format != "csv":
        return
    mistakes = [
        Mistake(
            f"{name}, column {column}",
            "a type that can be written to CSV",
            kind,
            "use file_format='parquet', or cast it",
        )
        for column, kind in types_of(schema).items()
        if kind.startswith(NOT_IN_CSV)
    ]
    if mistakes:
        raise TargetError(counted("the target", mistakes), mistakes)
