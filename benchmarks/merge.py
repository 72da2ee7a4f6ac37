"""How long a merge takes, as a ratio to the usual two passes (close, then append), which are not atomic.

    python benchmarks/merge.py --versions 1000000 --changed 0.01 --repeat 5

merge       healing_tables.merge: plan, one MERGE, one commit
two passes  find what differs, MERGE that closes, append of the new versions: two commits, on the same batch and columns
one MERGE   the naive one: a source with each changed row twice, joined once, to close and to insert

All start from a shallow clone of one table, in one process; each figure is the median of ``--repeat`` runs in turns.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from rebuild import ROOT, in_temporary_folder

from healing_tables import DeltaTarget, DimensionSpec, merge

sys.path.insert(0, str(ROOT / "tests" / "shared"))
NEW_AT = "2024-03-01 00:00:00"
OPEN = "timestamp '9999-12-31 00:00:00'"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--versions", type=int, default=1_000_000, help="stored, two of each key")
    parser.add_argument("--changed", type=float, default=0.01, help="share of the keys that change")
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--files", type=int, default=16, help="files of the stored table")
    parser.add_argument("--no-deletion-vectors", action="store_true")
    parser.add_argument("--change-log", action="store_true", help="merge with a change log too")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--memory", default="8g", help="heap of the one JVM")
    options = parser.parse_args()
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    spark = session(home, options.memory)
    attributes = [f"a{number}" for number in range(options.attributes)]
    keys = options.versions // 2
    spec = DimensionSpec(key_columns="customer_id", attributes=attributes)
    properties = {"delta.enableDeletionVectors": str(not options.no_deletion_vectors).lower()}
    for month, salt in (("01", 0), ("02", 1)):
        whole = states(spark, keys, attributes, salt).repartition(options.files)
        merge(whole, DeltaTarget("base", properties=properties), spec, at=f"2024-{month}-01")
    # a batch is an extract: twice as many keys as have changed, and a few new ones
    changed = int(keys * options.changed)
    step = max(1, keys // max(1, changed))
    batch_file = str(home / "batch")
    old = states(spark, keys, attributes, 1).where(f"customer_id % {step} = 1")
    new = states(spark, keys + 10, attributes, 2).where(f"customer_id % {step} = 0 or customer_id >= {keys}")
    old.unionByName(new).write.parquet(batch_file)
    batch = spark.read.parquet(batch_file)
    runs: dict[str, Callable[[str], object]] = {
        "merge": lambda table: merge(batch, table, spec, at=NEW_AT),
        "two passes": lambda table: two_passes(spark, batch, table, attributes),
        "one MERGE": lambda table: one_merge(spark, batch, table, attributes),
    }
    if options.change_log:
        spark.sql("create table seeded shallow clone base")
        logged = DimensionSpec(key_columns="customer_id", attributes=attributes, change_log="seeded_changes")
        merge(batch.limit(0), "seeded", logged, at=NEW_AT)
        runs["merge with a change log"] = lambda table: merge(
            batch,
            table,
            DimensionSpec(key_columns="customer_id", attributes=attributes, change_log=f"{table}_changes"),
            at=NEW_AT,
        )
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    written: dict[str, int] = {}
    for number in range(options.repeat + 1):
        for name, work in runs.items():
            table = f"{name.replace(' ', '_').lower()}_{number}"
            spark.sql(f"create table {table} shallow clone base")
            if "log" in name:
                spark.sql(f"create table {table}_changes shallow clone seeded_changes")
            started = time.perf_counter()
            work(table)
            if number > 0:  # the first round warms up
                seconds[name].append(time.perf_counter() - started)
            written[name] = bytes_written(spark, table)
            check(spark, table, options.versions, keys, step)
    report(options, {name: statistics.median(took) for name, took in seconds.items()}, written)
    spark.stop()


def session(home: Path, memory: str) -> SparkSession:
    """A session with the settings of `profiles.yml`."""
    from sessions import session_settings

    settings = session_settings(home, is_long=True) | {
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": "4",
    }
    return SparkSession.builder.master("local[2]").config(map=settings).enableHiveSupport().getOrCreate()


def states(spark: SparkSession, keys: int, attributes: list[str], salt: int) -> DataFrame:
    """One row per key; another ``salt`` changes the first attribute of every key."""
    values = [f"concat('{salt}-', pmod(xxhash64(id, 0), 500)) as {attributes[0]}"] + [
        f"concat('{name}-', pmod(xxhash64(id, {number}), 500)) as {name}"
        for number, name in enumerate(attributes[1:], start=1)
    ]
    return spark.range(0, keys, numPartitions=4).selectExpr("id as customer_id", *values)


def differing(attributes: list[str]) -> str:
    return " or ".join(f"not (b.{name} <=> t.{name})" for name in attributes)


def new_rows(spark: SparkSession, batch: DataFrame, table: str, attributes: list[str]) -> DataFrame:
    """The new versions, with all columns that the table has."""
    batch.createOrReplaceTempView("batch")
    row_hash = f"sha2(concat_ws('|', {', '.join(f'b.{name}' for name in sorted(attributes))}), 256)"
    return spark.sql(
        f"select b.*, timestamp '{NEW_AT}' as valid_from, {OPEN} as valid_to, true as is_current, "
        f"cast(coalesce(t.version, 0) + 1 as int) as version, "
        f"sha2(cast(b.customer_id as string), 256) as key_hash, {row_hash} as row_hash "
        f"from batch b left join {table} t on t.customer_id = b.customer_id and t.is_current "
        f"where t.customer_id is null or {differing(attributes)}"
    )


def two_passes(spark: SparkSession, batch: DataFrame, table: str, attributes: list[str]) -> None:
    rows = new_rows(spark, batch, table, attributes).persist()
    rows.createOrReplaceTempView("changed")
    spark.sql(
        f"merge into {table} t using changed s on t.customer_id = s.customer_id and t.is_current "
        "when matched then update set valid_to = s.valid_from, is_current = false"
    ).collect()
    rows.write.format("delta").mode("append").saveAsTable(table)
    rows.unpersist()


def one_merge(spark: SparkSession, batch: DataFrame, table: str, attributes: list[str]) -> None:
    new_rows(spark, batch, table, attributes).createOrReplaceTempView("changed")
    columns = ", ".join(spark.table(table).columns)
    values = ", ".join(f"s.{name}" for name in spark.table(table).columns)
    spark.sql(
        f"merge into {table} t using (select customer_id as merge_key, * from changed union all "
        "select null, * from changed where version > 1) s "
        "on t.customer_id = s.merge_key and t.is_current "
        "when matched then update set valid_to = s.valid_from, is_current = false "
        f"when not matched then insert ({columns}) values ({values})"
    ).collect()


def bytes_written(spark: SparkSession, table: str) -> int:
    """Of all commits after the clone."""
    found = spark.sql(f"describe history {table}").where("operation in ('MERGE', 'WRITE')")
    metrics = [row["operationMetrics"] for row in found.collect()]
    return sum(int(metric.get("numTargetBytesAdded", 0)) + int(metric.get("numOutputBytes", 0)) for metric in metrics)


def check(spark: SparkSession, table: str, versions: int, keys: int, step: int) -> None:
    """All ways give the same dimension."""
    changed = len(range(0, keys, step))
    rows, current = spark.sql(f"select count(*), count_if(is_current) from {table}").collect()[0]
    assert (rows, current) == (versions + changed + 10, keys + 10), (table, rows, current)


def report(options: argparse.Namespace, median: dict[str, float], written: dict[str, int]) -> None:
    usual = median["two passes"]
    print(f"{platform.machine()}, {platform.system()}, 2 cores, Python {platform.python_version()}")
    print(
        f"{options.versions:,} versions in {options.files} files, {options.attributes} attributes, "
        f"{options.changed:.1%} of the keys changed, deletion vectors {'off' if options.no_deletion_vectors else 'on'}"
    )
    print(f"medians of {options.repeat} runs, seconds (ratio to two passes), MB written")
    for name, value in median.items():
        print(f"{name:24} {value:8.1f}  ({value / usual:.2f})  {written[name] / 1e6:10,.1f}")


if __name__ == "__main__":
    main()
