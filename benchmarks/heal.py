"""How long the heal of a few keys takes, as a ratio to the rebuild of all.

    python benchmarks/heal.py --rows 5000000 --share 0.001 --repeat 3
    python benchmarks/heal.py --rows 5000000 --share 0.001 --together --clustered 8   # megabytes of a file

heal     `dbt run` of a dimension with mode: heal: news, candidate, checks, comparison, MERGE
rebuild  `dbt run` of its twin with mode: rebuild: the same, of all keys

Before each pair of runs a share of the keys gets a change in each source. All runs share one process; the figures
are medians. The sources are Delta tables, read by `loaded_at`, or with --feed by their change data feed. With
--clustered, sources and dimensions are clustered by key, and sorted once into files of that size. The report has the
number of files of the dimension whose range of keys contains a changed key.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from rebuild import ROOT, columns_of, in_temporary_folder, make_source

sys.path.insert(0, str(ROOT / "tests" / "shared"))
KEY = "customer_id"
FEED = "delta.enableChangeDataFeed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000, help="change rows over all sources")
    parser.add_argument("--share", type=float, default=0.001, help="of the keys that change")
    parser.add_argument("--sources", type=int, default=3)
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--changes-per-key", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-deletion-vectors", action="store_true", help="on the dimensions")
    parser.add_argument("--feed", action="store_true", help="news by the change data feed")
    parser.add_argument("--together", action="store_true", help="the changed keys are next to each other")
    parser.add_argument("--clustered", type=int, metavar="MB", help="cluster by key, in files of this size")
    parser.add_argument("--memory", default="10g", help="heap of the one JVM")
    options = parser.parse_args()
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    lab, names = lab_with_sources(options, home, "16", has_feed=options.feed)
    spark = lab.spark
    write_models(lab, options, names)
    lab.dbt("run")
    if options.clustered:
        sort_by_key(options, spark, names)
    share = share_of_files(spark, options)
    seconds: dict[str, list[float]] = {"heal": [], "rebuild": []}
    written: dict[str, list[int]] = {"heal": [], "rebuild": []}
    for turn in range(1, options.repeat + 2):
        change(spark, options, names, turn, together=options.together)
        for kind, figures in seconds.items():
            before = size_of(spark, kind)
            started = time.perf_counter()
            results = lab.dbt("run", "--select", f"dim_{kind}")
            assert results[f"dim_{kind}"][0] == "success", results
            if turn > 1:  # the first is to warm up
                figures.append(time.perf_counter() - started)
                written[kind].append(size_of(spark, kind) - before)
    report(options, spark, seconds, written, share)
    spark.stop()


def lab_with_sources(
    options: argparse.Namespace, home: Path, partitions: str, *, has_feed: bool = False
) -> tuple[Any, list[str]]:
    """A dbt project on a session of its own, and the names of its sources: Delta tables."""
    from lab import Lab
    from sessions import session_settings

    settings = session_settings(home, is_long=True) | {
        "spark.master": "local[2]",
        "spark.driver.memory": options.memory,
        "spark.sql.shuffle.partitions": partitions,
    }
    lab = Lab(SparkSession.builder.config(map=settings).enableHiveSupport().getOrCreate(), home, schema="bench")
    names = [f"s{i}" for i in range(1, options.sources + 1)]
    for number, name in enumerate(names):
        write_source(make_source(lab.spark, options, number), name, has_feed=has_feed)
    return lab, names


def write_source(rows: DataFrame, name: str, *, has_feed: bool = False) -> None:
    rows = rows.withColumn("loaded_at", f.col("updated_at"))
    rows.write.option(FEED, str(has_feed).lower()).saveAsTable(f"bench.{name}", format="delta")


def day(number: int) -> Column:
    return f.timestamp_micros(f.lit(1_704_067_200_000_000 + number * 86_400_000_000))


def write_models(lab: Any, options: argparse.Namespace, names: list[str]) -> None:
    for kind in ("heal", "rebuild"):
        lab.model(
            f"dim_{kind}",
            call_of(options, names, "" if options.feed else ", 'loaded_at': 'loaded_at'"),
            materialized="healing_table",
            unique_key=KEY,
            tblproperties={"delta.enableDeletionVectors": str(not options.no_deletion_vectors).lower()},
            meta={"healing_tables": {"mode": kind} | ({"cluster_by": KEY} if options.clustered else {})},
        )


def call_of(options: argparse.Namespace, names: list[str], loaded: str) -> str:
    """The call of dimension() over the sources; ``loaded``: another option of each."""
    listed = ", ".join(
        f"'{name}': {{'relation': api.Relation.create(schema='bench', identifier='{name}'), 'changed_at': "
        f"'updated_at'{loaded}}}"
        for name in names
    )
    attributes = {
        column: {"from": names if column == "a0" else [name]}
        for number, name in enumerate(names)
        for column in columns_of(options, number)
    }
    arguments = f"sources={{{listed}}}, key_columns=['{KEY}'], attributes={attributes!r}"
    return f"{{{{ healing_tables.dimension({arguments}) }}}}"


def sort_by_key(options: argparse.Namespace, spark: SparkSession, names: list[str]) -> None:
    """Cluster the sources, as the dimensions are by their option, and sort the files of all."""
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(options.clustered * 1_000_000))
    for name in names:
        spark.sql(f"alter table bench.{name} cluster by ({KEY})").collect()
    for name in (*names, "dim_heal", "dim_rebuild"):
        spark.sql(f"optimize bench.{name} full").collect()


def share_of_files(spark: SparkSession, options: argparse.Namespace) -> tuple[int, int]:
    """Numbers of files of the dimension: those whose range of keys contains one of the first changed keys, and all."""
    table = spark.table("bench.dim_heal")
    listed = [row[0] for row in changed_keys(spark, options, 1, together=options.together).collect()]
    return len(table.where(f.col(KEY).isin(listed)).inputFiles()), len(table.inputFiles())


def changed_keys(spark: SparkSession, options: argparse.Namespace, turn: int, *, together: bool) -> DataFrame:
    keys = max(options.rows // options.changes_per_key, 1)
    touched = max(int(keys * options.share), 1)
    step = 1 if together else keys // touched
    return spark.range(touched).select(f.pmod(f.col("id") * step + turn, f.lit(keys)).alias(KEY))


def change(
    spark: SparkSession, options: argparse.Namespace, names: list[str], turn: int, *, together: bool = False
) -> None:
    """One row for each of a share of the keys, in each source."""
    for number, name in enumerate(names):
        changed_keys(spark, options, turn, together=together).select(
            KEY,
            day(turn).alias("updated_at"),
            *[f.concat(f.lit(f"t{turn}-"), KEY).alias(c) for c in columns_of(options, number)],
            day(turn).alias("loaded_at"),
        ).write.mode("append").saveAsTable(f"bench.{name}", format="delta")


def size_of(spark: SparkSession, kind: str) -> int:
    """Bytes of all files that the table has ever had."""
    place = spark.sql(f"describe detail bench.dim_{kind}").collect()[0]["location"]
    return sum(file.stat().st_size for file in Path(place.removeprefix("file:")).rglob("*.parquet"))


def report(
    options: argparse.Namespace,
    spark: SparkSession,
    seconds: dict[str, list[float]],
    written: dict[str, list[int]],
    share: tuple[int, int],
) -> None:
    versions = spark.table("bench.dim_rebuild").count()
    median = {kind: statistics.median(values) for kind, values in seconds.items()}
    news = "change data feed" if options.feed else "loaded_at"
    print(f"{platform.machine()}, {platform.system()}, 2 cores, Python {platform.python_version()}")
    print(
        f"{options.rows:,} change rows, {options.sources} sources, {versions:,} versions, {options.share:.2%} of the "
        f"keys, news by {news}"
    )
    print(f"files of the dimension with changed keys in their range: {share[0]} of {share[1]}")
    print(f"medians of {options.repeat} runs: seconds (ratio to the rebuild), megabytes written")
    for kind, value in median.items():
        megabytes = statistics.median(written[kind]) / 1e6
        print(f"{kind:10} {value:8.1f}  ({value / median['rebuild']:.2f})  {megabytes:8.1f}")


if __name__ == "__main__":
    main()
