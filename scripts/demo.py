"""Build and test two example dimensions with dbt in this process, merge batches into a third, show what they hold."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

from drawing import table

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
PLAYERS = """
    select player_key, player_id, email, tier, risk_score, marketing_consent as consent,
        previous_marketing_consent as consent_before, effective_from, effective_to
    from warehouse.dim_player order by player_id, effective_from
"""
NEXT = """\
The tables are Delta tables in .warehouse/tables. To go on:
  .venv/bin/dbt run --select dim_customer       rebuild it: the same table, whatever it held before
  .venv/bin/dbt test --select dim_customer      check it
  .venv/bin/dbt run --select dim_player --vars '{batch: 3}'
                                                merge the last batch again: nothing is committed
  python_models/, data/batches/                 the merged dimensions and their batches
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
    done = build(["build", "--select", *[f"+{model}" for model in MODELS]])
    if done:
        show(time.monotonic() - started)
        done = merge()
    if not done:
        print(f"\nThe build failed. What Spark said is in {SPARK_LOG.relative_to(ROOT)}.")
        return 1
    print(f"\nAll of it took {time.monotonic() - started:.0f} s.\n{NEXT}")
    return 0


def send_errors_of_java_to(path: Path) -> None:
    """Spark starts with pages of messages. Python keeps its own stderr, the JVM inherits the file."""
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    with path.open("w") as log:
        os.dup2(log.fileno(), 2)


def build(command: list[str]) -> bool:
    """Run dbt, a line for each model; True if all went well."""
    from dbt.cli.main import dbtRunner

    outcome = dbtRunner(callbacks=[report]).invoke(["--quiet", *command])
    if outcome.exception is not None:
        print(outcome.exception)
        return False
    results: Any = outcome.result
    tests = [result for result in results or [] if result.node.resource_type == "test"]
    if tests:
        passed = [result for result in tests if result.status == "pass"]
        print(f"  {len(passed)} of {len(tests)} tests passed")
    return outcome.success


def report(event: Any) -> None:
    """One line per model that is built, and what the materialization has to say."""
    if event.info.name == "LogModelResult" and event.data.status != "ERROR":
        print(f"  {event.data.node_info.node_name:<36}{event.data.execution_time:5.1f} s", flush=True)
    elif event.info.name in ("JinjaLogInfo", "JinjaLogWarning"):
        print(f"    {event.data.msg.removeprefix('healing_table ')}", flush=True)
    elif event.info.name == "Note" and event.data.msg.startswith("healing_merge "):
        print(f"    {event.data.msg.removeprefix('healing_merge ')}", flush=True)


def show(seconds: float) -> None:
    print("\nCustomer 1002: six slices became three versions; deleted for two years, deleted again.")
    print(table(CUSTOMER))
    print("\nKyrsten Sinema: from the House to the Senate, from one party to none.")
    print(table(LEGISLATOR))
    print()
    print(table(" union all ".join(COUNTS.format(model) for model in MODELS)))
    print(f"\nBuilt and tested in {seconds:.0f} s.")


def merge() -> bool:
    """Three batches into a dimension, from the first one on; True if all went well."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    spark.sql("drop table if exists warehouse.dim_player")
    # on a few rows, compiling code takes most of the time
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    spark.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    print("\nPlayers, in batches: versions of tier and risk score, the newest email, two consents.")
    for batch in (1, 2, 3):
        print(f"Batch {batch}, data/batches/player/{batch}.csv", flush=True)
        if not build(["run", "--select", "dim_player", "--vars", f"{{batch: {batch}}}"]):
            return False
        print(table(PLAYERS))
    return True


if __name__ == "__main__":
    sys.exit(main())
