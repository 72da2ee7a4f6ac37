"""How long a build takes, as a ratio to dbt's own `table` of the same select.

    python benchmarks/build.py --rows 5000000 --repeat 3
    python benchmarks/build.py --rows 4000 --repeat 4          # small: 200 keys in three sources

table            `dbt run` of a model with materialized='table'
first            a healing_table that does not exist yet
rebuild          a healing_table after a share of the keys got a change in each source
audited          the same with an audit
unchanged        the same again, when nothing differs
heal             as rebuild, with mode: heal
heal, no change  the same again, when no source has a new row

All runs share one process and are taken in turns; each figure is the median of ``--repeat`` runs, after one to warm up
(unless ``--cold``: for so many rows that a run takes minutes).
Statements are those that dbt sends, jobs those that Spark runs.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from pathlib import Path
from typing import Any, cast

from heal import call_of, change, lab_with_sources
from pyspark.sql import SparkSession
from rebuild import in_temporary_folder

# what is measured: the model that runs
WORK = {
    "table": "dim_table",
    "first": "dim_first",
    "rebuild": "dim_rebuild",
    "audited": "dim_audited",
    "unchanged": "dim_rebuild",
    "heal": "dim_heal",
    "heal, no change": "dim_heal",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000, help="change rows over all sources")
    parser.add_argument("--share", type=float, default=0.0001, help="of the keys that change before a round")
    parser.add_argument("--sources", type=int, default=3)
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--changes-per-key", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="without a round to warm up")
    parser.add_argument("--only", nargs="+", choices=list(WORK), default=list(WORK))
    parser.add_argument("--surrogate-key", choices=["hash", "dbt_utils"], help="the strategy of one in each dimension")
    parser.add_argument("--memory", default="10g", help="heap of the one JVM")
    parser.add_argument(
        "--statements", action="store_true", help="print the seconds of each statement of the last round"
    )
    options = parser.parse_args()
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    lab, names = lab_with_sources(options, home, "16" if options.rows > 100_000 else "4")
    spark = lab.spark
    write_models(lab, options, names)
    lab.dbt("run")
    measured: dict[str, list[tuple[float, int, int]]] = {work: [] for work in options.only}
    rounds = range(1 if options.cold else 0, options.repeat + 1)
    for turn in rounds:
        change(spark, options, names, turn + 1)
        for work in options.only:
            if work == "first":
                spark.sql("drop table bench.dim_first")
            figures = measure(spark, lab, WORK[work])
            if turn > 0:  # round 0 is to warm up
                measured[work].append(figures)
            if options.statements and turn == rounds[-1]:
                show_statements(work, lab)
    report(options, spark, measured)
    spark.stop()


def write_models(lab: Any, options: argparse.Namespace, names: list[str]) -> None:
    select = call_of(options, names, ", 'loaded_at': 'loaded_at'")
    key = options.surrogate_key
    meta = {"surrogate_key": {"name": "customer_key", "strategy": key}} if key else {}
    healing = {"materialized": "healing_table", "unique_key": "customer_id", "meta": {"healing_tables": meta}}
    configs: dict[str, dict[str, Any]] = {
        "dim_table": {"materialized": "table", "file_format": "delta", "meta": {"healing_tables": meta}},
        "dim_first": healing,
        "dim_rebuild": healing,
        "dim_audited": healing | {"meta": {"healing_tables": meta | {"audit": {}}}},
        "dim_heal": healing | {"meta": {"healing_tables": meta | {"mode": "heal"}}},
    }
    for name in {WORK[work] for work in options.only}:
        lab.model(name, select, **configs[name])


def measure(spark: SparkSession, lab: Any, model: str) -> tuple[float, int, int]:
    """Seconds, statements and jobs of one `dbt run`."""
    jobs = count_jobs(spark)
    started = time.perf_counter()
    results = lab.dbt("run", "--select", model)
    seconds = time.perf_counter() - started
    assert results[model][0] == "success", results
    return seconds, len(lab.statements), count_jobs(spark) - jobs


def count_jobs(spark: SparkSession) -> int:
    return int(cast(Any, spark)._jsc.sc().dagScheduler().numTotalJobs())


def show_statements(work: str, lab: Any) -> None:
    print(f"--- {work}")
    for seconds, sql in lab.statements:
        print(f"{seconds:8.2f}  {' '.join(sql.split())[:150]}")


def report(options: argparse.Namespace, spark: SparkSession, measured: dict[str, list[tuple[float, int, int]]]) -> None:
    versions = spark.table(f"bench.{WORK[options.only[0]]}").count()
    print(f"{platform.machine()}, {platform.system()}, 2 cores, Python {platform.python_version()}")
    print(
        f"{options.rows:,} change rows, {options.sources} sources, {options.attributes} attributes, {versions:,} "
        f"versions, {options.share:.2%} of the keys change"
    )
    print(f"medians of {options.repeat} runs: seconds (ratio to table), statements, jobs; all seconds")
    median = {
        work: [statistics.median(column) for column in zip(*runs, strict=True)] for work, runs in measured.items()
    }
    for work, (seconds, statements, jobs) in median.items():
        ratio = f"({seconds / median['table'][0]:.2f})" if "table" in median else ""
        each = " ".join(f"{run[0]:.1f}" for run in measured[work])
        print(f"{work:16} {seconds:8.2f}  {ratio:7} {statements:4.0f} {jobs:4.0f}   {each}")


if __name__ == "__main__":
    main()
