"""Build the example dimensions with dbt in this process, run their tests, show what is in them."""

from __future__ import annotations

import datetime as dt
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SPARK_LOG = ROOT / ".warehouse" / "spark.log"
MODELS = ["dim_customer", "dim_legislator"]

CUSTOMER = """
    select valid_from, valid_to, customer_name, customer_status, credit_limit, payment_terms, email,
        compressed_row_count as slices
    from warehouse.dim_customer where customer_id = 1002 order by valid_from
"""
LEGISLATOR = """
    select valid_from, valid_to, chamber, state, district, party, previous_party, current_party, office
    from warehouse.dim_legislator where bioguide = 'S001191' order by valid_from
"""
COUNTS = """
    select '{0}' as dimension, count(distinct key_hash) as keys, count(*) as versions,
        count_if(is_current) as current, sum(compressed_row_count) as slices,
        date(min(valid_from)) as first_change, date(max(valid_from)) as last_change
    from warehouse.{0}
"""
NEXT = """\
The tables are Delta tables in .warehouse/tables. To go on:
  .venv/bin/dbt run --select dim_customer       rebuild it: the same table, whatever it held before
  .venv/bin/dbt test --select dim_customer      check it
  models/dim_customer.sql                       who owns which attribute; try another rule
  data/customers/crm_changes.csv                add a late change at the end and run again
  target/compiled/healing_tables/models/        the select statements that the package wrote"""


def main() -> int:
    os.chdir(ROOT)
    os.environ["DBT_PROJECT_DIR"] = os.environ["DBT_PROFILES_DIR"] = str(ROOT)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    SPARK_LOG.parent.mkdir(exist_ok=True)
    send_errors_of_java_to(SPARK_LOG)
    started = time.monotonic()
    print("Starting dbt and Spark (the first time, Spark fetches the Delta jars) ...", flush=True)
    if not build():
        print(f"\nThe build failed. What Spark said is in {SPARK_LOG.relative_to(ROOT)}.")
        return 1
    show(time.monotonic() - started)
    return 0


def send_errors_of_java_to(path: Path) -> None:
    """Spark starts with pages of messages. Python keeps its own stderr, the JVM inherits the file."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    with path.open("w") as log:
        os.dup2(log.fileno(), 2)


def build() -> bool:
    """Models and tests by dbt, a line for each model; True if all went well."""
    from dbt.cli.main import dbtRunner

    select = [f"+{model}" for model in MODELS]
    outcome = dbtRunner(callbacks=[report]).invoke(["--quiet", "build", "--select", *select])
    if outcome.exception is not None:
        print(outcome.exception)
        return False
    results: Any = outcome.result
    tests = [result for result in results or [] if result.node.resource_type == "test"]
    passed = [result for result in tests if result.status == "pass"]
    print(f"  {len(passed)} of {len(tests)} tests passed")
    return outcome.success


def report(event: Any) -> None:
    """One line per model that is built, and what the materialization has to say."""
    if event.info.name == "LogModelResult" and event.data.status != "ERROR":
        print(
            f"  {event.data.node_info.node_name:<36}{event.data.execution_time:5.1f} s", flush=True
        )
    elif event.info.name in ("JinjaLogInfo", "JinjaLogWarning"):
        print(f"    {event.data.msg.removeprefix('healing_table ')}", flush=True)


def show(seconds: float) -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()  # the one that dbt made

    def table(query: str) -> str:
        frame = spark.sql(query)
        return drawn(frame.columns, [[shown(value) for value in row] for row in frame.collect()])

    print(
        "\nCustomer 1002: six slices became three versions; deleted for two years, deleted again."
    )
    print(table(CUSTOMER))
    print("\nKyrsten Sinema: from the House to the Senate, from one party to none.")
    print(table(LEGISLATOR))
    print()
    print(table(" union all ".join(COUNTS.format(model) for model in MODELS)))
    print(f"\nBuilt and tested in {seconds:.0f} s.\n{NEXT}")


def shown(value: object) -> str:
    """Short text: open ends by name, midnight as a date, moments to the minute (UTC)."""
    if isinstance(value, dt.datetime):
        if value.year == 9999:
            return "(open)"
        return f"{value:%Y-%m-%d}" if value.time() == dt.time() else f"{value:%Y-%m-%d %H:%M}"
    return "" if value is None else str(value)


def drawn(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    ruled = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        (
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        ).rstrip()
        for line in ruled
    )


if __name__ == "__main__":
    sys.exit(main())
