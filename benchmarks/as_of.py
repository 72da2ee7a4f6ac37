"""How long as_of takes, as a ratio to an equi-join on a surrogate key that the facts would store.

    python benchmarks/as_of.py --facts 10000000 --versions 5000000 --versions-per-key 10 --repeat 3

equi-join   facts joined with the dimension by surrogate key: what a query costs once facts store it
many, few   as_of with versions_per_key='many' and 'few'
range join  left join by key and period, as it is usually written
correlated  a correlated sub-query that takes the newest version that has begun

Keys of facts are spread evenly; with ``--skew`` a share of all facts has one key. Nothing is broadcast, results are
thrown away. All runs share one process; each figure is the median of ``--repeat`` runs, taken in turns.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rebuild import in_temporary_folder

from healing_tables import as_of

START, SPAN = 1_600_000_000, 100_000_000  # seconds: all versions and facts lie in some three years
END = "timestamp '9999-12-31 00:00:00Z'"
RANGE_JOIN = """
select facts.*, dim.name from facts left join dim
on facts.id = dim.id and facts.at >= dim.valid_from and facts.at < dim.valid_to
"""
CORRELATED = """
select facts.*, (
    select max_by(dim.name, dim.valid_from) from dim where dim.id = facts.id and dim.valid_from <= facts.at
) as name from facts
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--versions", type=int, default=500_000)
    parser.add_argument("--versions-per-key", type=int, default=10)
    parser.add_argument("--skew", type=float, default=0.0, help="share of the facts with one key")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--leave-out", nargs="*", default=[], help="slow runs: 'range join', correlated, few")
    parser.add_argument("--memory", default="10g", help="heap of the one JVM")
    options = parser.parse_args()
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    spark = session(options.memory)
    make_dimension(spark, options).write.parquet(str(home / "dim"))
    dim = spark.read.parquet(str(home / "dim"))
    loaded = as_of(make_facts(spark, options), dim, "id", "at", "sk")
    loaded.repartition(8).write.parquet(str(home / "facts"))
    facts = spark.read.parquet(str(home / "facts"))
    facts.createOrReplaceTempView("facts")
    dim.createOrReplaceTempView("dim")
    runs: dict[str, Callable[[], DataFrame]] = {
        "equi-join": lambda: facts.join(dim.select("sk", "name"), "sk", "left"),
        "many": lambda: as_of(facts, dim, "id", "at", "name"),
        "few": lambda: as_of(facts, dim, "id", "at", "name", versions_per_key="few"),
        "range join": lambda: spark.sql(RANGE_JOIN),
        "correlated": lambda: spark.sql(CORRELATED),
    }
    runs = {name: work for name, work in runs.items() if name not in options.leave_out}
    check({name: work() for name, work in runs.items()})  # warm, too
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.repeat):
        for name, work in runs.items():
            started = time.perf_counter()
            work().write.format("noop").mode("overwrite").save()
            seconds[name].append(time.perf_counter() - started)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    print(
        f"{options.facts} facts, {options.versions} versions, {options.versions_per_key} per key, "
        f"skew {options.skew}; Spark {spark.version}, {platform.machine()}"
    )
    for name, median in medians.items():
        print(f"{name:<12}{median:8.2f} s{median / medians['equi-join']:8.2f} x equi-join")
    spark.stop()


def check(results: dict[str, DataFrame]) -> None:
    """All ways give every fact the same name."""
    sums = {
        name: result.agg(f.count("*"), f.sum(f.xxhash64("no", "name").cast("decimal(38,0)")))
        for name, result in results.items()
    }
    found = {name: tuple(frame.collect()[0]) for name, frame in sums.items()}
    if len(set(found.values())) != 1:
        raise SystemExit(f"results differ: {found}")


def session(memory: str) -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", memory)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "16")
        .config("spark.sql.autoBroadcastJoinThreshold", "-1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def make_dimension(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    """Versions of equal length that touch; the last one of each key is open."""
    per_key = options.versions_per_key
    step = SPAN // per_key
    return spark.range(0, options.versions, numPartitions=8).selectExpr(
        "id as sk",
        f"id div {per_key} as id",
        "concat('name ', sha2(cast(id as string), 256)) as name",
        f"timestamp_seconds({START} + pmod(id, {per_key}) * {step}) as valid_from",
        f"if(pmod(id, {per_key}) = {per_key - 1}, {END}, "
        f"timestamp_seconds({START} + (pmod(id, {per_key}) + 1) * {step})) as valid_to",
    )


def make_facts(spark: SparkSession, options: argparse.Namespace) -> DataFrame:
    keys = max(options.versions // options.versions_per_key, 1)
    share = int(options.skew * 1000)
    return spark.range(0, options.facts, numPartitions=8).selectExpr(
        "id as no",
        f"if(pmod(xxhash64(id, 1), 1000) < {share}, 0, pmod(xxhash64(id, 2), {keys})) as id",
        f"timestamp_seconds({START} + pmod(xxhash64(id, 3), {SPAN})) as at",
        "cast(pmod(id, 10000) as decimal(12,2)) as amount",
        "concat('note ', id) as note",
    )


if __name__ == "__main__":
    main()
