"""A process whose Spark has no Delta Lake, or a part of it. See test_without_delta.py.

    python without_delta.py HOME PART...

Prints the error of a merge, and the rows of a Hive table after two merges. PART: jar, extension, catalog: what the
session has.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from sessions import session_settings

from healing_tables import DimensionSpec, HealingTablesError, HiveTarget, merge

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
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sql("create database lab")
    batch = spark.sql("select 1 as id, 'a' as name")
    for spec in (DimensionSpec(key_columns="id"), DimensionSpec(key_columns="id", audit={})):
        try:
            merge(batch, "lab.dim", spec)
        except HealingTablesError as error:
            print(f"{type(error).__name__}: {' '.join(str(error).split())}")
    if "catalog" not in parts:  # it takes all tables of the session
        spec = DimensionSpec(key_columns="id", audit={})
        merge(batch, HiveTarget("lab.users"), spec, at="2024-01-01")
        merge(spark.sql("select 1 as id, 'b' as name"), "lab.users", spec, at="2024-01-02")
        print("merged:", sorted(row.name for row in spark.table("lab.users").collect()))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
