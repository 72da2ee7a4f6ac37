"""Finds the kind of table that a name means."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from healing_tables.errors import ArgumentError, TargetError
from healing_tables.targets.delta import DeltaTarget
from healing_tables.targets.files import FilesTarget
from healing_tables.targets.hive import HiveTarget
from healing_tables.targets.iceberg import IcebergTarget
from healing_tables.targets.naming import name_parts
from healing_tables.targets.postgres import PostgresTarget

Target = DeltaTarget | FilesTarget | HiveTarget | IcebergTarget | PostgresTarget

ICEBERG = "org.apache.iceberg.spark."


def target_of(spark: SparkSession, name: Target | str) -> Target:
    """The target itself, or the existing table of that name in its format.

    If there is none: a new table in Delta, or in Iceberg in an Iceberg catalog, which has no other tables.
    Raises: ArgumentError if it is not a name.
    """
    if isinstance(name, (DeltaTarget, FilesTarget, HiveTarget, IcebergTarget, PostgresTarget)):
        return name
    delta = DeltaTarget(name)
    if delta.is_path:
        return delta if is_delta(spark, delta) else files_at(spark, name) or delta
    if not is_delta(spark, delta):
        iceberg = IcebergTarget(name)
        if is_iceberg(spark, iceberg):
            return iceberg
        hive = HiveTarget(name)
        try:
            described = hive.described(spark)
        except (TargetError, AnalysisException):
            return delta  # its error about the table is the better message
        if described is not None:
            return HiveTarget(name, described.file_format)
        if catalog_class(spark, name).startswith(ICEBERG):
            return iceberg
    return delta


def is_delta(spark: SparkSession, target: DeltaTarget) -> bool:
    """Whether there is such a table, in Delta. False for another format, or a session without Delta."""
    try:
        return target.detail(spark) is not None
    except TargetError:
        return False


def is_iceberg(spark: SparkSession, target: IcebergTarget) -> bool:
    """Whether there is such a table, in Iceberg."""
    try:
        return target.described(spark) is not None
    except (AnalysisException, TargetError):
        return False


def catalog_class(spark: SparkSession, name: str) -> str:
    """The class of the catalog that a name is in; empty for Spark's default catalog."""
    parts = name_parts(name)
    setting = "spark.sql.catalog."
    found = spark.conf.get(setting + parts[0], None) if len(parts) > 1 else None
    if found is None and parts[0].lower() != "spark_catalog":
        found = spark.conf.get(setting + spark.catalog.currentCatalog(), None)
    return found or ""


def files_at(spark: SparkSession, path: str) -> FilesTarget | None:
    """The dimension in files at a path, if there is one that can be read from here."""
    try:
        target = FilesTarget(path)
        return target if target.versions(spark) else None
    except (ArgumentError, TargetError):
        return None
