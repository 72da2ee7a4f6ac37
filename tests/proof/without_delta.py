"""A process whose Spark has no Delta Lake, or a part of it. See test_without_delta.py.

    python without_delta.py HOME PART...

Prints the error of a merge. PART: jar, extension, catalog: what the session has.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from sessions import session_settings

from healing_tables import DimensionSpec, HealingTablesError, merge

SETTINGS = {
    "jar": "spark.jars.packages",
    "extension": "spark.sql.extensions",
    "catalog": "spark.sql.catalog.spark_catalog",
}


def main(home: Path, parts: list[str]) -> None:
    settings = session_settings(home)
    for part, name in SETTINGS.items():
        if part not in parts:
            del settings[name]
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sql("create database lab")
    batch = spark.sql("select 1 as id, 'a' as name")
    for spec in (DimensionSpec(key_columns="id"), DimensionSpec(key_columns="id", audit={})):
        try:
            merge(batch, "lab.dim", spec)
        except HealingTablesError as error:
            print(f"{type(error).__name__}: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
