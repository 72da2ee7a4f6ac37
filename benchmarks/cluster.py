"""Builds of many rows on a standalone cluster whose executors have little memory.

    python benchmarks/cluster.py --rows 50000000 --sources 20 --skewed 5000000

A master, two workers of one core and the driver are processes of their own on this machine; an executor has
``--executor-memory``. One key has ``--skewed`` of the rows, and the last source has one row.

first    `dbt run` of a healing_table that does not exist yet
heal     mode: heal, after a share of the keys got a change in each source
rebuild  the same model without heal, after more changes
shards   the same rebuild with `shards`, after more changes; with --shards 0 there is none

Each is measured once. Spilled is what the tasks wrote to disk because their memory was full.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from heal import call_of, change, write_source
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rebuild import ROOT, in_temporary_folder, make_source

JARS = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from sessions import session_settings
settings = session_settings(Path(sys.argv[1]))
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
print(spark.sparkContext.getConf().get("spark.jars"))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=50_000_000, help="change rows over all sources")
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--attributes", type=int, default=20)
    parser.add_argument("--changes-per-key", type=int, default=20)
    parser.add_argument("--skewed", type=int, default=5_000_000, help="change rows of one key")
    parser.add_argument("--share", type=float, default=0.0001, help="of the keys that change before a run")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--partitions", type=int, default=64, help="of a shuffle")
    parser.add_argument("--executor-memory", default="1g")
    options = parser.parse_args()
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    from lab import Lab
    from spark_servers import cluster

    asked = subprocess.run(
        [sys.executable, "-c", JARS, str(home)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests" / "shared")},
        check=True,
        capture_output=True,
        text=True,
    )
    jars = [path.removeprefix("file://") for path in asked.stdout.split()[-1].split(",")]
    with cluster(home, jars) as server:
        settings = dict(server.settings) | {
            "spark.executor.memory": options.executor_memory,
            "spark.executor.cores": "1",
            "spark.sql.shuffle.partitions": str(options.partitions),
            "spark.ui.retainedJobs": "1000",
            "spark.ui.retainedStages": "1000",
        }
        spark = SparkSession.builder.config(map=settings).enableHiveSupport().getOrCreate()
        lab = Lab(spark, home, schema="bench")
        names = [f"s{number}" for number in range(1, options.sources + 1)]
        for number, name in enumerate(names):
            write_source(source(spark, options, number), name)
        call = call_of(options, names, ", 'loaded_at': 'loaded_at'")
        turns: list[tuple[str, dict[str, Any]]] = [("first", {"mode": "heal"}), ("heal", {"mode": "heal"})]
        turns += [("rebuild", {}), *([("shards", {"shards": options.shards})] if options.shards else [])]
        print(f"{options.rows:,} change rows, {options.sources} sources, {options.skewed:,} rows of one key, ", end="")
        print(f"2 executors of {options.executor_memory}; seconds, GB spilled, largest heap of the driver in GB")
        for turn, (what, healing) in enumerate(turns):
            if turn:
                change(spark, options, names, turn)
            lab.model(
                "dim", call, materialized="healing_table", unique_key="customer_id", meta={"healing_tables": healing}
            )
            before, started = spilled(spark), time.perf_counter()
            results = lab.dbt("run", "--select", "dim")
            assert results["dim"][0] == "success", results
            seconds = time.perf_counter() - started
            print(
                f"{what:8} {seconds:8.1f} {(spilled(spark) - before) / 1e9:8.1f} {driver_heap(spark) / 1e9:8.2f}",
                flush=True,
            )
        versions, keys = spark.sql("select count(*), count(distinct customer_id) from bench.dim").collect()[0]
        print(f"{versions:,} versions of {keys:,} keys", flush=True)
        spark.stop()


def source(spark: SparkSession, options: argparse.Namespace, number: int) -> DataFrame:
    """Rows as in the other benchmarks, a share of them of key -1; the last source has one row."""
    rows = make_source(spark, options, number)
    if number == options.sources - 1:
        return rows.limit(1)
    is_skewed = f.rand(number) < options.skewed / options.rows
    return rows.withColumn("customer_id", f.when(is_skewed, f.lit(-1)).otherwise(f.col("customer_id")))


def spilled(spark: SparkSession) -> int:
    """The number of bytes that all tasks so far have spilled to disk."""
    store = cast(Any, spark)._jsc.sc().statusStore()
    converters = cast(Any, spark)._jvm.scala.jdk.javaapi.CollectionConverters
    total = 0
    for job in converters.asJava(store.jobsList(None)):
        for stage in converters.asJava(job.stageIds()):
            with suppress(Py4JJavaError):  # a stage that was skipped
                total += store.lastStageAttempt(stage).diskBytesSpilled()
    return total


def driver_heap(spark: SparkSession) -> int:
    pools = cast(Any, spark)._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    return sum(pool.getPeakUsage().getUsed() for pool in pools if str(pool.getType().name()) == "HEAP")


if __name__ == "__main__":
    main()
