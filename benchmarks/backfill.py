"""How long it takes to load years of history day by day, against one rebuild of the same history.

    python benchmarks/backfill.py --days 1095 --changes-per-day 1000 --measured 20

rebuild   the select that dimension() writes, over all days, to a Delta table
one day   healing_tables.merge of the changes of a day, in order, into a Delta table

Days are measured at the beginning (an empty table) and at the end (all days before them are stored); all days together
are not run: their time is the number of days times the mean of both medians, printed as an extrapolation.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from pathlib import Path

from merge import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rebuild import ROOT, columns_of, compiled, in_temporary_folder

from healing_tables import DimensionSpec, merge

sys.path.insert(0, str(ROOT / "tests" / "shared"))
DAY = 86_400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--days", type=int, default=1095)
    parser.add_argument("--changes-per-day", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=50_000)
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--measured", type=int, default=20, help="days at each end")
    parser.add_argument("--repeat", type=int, default=3, help="rebuilds")
    parser.add_argument("--memory", default="8g", help="heap of the one JVM")
    options = parser.parse_args()
    options.sources, options.rules = 1, "one"
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    from lab import Lab

    spark = session(home, options.memory)
    lab = Lab(spark, home, schema="bench")
    history(spark, options).write.saveAsTable("bench.s1", format="delta")
    attributes = columns_of(options, 0)
    settings = {"attributes": attributes, "changed_at": "updated_at", "change_log": False}
    spec = DimensionSpec.from_dict({"key_columns": "customer_id", **settings})
    sql = compiled(lab, options, ["s1"])
    rebuilds = [rebuild(spark, sql) for _ in range(options.repeat + 1)][1:]  # the first warms up
    first = [load(spark, spec, "first", day, day + 1) for day in range(options.measured + 3)][3:]
    begin = options.days - options.measured
    load(spark, spec, "last", 0, begin)
    last = [load(spark, spec, "last", day, day + 1) for day in range(begin, options.days)]
    versions = [spark.table(table).count() for table in ("last", "rebuilt")]
    assert versions[0] == versions[1], versions
    report(options, versions[0], rebuilds, first, last)
    spark.stop()


def history(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """The changes of all days, at most one of a key and moment."""
    second = f.expr(f"id div {options.changes_per_day}") * DAY + f.col("id") % DAY
    return spark.range(0, options.days * options.changes_per_day, numPartitions=8).select(
        f.pmod(f.xxhash64("id"), f.lit(options.keys)).alias("customer_id"),
        f.timestamp_micros(f.lit(1_577_836_800_000_000) + second * 1_000_000).alias("updated_at"),
        *[
            f.concat(f.lit(f"{name}-"), f.pmod(f.xxhash64("id", f.lit(name)), f.lit(500))).alias(name)
            for name in columns_of(options, 0)
        ],
    )


def rebuild(spark: SparkSession, sql: str) -> float:
    started = time.perf_counter()
    spark.sql(sql).write.format("delta").mode("overwrite").saveAsTable("rebuilt")
    return time.perf_counter() - started


def load(spark: SparkSession, spec: DimensionSpec, table: str, begin: int, end: int) -> float:
    """Merge the days from ``begin`` until before ``end``; seconds."""
    moment = f.unix_seconds("updated_at") - 1_577_836_800
    batch = spark.table("bench.s1").where((moment >= begin * DAY) & (moment < end * DAY))
    started = time.perf_counter()
    merge(batch, table, spec)
    return time.perf_counter() - started


def report(
    options: argparse.Namespace,
    versions: int,
    rebuilds: list[float],
    first: list[float],
    last: list[float],
) -> None:
    once = statistics.median(rebuilds)
    ends = [statistics.median(first), statistics.median(last)]
    whole = options.days * statistics.mean(ends)
    print(f"{platform.machine()}, {platform.system()}, 2 cores, Python {platform.python_version()}")
    print(
        f"{options.days:,} days of {options.changes_per_day:,} changes, {options.keys:,} keys, "
        f"{options.attributes} attributes, {versions:,} versions"
    )
    print(f"rebuild, median of {len(rebuilds)}:          {once:10.1f} s")
    print(f"one day, median of the first {len(first)}:   {ends[0]:10.1f} s")
    print(f"one day, median of the last {len(last)}:    {ends[1]:10.1f} s")
    print(f"{options.days:,} days, extrapolated:        {whole:10.0f} s  ({whole / once:.0f} times)")


if __name__ == "__main__":
    main()
