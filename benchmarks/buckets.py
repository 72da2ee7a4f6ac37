"""How long a merge into an ORC table takes, with and without key buckets, beside a plain rewrite of the table.

    python benchmarks/buckets.py --versions 1000000 --keys 1 10 1000 --repeat 3

rewrite     the table read, joined to the batch and written to a new folder: what a job without this package does
no buckets  healing_tables.merge: all rows are written
16 buckets  the same merge into a table of ``--buckets`` key buckets: those that hold keys of the batch are written

Each figure is the median of ``--repeat`` merges in turns, of other keys each time, in one process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from merge import session, states
from pyspark.sql import DataFrame
from rebuild import in_temporary_folder

from healing_tables import DimensionSpec, HiveTarget, merge


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--versions", type=int, default=1_000_000, help="stored, one of each key")
    parser.add_argument("--keys", type=int, nargs="+", default=[1, 10, 1000], help="keys of a batch")
    parser.add_argument("--attributes", type=int, default=10)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory", default="8g", help="heap of the one JVM")
    options = parser.parse_args()
    in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    spark = session(home, options.memory)
    attributes = [f"a{number}" for number in range(options.attributes)]
    spec = DimensionSpec(key_columns="customer_id", attributes=attributes)
    whole = states(spark, options.versions, attributes, 0)
    targets = {
        "no buckets": HiveTarget("plain"),
        f"{options.buckets} buckets": HiveTarget("in_buckets", key_buckets=options.buckets),
    }
    for target in targets.values():
        merge(whole, target, spec, at="2024-01-01")
    print(f"{options.versions} versions of {options.attributes} attributes; seconds, and the share of a rewrite")
    print(f"{'keys':>8}" + "".join(f"{name:>22}" for name in ("rewrite", *targets)))
    done: list[str] = []
    for keys in options.keys:
        seconds: dict[str, list[float]] = {}
        for number in range(options.repeat + 1):
            first = keys * (number + 1)
            batch = states(spark, options.versions, attributes, number + 1).where(
                f"customer_id >= {first} and customer_id < {first + keys}"
            )
            at = f"2024-02-01 {len(done):02}:00:00"
            done.append(at)
            runs: dict[str, Callable[[], object]] = {"rewrite": partial(rewrite, batch, home / f"{keys}_{number}")}
            for name, target in targets.items():
                runs[name] = partial(merge, batch, target, spec, at=at)
            for name, work in runs.items():
                started = time.perf_counter()
                work()
                if number > 0:  # the first round warms up
                    seconds.setdefault(name, []).append(time.perf_counter() - started)
        medians = {name: statistics.median(took) for name, took in seconds.items()}
        cells = (f"{took:.1f} ({took / medians['rewrite']:.2f})" for took in medians.values())
        print(f"{keys:>8}" + "".join(f"{cell:>22}" for cell in cells))
    spark.stop()


def rewrite(batch: DataFrame, folder: Path) -> None:
    """The versions that stay, those that close, and the new ones."""
    stored = batch.sparkSession.table("plain").alias("t")
    changed = batch.selectExpr("customer_id as changed")
    joined = stored.join(changed, on=stored["customer_id"] == changed["changed"], how="left")
    closed = joined.selectExpr("t.*", "changed is not null and is_current as closes").selectExpr(
        "* except (closes, valid_to, is_current)",
        "if(closes, timestamp '2024-03-01', valid_to) as valid_to",
        "is_current and not closes as is_current",
    )
    closed.unionByName(batch, allowMissingColumns=True).write.orc(str(folder))


if __name__ == "__main__":
    main()
