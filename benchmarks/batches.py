"""How long a small merge takes, as a ratio to what a user writes by hand for the same.

    python benchmarks/batches.py --rows 200
    python benchmarks/batches.py --rows 10000 --keys 1000000
    python benchmarks/batches.py --rows 200 --cold               # each figure is a process of its own

plain      type 2, without a change log                 by hand: close the changed versions, append the new ones
sequence   types 1 and 2, integer surrogate keys        by hand: as plain
audit      type 2 with an audit                         by hand: as plain, and append what changed to another table
log        type 2 with a change log                     by hand: the same
type4      type 4                                       by hand: append the old states to a history, MERGE the new ones
unchanged  plain, with a batch that changes nothing     by hand: as plain

The dimension has ``--keys`` keys. A batch has ``--rows`` of them, of which ``--share`` changed. Warm, all merges share
one process and are taken in turns, and the best of ``--repeat`` rounds counts, after two to warm up. Cold, a figure
is the whole process: start Spark, merge one batch, end. Jobs are those of Spark.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from build import count_jobs
from merge import session
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from rebuild import in_temporary_folder

from healing_tables import DimensionSpec, merge

OPTIONS: dict[str, Any] = {"key_columns": "id", "changed_at": "changed_at", "change_log": False}
SPECS = {
    "plain": DimensionSpec(attributes={"name": 2, "tier": 2}, **OPTIONS),
    "sequence": DimensionSpec(
        attributes={"name": 2, "tier": 1}, surrogate_key={"name": "sk", "strategy": "sequence"}, **OPTIONS
    ),
    "audit": DimensionSpec(attributes={"name": 2, "tier": 2}, audit={}, **OPTIONS),
    "log": DimensionSpec(attributes={"name": 2, "tier": 2}, **OPTIONS | {"change_log": "log_changes"}),
    "type4": DimensionSpec(attributes={"name": 4, "tier": 4}, **OPTIONS),
}
# The work by hand for each of them
BY_HAND = {"plain": "close", "sequence": "close", "audit": "close_side", "log": "close_side", "type4": "move"}
FORMS = (*SPECS, "unchanged")
VERSIONS = "id bigint, name string, tier bigint, valid_from timestamp, valid_to timestamp, is_current boolean"
STATES = "id bigint, name string, tier bigint, valid_from timestamp"
WARM_UP = 2
FILL = "fill"  # a cold process that makes the tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=200, help="of each batch")
    parser.add_argument("--keys", type=int, help="of the dimension; default: those of the batch")
    parser.add_argument("--share", type=float, default=0.1, help="of the keys in a batch that change")
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--only", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--memory", default="4g", help="heap of a JVM")
    parser.add_argument("--one", nargs=3, metavar=("WORK", "TURN", "FOLDER"), help=argparse.SUPPRESS)  # a cold process
    options = parser.parse_args()
    options.keys = max(options.keys or options.rows, options.rows)
    if options.one:
        name, turn, folder = options.one
        spark = session(Path(folder), options.memory)
        if name == FILL:
            fill(spark, options, forms_of(options))
        else:
            work_of(spark)[name](batch_of(spark, options, int(turn)))
        spark.stop()
    else:
        in_temporary_folder(run, options)


def run(options: argparse.Namespace, home: Path) -> None:
    names = forms_of(options)
    measured: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
    if options.cold:
        cold(options, home, FILL, 0)  # the metastore of a folder is open to one process
        for turn in range(1, options.repeat + 1):
            for name in names:
                measured[name].append((cold(options, home, name, turn), 0))
    else:
        spark = session(home, options.memory)
        fill(spark, options, names)
        work = {name: call for name, call in work_of(spark).items() if name in names}
        for turn in range(1, options.repeat + WARM_UP + 1):
            batch = batch_of(spark, options, turn)
            for name, call in work.items():
                jobs, started = count_jobs(spark), time.perf_counter()
                call(batch)
                figures = time.perf_counter() - started, count_jobs(spark) - jobs
                if turn > WARM_UP:
                    measured[name].append(figures)
        spark.stop()
    report(options, measured)


def forms_of(options: argparse.Namespace) -> list[str]:
    """What is measured, and the work by hand that it is compared with."""
    return list(dict.fromkeys([*options.only, *(BY_HAND.get(name, "close") for name in options.only)]))


def work_of(spark: SparkSession) -> dict[str, Callable[[DataFrame], object]]:
    """Each form, and the work by hand; the tables have the same names. Last, what repeats the batch of another."""
    return {
        "close": partial(close_and_append, table="close"),
        "close_side": partial(close_append_and_log, table="close_side"),
        "move": partial(move_to_history, table="move"),
        **{name: partial(merge, target=name, spec=spec) for name, spec in SPECS.items()},
        "unchanged": partial(merge, target="plain", spec=SPECS["plain"]),
    }


def fill(spark: SparkSession, options: argparse.Namespace, names: list[str]) -> None:
    """All keys, in every table."""
    everything = states(spark, options.keys, 0, "false")
    for name in {"plain" if name == "unchanged" else name for name in names}:
        if name in SPECS:
            merge(everything, name, SPECS[name])
            continue
        spark.sql(f"create table {name} ({STATES if name == 'move' else VERSIONS}) using delta")
        first = everything.withColumnRenamed("changed_at", "valid_from")
        ends = {} if name == "move" else {"valid_to": f.expr("timestamp '9999-12-31'"), "is_current": f.lit(True)}
        rows = first.withColumns(ends) if ends else first
        rows.select(*spark.table(name).columns).write.mode("append").saveAsTable(name, format="delta")


def cold(options: argparse.Namespace, home: Path, name: str, turn: int) -> float:
    command = [sys.executable, __file__, "--rows", str(options.rows), "--keys", str(options.keys)]
    command += ["--share", str(options.share), "--memory", options.memory, "--only", *options.only]
    command += ["--one", name, str(turn), str(home)]
    started = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return seconds


def batch_of(spark: SparkSession, options: argparse.Namespace, turn: int) -> DataFrame:
    """Keys all over the dimension, on the day of a turn; other ones change in each."""
    step = max(round(1 / options.share), 1)
    every = options.keys // options.rows
    rows = states(spark, options.keys, turn, f"pmod(id div {every}, {step}) = {turn % step}")
    return rows.where(f"pmod(id, {every}) = 0").limit(options.rows)


def states(spark: SparkSession, keys: int, turn: int, changed: str) -> DataFrame:
    return spark.range(keys).selectExpr(
        "id",
        f"timestamp '2024-01-01' + make_dt_interval({turn}) as changed_at",
        f"concat('name ', id, if({changed}, ' of {turn}', '')) as name",
        "pmod(id, 7) as tier",
    )


def news(batch: DataFrame, table: str, stored: str) -> DataFrame:
    """The rows of a batch that differ from the stored ones, with these as ``old``."""
    old = batch.sparkSession.table(table).where(stored).selectExpr("id", "struct(*) as old")
    found = batch.join(old, "id", "left").where("old is null or not (name <=> old.name and tier <=> old.tier)")
    return found.localCheckpoint()


def close_and_append(batch: DataFrame, table: str) -> DataFrame:
    changed = news(batch, table, "is_current")
    changed.createOrReplaceTempView("changed")
    batch.sparkSession.sql(
        f"merge into {table} t using changed s on t.id = s.id and t.is_current "
        "when matched then update set valid_to = s.changed_at, is_current = false"
    ).collect()
    new = changed.selectExpr(
        "id", "name", "tier", "changed_at as valid_from", "timestamp '9999-12-31' as valid_to", "true as is_current"
    )
    new.write.mode("append").saveAsTable(table, format="delta")
    return changed


def close_append_and_log(batch: DataFrame, table: str) -> None:
    changed = close_and_append(batch, table).drop("old").withColumn("logged_at", f.now())
    changed.write.mode("append").saveAsTable(f"{table}_rows", format="delta")


def move_to_history(batch: DataFrame, table: str) -> None:
    changed = news(batch, table, "true")
    changed.createOrReplaceTempView("changed")
    past = changed.where("old is not null").selectExpr("old.*", "changed_at as valid_to")
    past.write.mode("append").saveAsTable(f"{table}_history", format="delta")
    batch.sparkSession.sql(
        f"merge into {table} t using changed s on t.id = s.id when matched then update set name = s.name, "
        "tier = s.tier, valid_from = s.changed_at when not matched then insert (id, name, tier, valid_from) "
        "values (s.id, s.name, s.tier, s.changed_at)"
    ).collect()


def report(options: argparse.Namespace, measured: dict[str, list[tuple[float, int]]]) -> None:
    print(f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(
        f"batches of {options.rows:,} rows into {options.keys:,} keys, {options.share:.1%} changed; the best of "
        f"{options.repeat} {'cold processes' if options.cold else 'warm rounds'}"
    )
    print("seconds, jobs; by hand: seconds, jobs; ratio; all seconds")
    for name in options.only:
        seconds, jobs = min(measured[name])
        other, other_jobs = min(measured[BY_HAND.get(name, "close")])
        each = " ".join(f"{taken:.2f}" for taken, _ in measured[name])
        print(f"{name:10} {seconds:6.2f} {jobs:4d}   {other:6.2f} {other_jobs:4d}   {seconds / other:5.2f}   {each}")


if __name__ == "__main__":
    main()
